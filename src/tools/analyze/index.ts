/** @file `luthier analyze`: the layers of a model, and the cost of a training step. */

import { analyze, peakOf, readDevice } from '../../analysis/index.js';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import { findPeak } from '../../programs/index.js';
import { enterForeignCode } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Command } from '../command.js';
import { configureFor } from '../commandExperiment.js';
import { analysisReport } from './analysisReport.js';

/** Typical of well-tuned training of large models; PaLM's was 0.46, and the best are not far above 0.6. */
const DEFAULT_MFU = 0.5;

/** A parser of a number in (0, 1]. */
function share(text: string, flag: string): number {
  const value = positive(false)(text, flag);
  if (value <= 1) return value;
  throw new UsageError(`${flag}: expected a number above 0 and at most 1; got '${text}'.`);
}

export const analyzeCommand: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    all: {
      key: 'all',
      about: 'Shows every layer; by default, consecutive equal layers share a row.',
      parse: () => true,
    },
    depth: {
      key: 'depth',
      value: 'N',
      about: 'Depth of the table, in levels below the model. Default: all.',
      parse: positive(true),
    },
    peak_tflops: {
      key: 'peakTflops',
      value: 'X',
      about: "The device's peak in 1e12 FLOP/s. Default: measured on this machine in half a second.",
      parse: positive(false),
    },
    mfu: {
      key: 'mfu',
      value: 'SHARE',
      about: `Model FLOPs utilisation that estimated times assume, in (0, 1]. Default: the device file's, else ${DEFAULT_MFU}.`,
      parse: share,
    },
    device: {
      key: 'device',
      value: 'FILE',
      about:
        'Device file (JSON or YAML) with peak, MFU, memory and price: the cost of the whole training there.',
      parse: nonEmpty,
    },
  },
  changes: true,
  formats: ['markdown'],
  details: [
    'The model is traced on shapes alone: no data is read and no weight initialised, so models of any size can be analysed.',
    'A multiply-add counts as two FLOPs, and a training step as three forward passes. Memory is per device and includes the',
    'activations saved for the backward pass, without those that remat recomputes. Under a mesh (task.mesh), a device holds',
    'its shard of each split tensor and a copy of every other.',
    '',
    '  npx luthier analyze lm.Small --set numLayers=8',
    '  npx luthier analyze lm.Small --depth=3 --peak_tflops=312 --mfu=0.4 --format=markdown',
    '  npx luthier analyze c4.C4Spmd1BAdam4ReplicasLimitSteps --depth=2 --device=devices/tpu-v4.yaml',
    '',
    'Exit codes: 0; 1 if the training input does not declare the shapes of its batches, or tracing fails; 2 for a wrong',
    'command line or config.',
  ].join('\n'),
  async run({ positionals: [name], values, changes, warn }) {
    const device = values.device === undefined ? undefined : readDevice(values.device as string);
    if (device && values.peakTflops !== undefined)
      throw new UsageError('--peak_tflops and --device: expected one of them; a device file has the peak.');
    const configured = await configureFor(name!, { changes, warn });
    const done = enterForeignCode(configured.name, 'analysed');
    const analysis = analyze(configured);
    done();
    const { peakTflops, all = false, depth } = values;
    const options = peakTflops === undefined ? {} : { peakTflops: peakTflops as number };
    const peak = device ? peakOf(device, analysis) : await findPeak(options, analysis.precision);
    return analysisReport({
      experiment: configured.name,
      analysis,
      peak,
      mfu: (values.mfu as number | undefined) ?? device?.assumedMfu ?? DEFAULT_MFU,
      ...(device && { device }),
      all: all as boolean,
      ...(depth !== undefined && { maxDepth: depth as number }),
    });
  },
};
