/** @file Tasks of numbered examples, and what their batches hold, for the tests of SeqIO inputs. */
import { z } from 'zod';
import type { Config, ConfigValues } from '../../../src/hparams/index.js';
import {
  AppendEos,
  BaseTokenizer,
  type Batch,
  type DataRecord,
  Feature,
  type InputSource,
  IterableSource,
  type LmBatch,
  nextBatch,
  SeqioInput,
  Task,
  Tokenize,
} from '../../../src/inputs/index.js';

/** Ids 2 … 1001 for the numbers in a text, 1 for its end. */
export class NumberTokenizer extends BaseTokenizer.with({}) {
  override get vocabSize(): number {
    return 1002;
  }
  override get eosId(): number {
    return 1;
  }
  override encode(text: string): Int32Array {
    return Int32Array.from(text.split(' ').filter(Boolean), (word) => Number(word) + 2);
  }
  override decode(ids: ArrayLike<number>): string {
    return Array.from(ids, (id) => (id < 2 ? '.' : id - 2)).join(' ');
  }
  override encodeFile(): never {
    throw new Error('no files');
  }
}

/** Records whose `targets` are the number `from + i`, `sizes[i mod length]` times. */
export class Numbers extends IterableSource.with({
  count: z.int(),
  from: z.int().default(0),
  sizes: z.array(z.int()).default([1]),
}) {
  protected override *records(): Iterable<DataRecord> {
    const { count, from, sizes } = this.hp;
    for (let i = 0; i < count; i++)
      yield {
        targets: Array(sizes[i % sizes.length])
          .fill(from + i)
          .join(' '),
      };
  }
}

export const features = () => ({ targets: Feature.config({ tokenizer: NumberTokenizer.config() }) });

/** A task of `count` examples of the numbers from `from` on. */
export function numbersTask(
  values: Partial<ConfigValues<Numbers>> & { count: number },
  preprocessors: ConfigValues<Task>['preprocessors'] = [Tokenize.config(), AppendEos.config()],
): Config<Task> {
  return Task.config({ source: Numbers.config(values), preprocessors, features: features() });
}

/** A SeqioInput of rows of 8 tokens. */
export function seqio(values: Partial<ConfigValues<SeqioInput>>): Config<SeqioInput> {
  return SeqioInput.config({
    ...{ splitName: 'all', taskFeatureLengths: { targets: 8 }, batchSize: 2 },
    ...values,
  } as ConfigValues<SeqioInput>);
}

/** The next batches, at most `count`. */
export async function batchesOf(input: InputSource, count = Number.POSITIVE_INFINITY): Promise<Batch[]> {
  const batches: Batch[] = [];
  while (batches.length < count) {
    const batch = await nextBatch(input);
    if (batch === undefined) break;
    batches.push(batch);
  }
  return batches;
}

/** The examples of a batch, each the list of its labels, in rows. */
function examplesOf(batch: Batch): number[][] {
  const { labels, segmentIds } = batch as LmBatch & { segmentIds: { data: Int32Array } };
  const [rows, length] = labels.shape as [number, number];
  const found = new Map<string, number[]>();
  for (let i = 0; i < rows * length; i++) {
    const segment = segmentIds.data[i]!;
    if (segment === 0) continue;
    const key = `${Math.floor(i / length)} ${segment}`;
    found.set(key, [...(found.get(key) ?? []), labels.data[i]!]);
  }
  return [...found.values()];
}

/** The numbers that the examples of batches begin with. */
export const numbersIn = (batches: readonly Batch[]): number[] =>
  batches.flatMap((batch) => examplesOf(batch).map(([first]) => first! - 2));

export const rising = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b);
