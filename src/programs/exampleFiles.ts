/** @file Files of examples that programs write, a line of JSON each: decoder_out and eval_out (paxml's write_key_value_pairs). */
import { join } from 'node:path';
import { writeJobFile } from '../runs/index.js';
import type { ProgramRun } from '../tasks/index.js';

/** Prefix of the names of files and folders. */
export type ExamplePrefix = 'decoder' | 'eval';

/** Writes the examples of a dataset at the present step. @returns the path of the file @throws JobError */
export function writeExamples(
  { directory, step }: Pick<ProgramRun, 'directory' | 'step'>,
  prefix: ExamplePrefix,
  dataset: string,
  examples: readonly object[],
): string {
  const path = join(directory, `${prefix}_out`, dataset, `${prefix}_out_${step}_shard_0.jsonl`);
  writeJobFile(path, examples.map((example) => `${JSON.stringify(example)}\n`).join(''));
  return path;
}
