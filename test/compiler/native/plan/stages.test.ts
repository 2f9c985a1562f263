/** @file Units, stages, steps and memory: what is fused, pipelined and kept. */
import { expect, test } from 'vitest';
import { ops, valueAndGrad, withPrecision } from '../../../../src/compiler/index.js';
import { firstFit } from '../../../../src/compiler/native/plan/memory.js';
import { planNative } from '../../../../src/compiler/native/plan/planGraphs.js';
import { sumPartsOf } from '../../../../src/compiler/native/plan/products.js';
import { partsOf } from '../../../../src/compiler/native/plan/profiledParts.js';
import {
  f32,
  i32,
  kindOf,
  layoutOf,
  nameOf,
  planOf,
  stageTexts,
  type Traced,
  tf,
  unitText,
} from '../plans.js';

const units = (f: Traced, ...specs: ReturnType<typeof f32>[]): string[] =>
  planOf(f, ...specs).units.map(unitText);

test('elementwise operations and reductions between them fuse into one loop', () => {
  expect(units((x) => tf.sub(tf.exp(x), tf.sum(x, 1, true)), f32(64, 32))).toEqual([
    'loop 64x32 Exp Sum:row Sub',
  ]);
});

test('codes and what is flat beside them are one loop over the rows of their scales, floats alone are not', () => {
  const scaled = (codes: any, scale: any, g: any) => {
    const rows = tf.mul(tf.reshape(tf.cast(codes, 'float32'), [64, 256]), tf.expandDims(scale, 1));
    const sums = tf.add(tf.reshape(rows, [64 * 256]), g);
    return ops.stored(ops.nearestInteger(sums, [-127, 127]) as any, 'int8');
  };
  const codes = { ...i32(64 * 256), storage: 'int8' as const };
  expect(units(scaled, codes, f32(64), f32(64 * 256))).toEqual([
    'loop 64x256 Cast Multiply Add NearestInteger Copy',
  ]);
  const plain = (x: any, scale: any) => tf.mul(tf.reshape(tf.exp(x), [64, 256]), tf.expandDims(scale, 1));
  expect(units(plain, f32(64 * 256), f32(64))).toEqual(['loop 16384x0 Exp Multiply']);
});

test('an update with codes squares gradients again, beside their norm', () => {
  const size = 64 * 256;
  const step = (codes: any, g: any) => {
    const square = tf.square(g);
    const norm = tf.sqrt(tf.sum(square));
    return [
      ops.stored(ops.nearestInteger(tf.div(tf.add(tf.cast(codes, 'float32'), square), norm), [0, 9]), 'int8'),
    ];
  };
  expect(units(step as any, { ...i32(size), storage: 'int8' as const }, f32(size))).toEqual([
    `loop 1x${size} Square Sum:all`,
    `loop 1x${size} Sqrt Cast Square Add RealDiv NearestInteger Copy`,
  ]);
});

test('softmax fuses into one loop', () => {
  expect(units((x) => tf.softmax(x), f32(8, 100))).toEqual([
    'loop 8x100 Max:row Sub Exp Sum:row Reciprocal Multiply',
  ]);
});

test('a sum over rows closes the loop for those that read it', () => {
  expect(units((x) => tf.add(x, tf.sum(x, 0)), f32(64, 32))).toEqual([
    'loop 64x32 Sum:column',
    'loop 64x32 Add',
  ]);
});

test('a small border is not moved behind what is written into it', () => {
  const edges: [number, number][] = [
    [0, 0],
    [1, 0],
  ];
  expect(units((x) => tf.pad(tf.unstack(tf.tanh(x), 2)[0]!, edges), f32(8, 5, 2))).toEqual([
    'loop 1x80 Tanh',
    'loop 1x48 Copy',
    'loop 8x5 Overwrite',
  ]);
});

test('contiguous data are one row', () => {
  expect(units((x) => tf.exp(x), f32(4, 5, 6))).toEqual(['loop 1x120 Exp']);
  expect(units((x) => tf.exp(tf.transpose(x)), f32(4, 5))).toEqual(['loop 5x4 Exp']);
});

