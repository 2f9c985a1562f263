/** @file Attention to codes with scales and to shared heads, on every engine, against plain sums in double precision. */
import { describe, expect, test } from 'vitest';
import { compile, ops, prngKey, type Tensor, tf, uniform } from '../../../src/compiler/index.js';
import { engines } from '../engines.js';
import { f32, i32, layoutOf, opText } from '../native/plans.js';

/** Sizes of an attention over a cache: rows, heads of keys, heads of queries for each, queries, keys, depth of keys and values. */
interface Sizes {
  readonly rows: number;
  readonly held: number;
  readonly shared: number;
  readonly queries: number;
  readonly keys: number;
  readonly depth: number;
  readonly valueDepth: number;
}

/** Numbers from -1 to 1. */
const drawn = (count: number, seed: number): Float32Array =>
  uniform(prngKey(seed), count).map((x) => 2 * x - 1) as Float32Array;

const codesOf = (count: number, seed: number): Int8Array =>
  Int8Array.from(drawn(count, seed), (x) => Math.round(127 * x));

interface Given {
  readonly q: Float32Array;
  readonly k: Int8Array;
  readonly v: Int8Array;
  readonly kScales: Float32Array;
  readonly vScales: Float32Array;
  readonly visible: Int32Array;
}

function givenOf({ rows, held, shared, queries, keys, depth, valueDepth }: Sizes): Given {
  const positive = (x: Float32Array): Float32Array => x.map((each) => 0.02 * (1.5 + each));
  return {
    q: drawn(rows * queries * held * shared * depth, 1),
    k: codesOf(rows * held * keys * depth, 2),
    v: codesOf(rows * held * keys * valueDepth, 3),
    kScales: positive(drawn(rows * held * keys, 4)),
    vScales: positive(drawn(rows * held * keys, 5)),
    visible: Int32Array.from({ length: rows }, (_, i) => Math.max(queries, keys - 3 * i - 1)),
  };
}

/** Causal attention of the last keys that each row has. */
function expected(
  given: Given,
  { rows, held, shared, queries, keys, depth, valueDepth }: Sizes,
): Float64Array {
  const out = new Float64Array(rows * queries * held * shared * valueDepth);
  for (let b = 0; b < rows; b++)
    for (let t = 0; t < queries; t++)
      for (let n = 0; n < held * shared; n++) {
        const head = b * held + Math.floor(n / shared);
        const query = ((b * queries + t) * held * shared + n) * depth;
        const seen = given.visible[b]! - queries + t + 1;
        const weights = Array.from({ length: seen }, (_, s) => {
          let sum = 0;
          for (let d = 0; d < depth; d++)
            sum += given.q[query + d]! * given.k[(head * keys + s) * depth + d]!;
          return (sum * given.kScales[head * keys + s]!) / Math.sqrt(depth);
        });
        const most = Math.max(...weights);
        const exps = weights.map((x) => Math.exp(x - most));
        const total = exps.reduce((a, x) => a + x, 0);
        for (let d = 0; d < valueDepth; d++) {
          let sum = 0;
          for (const [s, x] of exps.entries())
            sum += x * given.v[(head * keys + s) * valueDepth + d]! * given.vScales[head * keys + s]!;
          out[((b * queries + t) * held * shared + n) * valueDepth + d] = sum / total;
        }
      }
  return out;
}

type Tensors = Record<keyof Given, Tensor>;

/** [B, N, S, H] in codes as [B, S, N, H]. */
const floats = (codes: Tensor, scales: Tensor): Tensor =>
  tf.transpose(tf.mul(tf.cast(codes, 'float32'), scales), [0, 2, 1, 3]);

function repeated(x: Tensor, times: number): Tensor {
  if (times === 1) return x;
  const [rows, keys, heads, depth] = x.shape as [number, number, number, number];
  const tiled = tf.tile(tf.reshape(x, [rows * keys, heads, 1, depth]), [1, 1, times, 1]);
  return tf.reshape(tiled, [rows, keys, heads * times, depth]);
}

const attend = ({ q, k, v, kScales, vScales, visible }: Tensors, { shared }: Sizes): Tensor =>
  ops.attention(q, repeated(floats(k, kScales), shared), repeated(floats(v, vScales), shared), {
    causal: true,
    visible,
  });

const specsOf = ({ rows, held, shared, queries, keys, depth, valueDepth }: Sizes) => ({
  q: f32(rows, queries, held * shared, depth),
  k: { ...i32(rows, held, keys, depth), storage: 'int8' as const },
  v: { ...i32(rows, held, keys, valueDepth), storage: 'int8' as const },
  kScales: f32(rows, held, keys, 1),
  vScales: f32(rows, held, keys, 1),
  visible: i32(rows),
});

const plain = { rows: 2, held: 3, shared: 1, queries: 1, keys: 37, depth: 16, valueDepth: 16 };
const cases: Record<string, Sizes> = {
  'a step': plain,
  'a step of many keys': { ...plain, keys: 700, depth: 64, valueDepth: 64 },
  'odd depths': { ...plain, depth: 21, valueDepth: 9 },
  drafts: { ...plain, queries: 4 },
  'a block': { ...plain, queries: 24, keys: 90, valueDepth: 8 },
  'a block of many keys': { ...plain, rows: 1, held: 2, queries: 8, keys: 700 },
  'shared heads': { ...plain, held: 2, shared: 3 },
  'one head': { ...plain, held: 1, shared: 4, keys: 300 },
  'a block of shared heads': { ...plain, held: 2, shared: 2, queries: 20, keys: 60 },
};

describe.each(engines)('%s', (_title, { engine, available }) => {
  test.skipIf(!available).each(Object.entries(cases))('%s', async (_, sizes) => {
    const given = givenOf(sizes);
    const executable = await compile((x: Tensors) => attend(x, sizes), specsOf(sizes), {
      engine,
      numThreads: 2,
    });
    const call = executable.bind({ inputs: given as never });
    const { data } = (await call.run()) as unknown as { data: Float32Array };
    await executable.dispose();
    for (const [i, x] of expected(given, sizes).entries()) expect(Math.abs(data[i]! - x)).toBeLessThan(2e-5);
  });
});

test('codes and heads are read where memory holds them', () => {
  const sizes = { ...plain, held: 2, shared: 3 };
  const names = Object.keys(specsOf(sizes)) as (keyof Given)[];
  const { ops: placed } = layoutOf(
    (...x: Tensor[]) => attend(Object.fromEntries(names.map((name, i) => [name, x[i]])) as Tensors, sizes),
    ...Object.values(specsOf(sizes)),
  );
  expect(placed.map(opText)).toEqual([
    'HeldAttention(float32 in0[2,1,6,16], int8 in1[2,37,2,16]:(1184,16,592,1), int8 in2[2,37,2,16]:(1184,16,592,1), ' +
      'int32 in5[2], float32 in3[2,37,2,1]:(74,1,37,1), float32 in4[2,37,2,1]:(74,1,37,1)) -> float32 out0[2,1,6,16], ' +
      'float32 b7[2,6,1]',
  ]);
});
