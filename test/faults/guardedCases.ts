/** @file Programs for guarded memory: every case of the compiler's tests, and sizes around the tiles of products, attention and windows. */
import fc from 'fast-check';
import { ops, type Precision, type TensorSpec, tf, withPrecision } from '../../src/compiler/index.js';
import type { Case } from '../compiler/cases/case.js';
import { caseTable } from '../compiler/cases/index.js';
import { floats } from '../compiler/values.js';
import { draw } from './campaign.js';

/** Cases that are compiled as one program. */
export interface GuardedProgram {
  readonly name: string;
  readonly cases: readonly Case[];
  readonly precision: Precision;
  /** Whether second operands are kept in bfloat16 by the caller. */
  readonly halves: boolean;
}

const size = (max: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.integer({ min: 1, max: Math.min(9, max) }),
    fc.integer({ min: 1, max }),
    fc.constantFrom(max, ...[8, 15, 16, 17, 31, 32, 33, 48, 64].filter((each) => each < max)),
  );

const product = fc
  .record({ m: size(70), n: size(100), k: size(300), batch: size(3), a: fc.boolean(), b: fc.boolean() })
  .map(({ m, n, k, batch, a, b }): Case => {
    const lead = batch > 1 ? [batch] : [];
    return {
      inputs: [floats([...lead, ...(a ? [k, m] : [m, k])]), floats([...lead, ...(b ? [n, k] : [k, n])])],
      f: (x, y) => tf.relu(tf.matMul(x, y, a, b)),
      differentiable: 2,
    };
  });

const attention = fc
  .record({
    queries: size(70),
    more: size(40),
    batch: size(2),
    heads: size(3),
    dims: size(40),
    valueDims: size(40),
    causal: fc.boolean(),
    masked: fc.boolean(),
  })
  .map(({ queries, more, batch, heads, dims, valueDims, causal, masked }): Case => {
    const keys = queries + more - 1;
    const qkv = [
      floats([batch, queries, heads, dims]),
      floats([batch, keys, heads, dims]),
      floats([batch, keys, heads, valueDims]),
    ];
    return {
      inputs: masked ? [...qkv, floats([batch, heads, queries, keys])] : qkv,
      f: (q, k, v, mask) => ops.attention(q, k, v, { causal, ...(masked && { mask }) }),
      differentiable: 3,
    };
  });

const windows = fc
  .record({
    image: fc.tuple(size(2), size(14), size(20), size(20)),
    window: fc.tuple(size(3), size(3)),
    to: size(20),
    strides: size(3),
    kind: fc.constantFrom('conv2d', 'depthwise', 'max', 'average'),
  })
  .map(({ image, window, to, strides, kind }): Case => {
    const x = floats(image);
    if (kind === 'max' || kind === 'average') {
      const pool = kind === 'max' ? tf.maxPool : tf.avgPool;
      return { inputs: [x], f: (a) => pool(a, window, strides, 'same'), differentiable: 1 };
    }
    const conv = kind === 'conv2d' ? tf.conv2d : tf.depthwiseConv2d;
    const filter = floats([...window, image[3], kind === 'conv2d' ? to : 1 + (to % 3)]);
    return {
      inputs: [x, filter],
      f: (a, w) => conv(a, w, strides, 'same', 'NHWC', 1),
      differentiable: 2,
    };
  });

/** How many cases that are drawn make one program. */
const TOGETHER = 8;

const drawn = (name: string, cases: fc.Arbitrary<Case>, programs: number, salt: number): GuardedProgram[] =>
  Array.from({ length: programs }, (_, i) => ({
    name: `${name} ${i}`,
    cases: draw(cases, TOGETHER, salt + i),
    precision: i % 2 === 1 ? 'bfloat16' : 'float32',
    halves: i % 4 === 3,
  }));

/** The same for the same seed: every operation's cases, and `programs` programs of each kind that is drawn. */
export function guardedPrograms(programs: number): GuardedProgram[] {
  const known = Object.entries(caseTable).map(
    ([name, cases]): GuardedProgram => ({ name, cases, precision: 'float32', halves: false }),
  );
  return [
    ...drawn('products', product, programs, 0x9a000),
    ...drawn('attention', attention, programs, 0x9b000),
    ...drawn('windows', windows, programs, 0x9c000),
    ...known,
  ];
}

/** As it is traced: in its precision. */
export const inPrecision =
  ({ precision }: GuardedProgram, f: Case['f']): Case['f'] =>
  (...xs) =>
    withPrecision(precision, () => f(...xs));

export const describeCase = ({ inputs }: Case): string =>
  inputs.map(({ dtype, shape }: TensorSpec) => `${dtype}[${shape}]`).join(' ');
