/**
 * @file Files of examples that programs write: decoder_out and eval_out, a line of JSON each (paxml's write_key_value_pairs), and
 * decoded ones as text beside.
 */
import { join } from 'node:path';
import { writeJobFile } from '../runs/index.js';
import type { DecodedExample, ProgramRun } from '../tasks/index.js';

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

/** A decoded example for readers, as Pax writes it: its prefix, and each continuation behind `>>>`. */
export function decodedText({ prefix, sampled, ...best }: DecodedExample): string {
  const samples = (sampled ?? [best]).map((sample) => `>>>\n${sample.decoded_substr}`);
  return ['---', prefix, ...samples].join('\n');
}

/** The text that an example has where it was continued. */
function reference({ seqio_targets: target, original, prefix }: DecodedExample): string {
  if (typeof target === 'string') return target;
  return original.startsWith(prefix) ? original.slice(prefix.length) : original;
}

/** Writes decoded examples as lines of JSON and, with what they continue with themselves behind `REF`, as text. @returns as `writeExamples` */
export function writeDecoded(
  run: Pick<ProgramRun, 'directory' | 'step'>,
  dataset: string,
  examples: readonly DecodedExample[],
): string {
  const path = writeExamples(run, 'decoder', dataset, examples);
  const texts = examples.map((example) => `${decodedText(example)}\nREF\n${reference(example)}\n`);
  writeJobFile(path.replace(/jsonl$/, 'txt'), texts.join(''));
  return path;
}
