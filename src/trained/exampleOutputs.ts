/** @file Examples of a run's decoder_out and eval_out, all shards together. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { explain, parseJson, readRegularFile } from '../files/index.js';
import { JobError } from '../programs/index.js';
import { type DecodedExample, type EvaluatedExample, EXAMPLE_ID } from '../tasks/index.js';

/** Outputs of a dataset at a step. */
export interface ExampleOutputs<Example> {
  readonly step: number;
  readonly numShards: number;
  /** Shard after shard, each in its order. */
  readonly examples: readonly Example[];
}

/**
 * Reads the files decoder_out_<step>_shard_<n>.jsonl of a folder (paxml's `load_outputs`).
 *
 * @param directory `decoder_out/<dataset>` of a run.
 * @param step may be left out where there is one.
 * @throws JobError for a folder without them, a step that is not there or not the only one, a missing shard, a damaged line.
 */
export function loadDecoderOutputs(directory: string, step?: number): ExampleOutputs<DecodedExample> {
  return load<DecodedExample>(directory, step, DECODER);
}

/** Reads the files eval_out_<step>_shard_<n>.jsonl of a folder, `eval_out/<dataset>` of a run. @throws as `loadDecoderOutputs` */
export function loadEvalOutputs(directory: string, step?: number): ExampleOutputs<EvaluatedExample> {
  return load<EvaluatedExample>(directory, step, EVAL);
}

/** A kind of files. */
interface Kind {
  readonly prefix: 'decoder_out' | 'eval_out';
  /** How they come to be, for messages. */
  readonly verb: string;
  readonly what: string;
  readonly schema: z.ZodType;
}

function load<Example>(directory: string, step: number | undefined, kind: Kind): ExampleOutputs<Example> {
  const { prefix, verb } = kind;
  const shards = shardsIn(directory, prefix);
  const steps = [...shards.keys()].sort((a, b) => a - b);
  const which = step ?? steps[0];
  if (which === undefined)
    throw new JobError(`${directory} has no ${prefix}_<step>_shard_<n>.jsonl. ${verb} the run first.`);
  if (step === undefined && steps.length > 1)
    throw new JobError(`${directory} has outputs of the steps ${steps.join(', ')}. Choose one.`);
  const found = shards.get(which);
  if (found === undefined)
    throw new JobError(
      `${directory} has no outputs of step ${which}. It has: ${steps.join(', ') || 'none'}.`,
    );
  const numShards = Math.max(...found) + 1;
  const names = Array.from({ length: numShards }, (_, n) => `${prefix}_${which}_shard_${n}.jsonl`);
  const missing = names.find((_, n) => !found.has(n));
  if (missing !== undefined)
    throw new JobError(
      `${directory} has no ${missing}, and has shard ${numShards - 1}. ${verb} the step again.`,
    );
  const examples = names.flatMap((name) => examplesOf<Example>(join(directory, name), kind));
  return { step: which, numShards, examples };
}

/** Numbers of the shards by step. */
function shardsIn(directory: string, prefix: string): Map<number, Set<number>> {
  const shards = new Map<number, Set<number>>();
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    throw new JobError(`${directory} cannot be read: ${explain(error)}.`, { cause: error });
  }
  const pattern = new RegExp(`^${prefix}_(\\d+)_shard_(\\d+)\\.jsonl$`);
  for (const name of names) {
    const [, step, shard] = pattern.exec(name) ?? [];
    if (shard === undefined) continue;
    const numbers = shards.get(Number(step)) ?? new Set();
    shards.set(Number(step), numbers.add(Number(shard)));
  }
  return shards;
}

/** Parts that programs compute with. JSON has null for a number that is not finite. */
const decoded = z.looseObject({
  prefix: z.string().optional(),
  decoded: z.string().optional(),
  decoded_substr: z.string().optional(),
  ids: z.array(z.number()).optional(),
  decoded_ids: z.array(z.number()).optional(),
  logprobs: z.array(z.number().nullable()).optional(),
  sampled: z.array(z.looseObject({})).optional(),
});

const DECODER: Kind = { prefix: 'decoder_out', verb: 'Decode', what: 'a decoded example', schema: decoded };

const EVAL: Kind = {
  ...{ prefix: 'eval_out', verb: 'Evaluate', what: 'an evaluated example' },
  schema: z.looseObject({ [EXAMPLE_ID]: z.int() }),
};

function examplesOf<Example>(path: string, { what, schema }: Kind): Example[] {
  const lines = readRegularFile(path).toString().trimEnd().split('\n');
  return lines.flatMap((line, i) => {
    if (line === '') return [];
    try {
      return [parseJson(line, schema) as Example];
    } catch (error) {
      throw new JobError(`${path}:${i + 1}: not ${what}: ${explain(error)}.`, { cause: error });
    }
  });
}