test('axes in front of a shared right operand are rows; others are a batch', () => {
  expect(units((x, y) => tf.matMul(tf.reshape(x, [6, 4]), y), f32(2, 3, 4), f32(4, 5))).toEqual([
    'product 6x5x4',
  ]);
  expect(units((x, y) => tf.matMul(x, y), f32(2, 3, 4), f32(2, 4, 5))).toEqual(['product 2x3x5x4']);
  expect(units((x, y) => tf.matMul(x, y), f32(2, 3, 4), f32(1, 4, 5))).toEqual(['product 6x5x4']);
});

test('a table, even of scalars, is complete before it is read', () => {
  const pick = (x: any, ids: any) => tf.gather(tf.stack([tf.tanh(x), tf.neg(x)]), ids);
  expect(units(pick, f32(), i32(3))).toEqual(['loop 1x0 Tanh Neg', 'loop 1x3 GatherV2']);
});

test('products of integers are exact sums in one loop', () => {
  expect(units((x, y) => tf.matMul(x, y), i32(3, 4), i32(4, 5))).toEqual(['loop 15x4 Multiply Sum:row']);
});

/** Two layers of a perceptron and their loss. */
const perceptron = (x: any, v: any, w: any) => tf.matMul(tf.relu(tf.matMul(x, v)), w);

test('threads divide the columns of a large product that has rows for one block alone', () => {
  const stages = (rows: number, columns: number) =>
    stageTexts(planOf((x, w) => tf.relu(tf.matMul(x, w)), f32(rows, 512), f32(512, columns)));
  expect(stages(64, 256)).toEqual(['pack: 1', 'narrow: product 64x256x512', 'chain 64: loop 64x256 Relu']);
  expect(stages(64, 16)).toEqual(['pack: 1', 'chain 64: product 64x16x512; loop 64x16 Relu']);
  expect(stages(128, 256)).toEqual(['pack: 1', 'chain 128: product 128x256x512; loop 128x256 Relu']);
});

test('few rows are multiplied by a large matrix outside of chains, as it is packed', () => {
  const stages = (...[rows, columns]: [number, number]): string[] =>
    stageTexts(planOf((x, w) => tf.relu(tf.matMul(x, w)), f32(rows, 512), f32(512, columns)));
  expect(stages(512, 2048)).toEqual(['products: product 512x2048x512', 'chain 512: loop 512x2048 Relu']);
  expect(stages(520, 2048)).toEqual(['pack: 1', 'chain 520: product 520x2048x512; loop 520x2048 Relu']);
  expect(stages(512, 2040)).toEqual(['pack: 1', 'chain 512: product 512x2040x512; loop 512x2040 Relu']);
  const frozen = planNative(
    layoutOf((x, w) => tf.matMul(x, w), f32(512, 512), f32(512, 2048)),
    new Set([1]),
  );
  expect(stageTexts(frozen)).toEqual(['pack: 1', 'chain 512: product 512x2048x512']);
});

test('products and loops over the same rows form a chain with scratch memory', () => {
  const plan = planOf((x, v, w) => tf.tanh(perceptron(x, v, w)), f32(512, 32), f32(32, 48), f32(48, 16));
  expect(stageTexts(plan)).toEqual([
    'pack: 2',
    'chain 512: product 512x48x32; loop 512x48 Relu; product 512x16x48; loop 512x16 Tanh',
  ]);
  const written = plan.units.flatMap((unit) =>
    unit.kind === 'product'
      ? [nameOf(unit.c.buffer)]
      : unit.kind === 'loop'
        ? unit.nodes.map(({ write }) => nameOf(write.buffer))
        : [],
  );
  expect(written.map((name) => name.replace(/\d+$/, ''))).toEqual(['scratch', 'scratch', 'scratch', 'out']);
  expect(plan.arenaBytes).toBe(0);
});

/** The loss of the perceptron with the gradients of its weights. */
const gradients: Traced = (x, v, w) => {
  const { value, grads } = valueAndGrad(
    ([a, b]: any) => ({ value: tf.mean(tf.square(perceptron(x, a, b))), aux: [] as any }),
    [v, w] as any,
  );
  return [value, ...(grads as any)];
};

