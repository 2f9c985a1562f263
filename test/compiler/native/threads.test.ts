/** @file The native engine's bits do not depend on the number of threads: shapes alone say how sums are split. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compile,
  type HostArray,
  type HostTensor,
  ops,
  type Tensor,
  tf,
  valueAndGrad,
  withPrecision,
} from '../../../src/compiler/index.js';
import { mapTree } from '../../../src/compiler/program/tensorTrees.js';
import { isSpec } from '../../../src/compiler/trace/tracedProgram.js';
import { draw, runs, seed, title } from '../../faults/campaign.js';
import { leavesOf } from '../repeatedRuns.js';
import { floats, ints } from '../values.js';
import { hasCompiler } from './compilerSupport.js';

const THREADS = [1, 2, 3, 4, 7];

/** Sizes whose parts are of unequal lengths, some beyond a block, a slab or a panel. */
const sizes = fc.record({
  rows: fc.integer({ min: 40, max: 300 }),
  inner: fc.integer({ min: 1, max: 1700 }),
  columns: fc.integer({ min: 1, max: 150 }),
  wide: fc.integer({ min: 256, max: 20_000 }),
  long: fc.integer({ min: 4096, max: 9000 }),
  heads: fc.integer({ min: 1, max: 3 }),
  time: fc.integer({ min: 5, max: 90 }),
  channels: fc.integer({ min: 16, max: 50 }),
  side: fc.integer({ min: 9, max: 30 }),
  precision: fc.constantFrom('float32' as const, 'bfloat16' as const),
});

type Sizes = typeof sizes extends fc.Arbitrary<infer S> ? S : never;

function inputsOf({ rows, inner, columns, wide, long, heads, time, channels, side }: Sizes) {
  const shapes = {
    x: [rows, inner],
    w: [inner, columns],
    gain: [columns],
    solid: [7, rows, columns],
    few: [3, wide],
    left: [long, 27],
    right: [long, 10],
    q: [2, time, heads, 8],
    k: [2, time, heads, 8],
    bias: [1, heads, time, time],
    table: [11, columns],
    image: [3, side, side, channels],
    filter: [3, 3, channels, channels + 3],
    taps: [3, 3, channels, 1],
    groups: [3, side, side, 5, 7],
  };
  const drawn = Object.entries(shapes).map(
    ([name, shape], i) => [name, floats(shape, -1, 1, 50 + i)] as const,
  );
  return { floats: Object.fromEntries(drawn), ids: ints([rows], 0, 11) };
}

type Floats = Record<keyof ReturnType<typeof inputsOf>['floats'], Tensor>;

/** Terms of a loss: what each kind of sum is made for, in the forward or the backward pass. */
function terms(
  { x, w, gain, solid, few, left, right, q, k, bias, table, image, filter, taps, groups }: Floats,
  ids: Tensor,
): Tensor[] {
  const hidden = ops.gelu(tf.add(tf.matMul(x!, w!), tf.gather(table!, ids as tf.Tensor1D)));
  const normed = ops.layerNorm(hidden, gain!, gain!, { epsilon: 1e-5 });
  return [
    tf.mean(tf.square(normed)),
    tf.mean(tf.logSoftmax(normed)),
    ops.attention(q!, k!, q!, { causal: true }),
    ops.attention(k!, q!, k!, { mask: bias!, logitCap: 5 }),
    tf.conv2d(image as tf.Tensor4D, filter as tf.Tensor4D, 1, 'same'),
    tf.depthwiseConv2d(image as tf.Tensor4D, taps as tf.Tensor4D, 2, 'valid'),
    tf.square(tf.sum(tf.square(few!))),
    tf.matMul(left!, right!, true),
    tf.exp(tf.mean(solid!)),
    groupNorm(groups!),
  ].map((term) => tf.sum(tf.sin(term)) as Tensor);
}

/** A norm of groups of a few channels, over all positions. */
function groupNorm(x: Tensor): Tensor {
  const { mean, variance } = tf.moments(x, [1, 2, 4], true);
  return tf.div(tf.sub(x, mean), tf.sqrt(tf.add(variance, 1e-3)));
}

/** Every sum of a tensor over some of its axes. */
const sums = (x: Tensor): Tensor[] =>
  [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]].flatMap((axes) => [
    tf.sum(tf.square(x), axes) as Tensor,
    tf.max(x, axes) as Tensor,
  ]);

/** The loss, its gradients as a step clips them, and sums. */
const program =
  (precision: Sizes['precision']) =>
  ({ floats, ids }: { floats: Floats; ids: Tensor }) =>
    withPrecision(precision, () => {
      const { value, grads } = valueAndGrad(
        (given: Floats) => ({ value: tf.addN(terms(given, ids)) as Tensor, aux: {} }),
        floats,
      );
      const all = Object.values(grads);
      const norm = tf.sqrt(tf.addN(all.map((grad) => tf.sum(tf.square(grad)) as Tensor)));
      const clipped = all.map((grad, i) =>
        tf.sub(Object.values(floats)[i]!, tf.div(grad, tf.maximum(norm, 1))),
      );
      return {
        value,
        norm,
        grads,
        clipped,
        sums: [...sums(floats.solid!), tf.sum(floats.few!), tf.sum(floats.few!, 0)],
      };
    });

const drawn = draw(sizes, runs(12, 1), 0x7ead);

describe.skipIf(!hasCompiler)(title('any number of threads gives the same bits'), () => {
  test.each(drawn)(
    'of products, reductions, attention, convolutions and a clipped step: %o',
    async (size) => {
      const inputs = inputsOf(size);
      const arrays = mapTree<HostTensor, HostArray>(
        inputs,
        isSpec as (value: unknown) => value is HostTensor,
        ({ data }) => data,
      );
      const results: HostTensor[][] = [];
      for (const numThreads of THREADS) {
        const f = program(size.precision) as never;
        const executable = await compile(f, inputs as never, {
          engine: 'native',
          numThreads,
          name: 'threads',
        });
        results.push(leavesOf(structuredClone(await executable.bind({ inputs: arrays }).run())));
        await executable.dispose();
      }
      expect(results[0]!.some(({ data }) => data.some((x) => x !== 0 && Number.isFinite(x)))).toBe(true);
      THREADS.forEach((threads, i) => {
        const differing = results[i]!.flatMap((result, output) =>
          Buffer.compare(Buffer.from(result.data.buffer), Buffer.from(results[0]![output]!.data.buffer)) === 0
            ? []
            : [`output ${output} [${result.shape}]`],
        );
        expect(differing, `${threads} threads, SEED=${seed}`).toEqual([]);
      });
    },
  );
});
