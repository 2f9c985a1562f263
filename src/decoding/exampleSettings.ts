/** @file Settings of single examples of a batch, in the place of a decoder's own (praxis/sample_decode.py). */
import type { HostTensor } from '../compiler/index.js';
import type { RowSettings } from './sampledIds.js';

/** Arrays of a batch of B prompts that replace fields of the decoder for each of them; each may be absent. */
export interface ExampleSettings {
  /** Of SampleDecoder, [B]. */
  readonly temperature?: HostTensor | undefined;
  /** Of SampleDecoder, [B]: at most its `k`; 0 for no fewer. */
  readonly perExampleTopK?: HostTensor | undefined;
  /** Of SampleDecoder, [B]. */
  readonly perExampleTopP?: HostTensor | undefined;
  /** Tokens after the prompt, [B]: at most `maxDecodeSteps`. */
  readonly perExampleMaxDecodeSteps?: HostTensor | undefined;
  /** Tokens that end an example once they are its last ones, [B, N], behind zeros that fill shorter ones up. */
  readonly eosId?: HostTensor | undefined;
  /** Seeds of the draws, int32 [B], in the place of the request's key. */
  readonly gumbelPrngKey?: HostTensor | undefined;
}

/** Names of the settings, as batches have them. */
const NAMES = [
  ...['temperature', 'perExampleTopK', 'perExampleTopP'],
  ...['perExampleMaxDecodeSteps', 'eosId', 'gumbelPrngKey'],
] as readonly (keyof ExampleSettings)[];

/** Fields of a rule by the setting that replaces them. */
const OF_RULE = { temperature: 'temperature', perExampleTopK: 'k', perExampleTopP: 'p' } as const;

/** The settings among the arrays of a batch. */
export function exampleSettings(arrays: ReadonlyMap<string, HostTensor>): ExampleSettings {
  return Object.fromEntries(NAMES.flatMap((name) => (arrays.has(name) ? [[name, arrays.get(name)!]] : [])));
}

/** @throws RangeError for a setting of another shape than a batch of `batchSize` has */
export function checkSettings(settings: ExampleSettings, batchSize: number): void {
  for (const name of NAMES) {
    const shape = settings[name]?.shape;
    if (shape === undefined) continue;
    const isMatrix = name === 'eosId';
    if (shape[0] === batchSize && shape.length === (isMatrix ? 2 : 1)) continue;
    const expected = isMatrix ? `[${batchSize}, N]` : `[${batchSize}]`;
    throw new RangeError(`decode: expected '${name}' of shape ${expected}, got [${shape.join(', ')}].`);
  }
}

/** Fields of the rule that examples have of their own. */
export const ruleFields = (settings: ExampleSettings): (keyof RowSettings<unknown>)[] =>
  Object.entries(OF_RULE).flatMap(([name, field]) =>
    settings[name as keyof ExampleSettings] === undefined ? [] : [field],
  );

/** These fields for rows, of which `each` continue an example. */
export function rowSettings(settings: ExampleSettings, each: number): RowSettings<number[]> {
  return Object.fromEntries(
    Object.entries(OF_RULE).flatMap(([name, field]) => {
      const values = settings[name as keyof ExampleSettings];
      return values === undefined ? [] : [[field, rowsOf(values, each)]];
    }),
  );
}

/** The elements of an array [B], each `times` times. */
export const rowsOf = ({ data }: HostTensor, times: number): number[] =>
  Array.from(data, Number).flatMap((value) => new Array<number>(times).fill(value));

/** The ends of rows, of which `each` continue an example: without the zeros before them. */
export function endSequences({ shape, data }: HostTensor, each: number): readonly (readonly number[])[] {
  const [rows, width] = shape as [number, number];
  return Array.from({ length: rows * each }, (_, row) => {
    const begin = Math.floor(row / each) * width;
    const ids = Array.from(data.slice(begin, begin + width), Number);
    const first = ids.findIndex((id) => id !== 0);
    return first < 0 ? [] : ids.slice(first);
  });
}
