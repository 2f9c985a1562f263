/** @file `luthier inspect`: the examples of a dataset, its statistics, and the check of its shards. */
import { dirname } from 'node:path';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import { explain, makeDirectory, writeWhole } from '../../files/index.js';
import { showFile } from '../../registry/names/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Command } from '../command.js';
import { configureFor } from '../commandExperiment.js';
import { datasetFlag, findDataset } from '../datasets.js';
import { inspectInput } from './inspection.js';
import { inspectReport } from './inspectReport.js';
import type { PictureGrid } from './pictureGrid.js';

/** Batches whose rows are compared between hosts, by default. */
const SHARD_BATCHES = 32;

/** A number of batches, `all` of them, or `0`. */
function parseShards(text: string, flag: string): number {
  if (text === 'all') return Number.POSITIVE_INFINITY;
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`${flag}: expected a number of batches, 0 or all; got '${text}'.`);
}

/** Writes a picture for each array of images: the first as FILE, others as FILE with the array's path before the suffix. */
function writePictures(file: string, pictures: ReadonlyMap<string, PictureGrid>): Record<string, string> {
  const names = [...pictures.keys()].map((path, i) => [
    path,
    i === 0 ? file : file.replace(/(\.[^./]*)?$/, `.${path}$1`),
  ]);
  const files = Object.fromEntries(names) as Record<string, string>;
  for (const [path, { png }] of pictures) {
    try {
      makeDirectory(dirname(files[path]!));
      writeWhole(files[path]!, png);
    } catch (error) {
      throw new UsageError(`--out=${file}: cannot be written: ${explain(error)}.`);
    }
  }
  return Object.fromEntries(Object.entries(files).map(([path, name]) => [path, showFile(name)]));
}

export const inspectCommand: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    dataset: datasetFlag,
    n: {
      ...{ key: 'count', value: 'N', parse: positive(true) },
      about: 'Examples to show. Default: 3.',
    },
    length: {
      ...{ key: 'length', value: 'N', parse: positive(true) },
      about: 'Tokens of a segment to show as text; JSON has all. Default: 200.',
    },
    batches: {
      ...{ key: 'batches', value: 'N', parse: positive(true) },
      about: 'Batches that statistics and the picture cover. Default: 1, or as many as the examples need.',
    },
    shards: {
      ...{ key: 'shards', value: 'N', parse: parseShards },
      about:
        'Batches of one host that are compared with those of 2 and of 4 hosts; all: to the end of the data; 0: none. ' +
        `Default: ${SHARD_BATCHES}.`,
    },
    out: {
      ...{ key: 'out', value: 'FILE', parse: nonEmpty },
      about: 'PNG file for a grid of the images, the first row of the batch in its upper left corner.',
    },
  },
  changes: true,
  details: [
    'Reads the dataset as one of its hosts does, in this process; no model is built. `text` is the input of the model,',
    '`target` the labels with a weight, if they are not just the next tokens. Each segment has a colour; ids whose label has',
    'no weight are dim.',
    '',
    '  npx luthier inspect lm.Small --dataset=validation -n 3',
    '  npx luthier inspect images.Cifar --set batchSize=64 --out=batch.png',
    '',
    'Exit codes: 0; 1 if the data cannot be read, shards are not disjoint or not complete, ids are outside the vocabulary,',
    'or values are NaN or infinite; 2 for a wrong command line or config.',
  ].join('\n'),
  async run(args) {
    const {
      dataset: wanted,
      count = 3,
      length = 200,
      batches = 1,
      shards = SHARD_BATCHES,
      out,
    } = args.values as {
      readonly [flag: string]: number | undefined;
    } & { readonly dataset?: string; readonly out?: string };
    const configured = await configureFor(args.positionals[0]!, args);
    const dataset = findDataset(configured, wanted);
    const inspection = await inspectInput(dataset.config, {
      count,
      batches,
      shards,
      pictures: out !== undefined,
    });
    if (out !== undefined && inspection.pictures.size === 0)
      throw new UsageError(
        `--out=${out}: dataset '${dataset.name}' has no images: no float32 array of shape [rows, height, width, 1 or 3].`,
      );
    const files = out === undefined ? {} : writePictures(out, inspection.pictures);
    return inspectReport({ experiment: configured.name, dataset, inspection, length, files });
  },
};
