/** @file Convolutions as machine code: windows are views, copied within the chain of their product. */
import { expect, test } from 'vitest';
import { blocksOf } from '../../../src/compiler/native/plan/blocks.js';
import { f32, kindOf, layoutOf, nameOf, opText, planOf, stageTexts, tf, unitText } from './plans.js';

const layout = (...args: Parameters<typeof layoutOf>): string[] => layoutOf(...args).ops.map(opText);

test('a row of taps is one view with overlapping rows', () => {
  const f = (x: any, w: any) => tf.conv2d(x, w, [1, 2], 'valid');
  expect(layout(f, f32(1, 4, 7, 5), f32(2, 3, 5, 6)).slice(0, 2)).toEqual([
    'Copy(float32 in0[1,3,3,15]:(140,35,10,1)) -> float32 b3[1,3,3,15]:(270,90,30,1)',
    'Copy(float32 in0+35[1,3,3,15]:(140,35,10,1)) -> float32 b3+15[1,3,3,15]:(270,90,30,1)',
  ]);
});

test('windows of inputs that are transposed: these are copied first', () => {
  const f = (x: any, w: any) => tf.conv2d(tf.transpose(x, [0, 2, 3, 1]) as any, w, 1, 'valid');
  expect(layout(f, f32(1, 2, 3, 4), f32(1, 2, 2, 6)).slice(0, 1)).toEqual([
    'Copy(float32 in0[1,3,4,2]:(24,4,1,12)) -> float32 b3[1,3,4,2]',
  ]);
});

test('windows of one cell need no gather', () => {
  const plan = planOf(
    (x, w) => tf.relu(tf.conv2d(x as any, w as any, 1, 'same')),
    f32(4, 8, 8, 3),
    f32(1, 1, 3, 5),
  );
  expect(stageTexts(plan)).toEqual(['pack: 1', 'chain 256: product 256x5x3; loop 256x5 Relu']);
});

test('windows, their product and later loops form a chain; the windows are in scratch memory', () => {
  const net = (x: any, w: any, v: any) => tf.matMul(tf.mean(tf.relu(tf.conv2d(x, w, 1, 'valid')), [1, 2]), v);
  // Sixteen images: the last product has as many rows, and the loops before it still have those of the convolution.
  const plan = planOf(net, f32(16, 10, 10, 4), f32(3, 3, 4, 32), f32(32, 6));
  const [packing, chain] = stageTexts(plan);
  expect([packing, chain]).toEqual([
    'pack: 2',
    'chain 1024: loop 1024x12 Copy Copy Copy; product 1024x32x36; loop 1024x32 Relu Sum:column',
  ]);
  const windows = plan.units.flatMap((unit) =>
    unit.kind === 'product' && unit.k === 36 ? [unit.a.buffer] : [],
  );
  expect(windows.map(({ home }) => home.kind)).toEqual(['scratch']);
});

test('blocks have the rows that their heaviest unit wants', () => {
  const f = (x: any, w: any) => tf.maxPool(tf.conv2d(x, w, 1, 'same') as any, [1, 4], [1, 4], 'valid');
  const { schedule } = planOf(f, f32(8, 16, 16, 8), f32(1, 1, 8, 32));
  const chains = schedule.stages.flatMap((stage) => (stage.kind === 'chain' ? [stage] : []));
  expect(chains.map((chain) => `${chain.rows}: ${chain.units.map(unitText).join('; ')}`)).toEqual([
    '512: product 2048x32x8; loop 512x32 Maximum Maximum Maximum',
  ]);
  expect(chains.map((chain) => blocksOf(chain).size)).toEqual([16]);
});

test('the gradient by the input multiplies dy by the taps of each phase', () => {
  const f = (dy: any, w: any) => tf.conv2dTranspose(dy, w, [1, 8, 8, 3], 2, 'same');
  const products = planOf(f, f32(1, 4, 4, 6), f32(3, 3, 3, 6)).units.flatMap((unit) =>
    unit.kind === 'product' ? [`${unitText(unit)} > ${nameOf(unit.c.buffer).replace(/\d+/, '')}`] : [],
  );
  // 2 x 2, 2 x 1, 1 x 2 and 1 x 1 taps of 6 channels, for a quarter of the cells each.
  expect(products.map((text) => text.replace(/ >.*/, '')).sort()).toEqual([
    'product 16x3x12',
    'product 16x3x12',
    'product 16x3x24',
    'product 16x3x6',
  ]);
});

test('deep 3x3 convolutions with stride 1 and their gradients are calls; others are products', () => {
  const f = (x: any, w: any) => {
    const [dx, dw] = tf.grads((a: any, b: any) => tf.sum(tf.square(tf.conv2d(a, b, 1, 'same'))) as any)([
      x,
      w,
    ]);
    return [dx!, dw!];
  };
  const kinds = (...args: Parameters<typeof planOf>) => planOf(...args).units.map(kindOf);
  const calls = ['convolution', 'loop', 'inputGradient', 'filterGradient'];
  expect(kinds(f, f32(2, 16, 16, 16), f32(3, 3, 16, 32)).toSorted()).toEqual(calls.toSorted());
  // Too shallow, or too few tiles.
  for (const shapes of [
    [f32(2, 16, 16, 8), f32(3, 3, 8, 32)],
    [f32(1, 16, 16, 16), f32(3, 3, 16, 32)],
  ])
    expect(kinds(f, ...shapes).some((kind) => calls.includes(kind) && kind !== 'loop')).toBe(false);
});

test('convolutions of each channel on its own and their gradients are calls; with few channels, loops', () => {
  const f = (x: any, w: any) =>
    tf.grads((a: any, b: any) => tf.depthwiseConv2d(a, b, 2, 'same') as any)([x, w]);
  const kinds = (channels: number, filters: number) =>
    planOf(f as any, f32(2, 9, 9, channels), f32(3, 3, channels, filters)).units.map(kindOf);
  expect(kinds(8, 1)).toEqual(expect.arrayContaining(['depthwiseInput', 'depthwiseFilter']));
  for (const [channels, filters] of [
    [7, 1],
    [8, 2],
  ] as const)
    expect(new Set(kinds(channels, filters))).toEqual(new Set(['loop']));
});
