/** @file A vocabulary whose tokens split characters, and texts that a random model writes with it under constraints. */
import { prngKey, uniform } from '../../../src/compiler/index.js';
import {
  type Constraint,
  Constraints,
  type DecodeRequest,
  SampleDecoder,
} from '../../../src/decoding/index.js';
import { build } from '../../../src/hparams/index.js';

const pieces = [
  '{"',
  '":',
  '", "',
  '"}',
  '}]',
  'true',
  'null',
  'ab',
  'abc',
  '12',
  '-1',
  '0.',
  '€',
  '😀',
  'é"',
  '[{',
  ' ',
  '\n  ',
  '\\"',
  '\\u00',
];
const halves = [
  [0xe2, 0x82],
  [0xac, 0x22],
  [0xf0, 0x9f],
  [0x9f, 0x98, 0x80],
  [0x22, 0xc3],
  [0x61, 0xe2],
];

/** Bytes of each token: all single ones, pieces of JSON, and parts of characters. */
const tokens: readonly Uint8Array[] = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...pieces.map((text) => new TextEncoder().encode(text)),
  ...halves.map((bytes) => Uint8Array.from(bytes)),
];
const END = tokens.length;
const SIZE = END + 1;

export const constraints = new Constraints(SIZE, (id) => tokens[id], new Set([END]));

/** Whether a text fits a constraint, read byte by byte. */
export function fits(constraint: Constraint, text: string): boolean {
  let read = constraints.compile(constraint).begin();
  for (const byte of new TextEncoder().encode(text)) {
    if ((read.allowed()[byte >>> 5]! >>> (byte & 31)) % 2 === 0) return false;
    read = read.with(byte);
  }
  return (read.allowed()[END >>> 5]! >>> (END & 31)) % 2 === 1;
}

/** Tokens by which texts come to an end: the later, the likelier. */
const closing = tokens.map((bytes) => [0x22, 0x5d, 0x7d].includes(bytes.at(-1)!));

/** The text that a random model writes; null where a limit cuts it. @throws for broken UTF-8 */
export async function written(constraint: Constraint, seed: number, most = 400): Promise<string | null> {
  const decoder = build(SampleDecoder.config({ seqlen: most, eosId: END, k: 0, constraint }));
  const int32 = (shape: number[], id: number) => ({
    shape,
    dtype: 'int32' as const,
    data: Int32Array.of(id),
  });
  const request: DecodeRequest = {
    ...{ prefixIds: int32([1, 1], 0), prefixLengths: int32([1], 1), key: prngKey(seed), constraints },
    extendStep: async (_, step) => {
      const random = uniform(prngKey(seed * 1000 + step), SIZE);
      return Float32Array.from(random, (u, id) => {
        const isLast = id === END || closing[id] === true;
        // Text of ASCII is a little likelier than bytes of longer characters.
        return 4 * u + (id < 128 || id >= 256 ? 1 : 0) + (isLast ? step / 8 : 0);
      });
    },
  };
  const { outputIds, decodeLengths } = await decoder.decode(request);
  const ids = [...outputIds.data.subarray(1, decodeLengths.data[0])];
  if (ids.at(-1) !== END) return null;
  const bytes = ids.slice(0, -1).flatMap((id) => [...tokens[id]!]);
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
}
