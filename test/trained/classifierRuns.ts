/** @file Trained runs of the small classifiers of test/fixtures/classifiers, and their data. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { encode } from 'fast-png';
import { runTraining } from '../../src/programs/trainJob.js';
import type { JobOptions } from '../../src/runs/options.js';
import { StopSignal } from '../../src/system/index.js';
import { temporaryDirectory } from '../command.js';
import type { Reviews, Shades, Sums } from '../fixtures/classifiers/experiments/classifiers.js';

/** The project of the experiments. */
export const classifiers = fileURLToPath(new URL('../fixtures/classifiers', import.meta.url));

/** Reviews whose words tell the verdict; a CSV file. */
export function reviews(directory: string): string {
  const [good, bad] = [
    ['fine', 'great', 'lovely'],
    ['dull', 'poor', 'awful'],
  ];
  const lines = Array.from({ length: 96 }, (_, i) => {
    const isGood = i % 2 === 0;
    const word = (isGood ? good : bad)![(i >> 1) % 3]!;
    return `"${['a', 'one', 'this'][(i % 5) % 3]} ${word} film",${isGood ? 'good' : 'bad'}`;
  });
  const path = join(directory, 'reviews.csv');
  writeFileSync(path, `text,verdict\n${lines.join('\n')}\n`);
  return path;
}

/** Pairs of numbers and their sums; a CSV file. */
export function sums(directory: string): string {
  const lines = Array.from({ length: 64 }, (_, i) =>
    [(i % 8) / 8, (i >> 3) / 8, (i % 8) / 8 + (i >> 3) / 8].join(),
  );
  const path = join(directory, 'sums.csv');
  writeFileSync(path, `a,b,sum\n${lines.join('\n')}\n`);
  return path;
}

/** An image of one grey, as a PNG file's bytes. */
export const greyImage = (grey: number): Uint8Array =>
  encode({ height: 4, width: 4, channels: 1, data: new Uint8Array(16).fill(grey) });

/** A folder for each of the classes dark and light. */
export function shades(directory: string): string {
  for (const [name, least] of [
    ['dark', 0],
    ['light', 160],
  ] as const) {
    mkdirSync(join(directory, 'shades', name), { recursive: true });
    for (let i = 0; i < 24; i++)
      writeFileSync(join(directory, 'shades', name, `${i}.png`), greyImage(least + 3 * i));
  }
  return join(directory, 'shades');
}

/** Trains an experiment on data in this process; gives the directory of the run. */
export async function trainedOn(
  Made: typeof Reviews | typeof Sums | typeof Shades,
  data: string,
  constants: { readonly numTrainSteps?: number } = {},
): Promise<string> {
  const experiment = Object.assign(new Made(), { data, ...constants });
  const jobLogDir = join(temporaryDirectory(), 'run');
  const options: JobOptions = {
    ...{ name: `classifiers.${Made.name}`, jobLogDir, mode: 'train_and_eval', engine: 'onnx' },
    ...{ task: experiment.task(), datasets: experiment.datasets(), decodeDatasets: [] },
    ...{ overrides: [], classVars: '', peakTflops: 1 },
    moduleUrl: new URL('experiments/classifiers.ts', `${pathToFileURL(classifiers)}/`).href,
  };
  await runTraining(options, new StopSignal());
  return jobLogDir;
}
