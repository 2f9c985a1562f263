/** @file Decoded examples of a run's decoder_out, all shards together. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { explain, parseJson, readRegularFile } from '../files/index.js';
import { JobError } from '../programs/index.js';
import type { DecodedExample } from '../tasks/index.js';

/** Decoded outputs of a dataset at a step. */
export interface DecoderOutputs {
  readonly step: number;
  readonly numShards: number;
  /** Shard after shard, each in its order. */
  readonly examples: readonly DecodedExample[];
}

/**
 * Reads the files decoder_out_<step>_shard_<n>.jsonl of a folder (paxml's `load_outputs`).
 *
 * @param directory `decoder_out/<dataset>` of a run.
 * @param step may be left out where there is one.
 * @throws JobError for a folder without them, a step that is not there or not the only one, a missing shard, a damaged line.
 */
export function loadDecoderOutputs(directory: string, step?: number): DecoderOutputs {
  const shards = shardsIn(directory);
  const steps = [...shards.keys()].sort((a, b) => a - b);
  const which = step ?? steps[0];
  if (which === undefined)
    throw new JobError(`${directory} has no decoder_out_<step>_shard_<n>.jsonl. Decode the run first.`);
  if (step === undefined && steps.length > 1)
    throw new JobError(`${directory} has outputs of the steps ${steps.join(', ')}. Choose one.`);
  const found = shards.get(which);
  if (found === undefined)
    throw new JobError(
      `${directory} has no outputs of step ${which}. It has: ${steps.join(', ') || 'none'}.`,
    );
  const numShards = Math.max(...found) + 1;
  const names = Array.from({ length: numShards }, (_, n) => `decoder_out_${which}_shard_${n}.jsonl`);
  const missing = names.find((_, n) => !found.has(n));
  if (missing !== undefined)
    throw new JobError(
      `${directory} has no ${missing}, and has shard ${numShards - 1}. Decode the step again.`,
    );
  return { step: which, numShards, examples: names.flatMap((name) => examplesOf(join(directory, name))) };
}

/** Numbers of the shards by step. */
function shardsIn(directory: string): Map<number, Set<number>> {
  const shards = new Map<number, Set<number>>();
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    throw new JobError(`${directory} cannot be read: ${explain(error)}.`, { cause: error });
  }
  for (const name of names) {
    const [, step, shard] = /^decoder_out_(\d+)_shard_(\d+)\.jsonl$/.exec(name) ?? [];
    if (shard === undefined) continue;
    const numbers = shards.get(Number(step)) ?? new Set();
    shards.set(Number(step), numbers.add(Number(shard)));
  }
  return shards;
}

/** Parts that programs compute with. JSON has null for a number that is not finite. */
const schema = z.looseObject({
  prefix: z.string().optional(),
  decoded: z.string().optional(),
  decoded_substr: z.string().optional(),
  ids: z.array(z.number()).optional(),
  decoded_ids: z.array(z.number()).optional(),
  logprobs: z.array(z.number().nullable()).optional(),
  sampled: z.array(z.looseObject({})).optional(),
});

function examplesOf(path: string): DecodedExample[] {
  const lines = readRegularFile(path).toString().trimEnd().split('\n');
  return lines.flatMap((line, i) => {
    if (line === '') return [];
    try {
      return [parseJson(line, schema) as unknown as DecodedExample];
    } catch (error) {
      throw new JobError(`${path}:${i + 1}: not a decoded example: ${explain(error)}.`, { cause: error });
    }
  });
}
