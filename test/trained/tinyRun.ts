/** @file Trained runs with their decoded prompts, each made once for the tests of a file. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runCommand, temporaryDirectory } from '../command.js';

/** What decode mode wrote of an example. */
export interface Decoded {
  readonly prefix: string;
  readonly decoded: string;
  readonly decoded_substr: string;
}

/** Trains an experiment, with a checkpoint of the last step, and decodes its prompts. */
export async function decodedRun(
  name: string,
  sets: Readonly<Record<string, number>>,
  cwd?: string,
): Promise<{ directory: string; decoded: Decoded[] }> {
  const directory = temporaryDirectory();
  const { code, stderr } = await runCommand(
    [
      ...[`--exp=${name}`, `--job_log_dir=${directory}`, '--mode=train_and_decode'],
      ...Object.entries(sets).flatMap(([path, value]) => ['--set', `${path}=${value}`]),
    ],
    cwd,
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const folder = join(directory, 'decoder_out/validation');
  const newest = readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .at(-1)!;
  const lines = readFileSync(join(folder, newest), 'utf8').trim().split('\n');
  return { directory, decoded: lines.map((line) => JSON.parse(line)) };
}

/** Trains tiny.Tiny until it counts, more or less, with checkpoints of steps 196 and 200, and decodes its prompts. */
export function tinyRun(): Promise<{ directory: string; decoded: Decoded[] }> {
  return decodedRun('tiny.Tiny', { numTrainSteps: 200, modelDims: 32, 'task.train.evalIntervalSteps': 200 });
}
