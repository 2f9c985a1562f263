/** @file A trained run of tiny.Tiny, made once for the tests of a file. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runCommand, temporaryDirectory } from '../command.js';

/** What decode mode wrote of an example. */
export interface Decoded {
  readonly prefix: string;
  readonly decoded_substr: string;
}

/** Trains tiny.Tiny until it counts, more or less, with checkpoints of steps 196 and 200, and decodes its prompts. */
export async function tinyRun(): Promise<{ directory: string; decoded: Decoded[] }> {
  const directory = temporaryDirectory();
  const { code, stderr } = await runCommand([
    ...['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
    ...['numTrainSteps=200', 'modelDims=32', 'task.train.evalIntervalSteps=200'].flatMap((set) => [
      '--set',
      set,
    ]),
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const folder = join(directory, 'decoder_out/validation');
  const newest = readdirSync(folder).sort().at(-1)!;
  const lines = readFileSync(join(folder, newest), 'utf8').trim().split('\n');
  return { directory, decoded: lines.map((line) => JSON.parse(line)) };
}