test('gradients of weights wait for the end of the chain; forward and backward pass share one', () => {
  const plan = planOf(gradients, f32(512, 32), f32(32, 48), f32(48, 16));
  expect(stageTexts(plan)).toEqual([
    'pack: 3',
    'chain 512: product 512x48x32; loop 512x48 Relu; product 512x16x48; loop 512x16 Square Sum:all Multiply; ' +
      'product 512x48x16; loop 512x48 Step Multiply',
    'products: product 48x16x512; product 32x48x512',
    'loop: loop 1x0 Multiply',
  ]);
  // Only operands of the gradients outlive their block of rows.
  expect(plan.plan.steps.map(({ kind, epoch }) => `${epoch} ${kind}`)).toEqual([
    '0 pack',
    '1 chain',
    '2 finish',
    '2 products',
    '3 loop',
  ]);
});

test('values that are only multiplied in bfloat16 are stored rounded', () => {
  const plan = planOf(
    (...args) => withPrecision('bfloat16', () => gradients(...args) as any),
    f32(512, 32),
    f32(32, 48),
    f32(48, 16),
  );
  const storage = new Map(
    plan.units.flatMap((unit) =>
      unit.kind === 'loop'
        ? unit.nodes.map((node) => [`${node.op}`, node.write.buffer.storage] as const)
        : [],
    ),
  );
  expect(storage.get('Relu')).toBe('bfloat16');
  expect(storage.get('Multiply')).not.toBe('int32');
});

test('what turns of a loop stack to be multiplied is stored rounded, unless anything else reads it', () => {
  const reluOf = (isRead: boolean) => {
    const plan = planOf(
      (x, w) =>
        withPrecision('bfloat16', () => {
          const turn = (carry: any): any => {
            const y = tf.relu(carry);
            return [tf.sin(tf.matMul(y, w)), y];
          };
          const [last, stack] = ops.scan<any, [], any>(turn, x, [], { length: 3 });
          const product = tf.matMul(tf.reshape(stack, [192, 64]), w);
          return isRead ? [last, product, tf.exp(stack)] : [last, product];
        }),
      f32(64, 64),
      f32(64, 64),
    );
    const nodes = plan.units.flatMap((unit) => (unit.kind === 'loop' ? unit.nodes : []));
    return nodes.filter(({ op }) => op === 'Relu').map(({ write }) => write.buffer.storage);
  };
  expect(reluOf(false)).toEqual(['bfloat16']);
  expect(reluOf(true)).toEqual(['float32']);
});

test('values that attention multiplies are stored rounded, unless it adds them to logits as well', () => {
  const reluOf = (isMask: boolean) => {
    const plan = planOf(
      (x, k, v) =>
        withPrecision('bfloat16', () => {
          const y = tf.relu(x);
          const mask = tf.reshape(isMask ? y : x, [1, 1, 64, 64]);
          return ops.attention(tf.reshape(y, [1, 64, 1, 64]), k, v, { mask });
        }),
      f32(64, 64),
      f32(1, 64, 1, 64),
      f32(1, 64, 1, 64),
    );
    const nodes = plan.units.flatMap((unit) => (unit.kind === 'loop' ? unit.nodes : []));
    return nodes.map(({ op, write }) => `${op}: ${write.buffer.storage}`);
  };
  expect(reluOf(false)).toEqual(['Relu: bfloat16']);
  expect(reluOf(true)).toEqual(['Relu: float32']);
});

test('few rows are no chain: threads share the columns', () => {
  const texts = stageTexts(planOf((x, w) => tf.tanh(tf.matMul(x, w)), f32(4, 64), f32(64, 512)));
  expect(texts).toEqual(['pack: 1', 'narrow: product 4x512x64', 'loop: loop 4x512 Tanh']);
});

test('attention is a call between chains, and its weights are never in memory', () => {
  const plan = planOf(
    (q, k, v) => ops.attention(q, k, v, { causal: true }),
    f32(2, 64, 2, 8),
    f32(2, 64, 2, 8),
    f32(2, 64, 2, 8),
  );
  expect(stageTexts(plan)).toEqual(['call: attention']);
  // The logarithms of the sums, one for each query and head.
  expect(plan.arenaBytes).toBe(2 * 2 * 64 * 4);
});

test('nor are they in training, with a cap, a window, segments, numbers of keys and a trained bias', () => {
  const [batch, time, heads, dims] = [4, 128, 2, 8];
  const head = f32(batch, time, heads, dims);
  const plan = planOf(
    (q, k, v, bias, ids, prefix, visible) => {
      const loss = (p: any) => {
        const options = { causal: true, logitCap: 2, window: { before: 40 }, mask: p.bias };
        const hidden = { segments: { queries: ids, keys: ids }, prefix, visible };
        return { value: tf.sum(tf.square(ops.attention(p.q, p.k, p.v, { ...options, ...hidden }))), aux: {} };
      };
      const {
        q: dq,
        k: dk,
        v: dv,
        bias: dbias,
      } = valueAndGrad(loss as never, { q, k, v, bias } as never).grads as any;
      return [dq, dk, dv, dbias];
    },
    ...[head, head, head, f32(1, heads, time, time), i32(batch, time), i32(batch), i32(batch)],
  );
  const kinds = plan.units.map(kindOf).filter((kind) => kind.startsWith('attention'));
  expect(kinds.sort()).toEqual(['attention', 'attentionGrad', 'attentionMaskGrad']);
  // The result, its gradient, and the logarithms of the sums.
  expect(plan.arenaBytes).toBeLessThanOrEqual(4 * batch * time * heads * (2 * dims + 1) + 256);
});

test('a scalar between two passes does not part them', () => {
  const plan = planOf(
    (x, weights) => {
      const total = tf.sum(weights);
      return [tf.div(tf.sum(tf.mul(tf.exp(x), weights)), total), tf.div(tf.square(tf.exp(x)), total)];
    },
    f32(512, 40),
    f32(512, 1),
  );
  expect(plan.units.map(unitText).filter((text) => text.startsWith('loop 512x40'))).toHaveLength(1);
});

test('a batch of products counts the operations of all its items', () => {
  const parts = partsOf(planOf((x, y) => tf.matMul(x, y), f32(2, 3, 4), f32(2, 4, 5)));
  expect(parts.flat().map(({ kind, flops }) => [kind, flops])).toEqual([['product', 2 * 2 * 3 * 4 * 5]]);
});

test('intervals that never meet share memory; those that do lie apart', () => {
  const at = (bytes: number, from: number, to: number) => ({ bytes, from, to, offset: -1 });
  const intervals = [at(64, 0, 1), at(64, 2, 3), at(128, 1, 2), at(64, 0, 3)];
  expect(firstFit(intervals)).toBe(256);
  expect(intervals.map(({ offset }) => offset)).toEqual([128, 128, 0, 192]);
});

test('long sums of few rows and columns have parts, by their shape alone, and a stage of their own', () => {
  const parts = (m: number, k: number, n: number, batch: number[] = []) => sumPartsOf({ m, n, k, batch });
  expect(parts(24, 65_536, 24)).toBe(64);
  expect(parts(64, 8192, 10)).toBe(16);
  expect([parts(64, 4095, 10), parts(64, 4096, 10)]).toEqual([0, 8]);
  expect([parts(512, 65_536, 256), parts(512, 65_536, 257)]).toEqual([8, 0]);
  expect(parts(24, 65_536, 24, [2])).toBe(0);
  const stages = (m: number, k: number, n: number) =>
    stageTexts(planOf((x, w) => tf.matMul(x, w), f32(m, k), f32(k, n)));
  expect(stages(4, 8192, 10)).toEqual(['products: product 4x10x8192']);
  expect(stages(64, 8192, 10)).toEqual(['products: product 64x10x8192']);
  expect(stages(64, 2048, 10)).toEqual(['pack: 1', 'chain 64: product 64x10x2048']);
  expect(stages(4, 8192, 2000)).toEqual(['pack: 1', 'narrow: product 4x2000x8192']);
});
