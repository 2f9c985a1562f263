/** @file Lazy updates: rows without a gradient stay as they are, the others move as torch.optim.SparseAdam moves them. */
import { expect, test } from 'vitest';
import type { Config } from '../../../src/hparams/index.js';
import { Adam, AdamW, type BaseOptimizer } from '../../../src/learners/index.js';
import { bench, learnerOf } from '../fixtures.js';

const START = Array.from({ length: 10 }, (_, i) => i / 8 - 0.5);
/** Gradients of a table [5, 2] by row: of three lookups a step, row 3 twice, then 4, then 1. */
const STEPS: readonly Record<number, [number, number]>[] = [
  { 1: [0.5, 0], 3: [3, -1] },
  { 3: [0, 3], 4: [-0.5, 0.75] },
  { 0: [-4, 1], 1: [1, 3] },
];
const dense = (rows: Record<number, [number, number]>) =>
  Array.from({ length: 5 }, (_, row) => rows[row] ?? [0, 0]).flat();

/** The table after these steps, beside other variables that always move. */
async function moved(optimizer: Config<BaseOptimizer>, engine: 'onnx' | 'eager' = 'onnx') {
  const made = await bench({ a: [1, 2, 3], table: START, b: [4] }, learnerOf(optimizer), {
    engine,
    shapes: { table: [5, 2] },
  });
  for (const [at, rows] of STEPS.entries())
    await made.step(at, { a: [at === 0 ? 1 : 0, 1, 1], table: dense(rows), b: [1] });
  return made;
}

const near = (found: readonly number[], expected: readonly number[]): void =>
  found.forEach((x, i) => void expect(x, `element ${i}`).toBeCloseTo(expected[i]!, 6));

test.each(['onnx', 'eager'] as const)(
  'rows move as torch.optim.SparseAdam moves them (%s)',
  async (engine) => {
    const adam = { learningRate: 0.1, decoupledWeightDecay: 0 };
    const { read } = await moved(AdamW.config({ ...adam, lazyUpdate: true }), engine);
    // torch 2.15, in double precision: an embedding with sparse=True of these values, the three lookups a step.
    const [p0, p1, p3, p4] = [
      [-0.43611865, -0.43888134],
      [-0.43285718, -0.18888135],
      [0.08299419, 0.42558099],
      [0.57441364, 0.55058635],
    ] as const;
    near(read('table'), [...p0, ...p1, 0, 0.125, ...p3, ...p4]);
    near(read('table', 'm'), [-0.4, 0.1, 0.145, 0.3, 0, 0, 0.27, 0.21, -0.05, 0.075]);
    near(read('table', 'v'), [0.016, 0.001, 0.00124975, 0.009, 0, 0, 0.008991, 0.009999, 0.00025, 0.0005625]);
    // The others move as they do without it, elements without a gradient among them.
    const eager = await moved(AdamW.config(adam), engine);
    for (const name of ['a', 'b'])
      for (const slot of [undefined, 'm', 'v']) expect(read(name, slot)).toEqual(eager.read(name, slot));
    expect(eager.read('table', 'm')[2]).not.toBeCloseTo(read('table', 'm')[2]!, 3);
  },
);

test('weight decay and regularisation reach the rows with a gradient alone', async () => {
  const rate = { learningRate: 0.1, lazyUpdate: true };
  const plain = (await moved(AdamW.config({ ...rate, decoupledWeightDecay: 0 }))).read('table');
  const decayed = (await moved(AdamW.config({ ...rate, decoupledWeightDecay: 0.5 }))).read('table');
  // Row 0 has one step, the last: p - 0.1 0.5 p - step.
  near(decayed.slice(0, 2), [plain[0]! - 0.05 * START[0]!, plain[1]! - 0.05 * START[1]!]);
  expect(decayed.slice(4, 6)).toEqual([0, 0.125]);
  const fields = { ...rate, l2RegularizerWeight: 0.5, l1RegularizerWeight: 0.1, clipThreshold: 0 };
  const { read } = await moved(Adam.config(fields));
  // Row 2 has none, row 0 has the gradient -4 + 0.5 p + 0.1 sign(p) at the last step.
  expect([read('table').slice(4, 6), read('table', 'm').slice(4, 6)]).toEqual([
    [0, 0.125],
    [0, 0],
  ]);
  near(read('table', 'm').slice(0, 1), [0.1 * (-4 + 0.5 * START[0]! - 0.1)]);
});

test('the root mean square of an update counts what moves', async () => {
  const most = 0.25;
  const fields = { learningRate: 1, lazyUpdate: true, clipThreshold: most };
  const { step, read } = await bench({ table: START }, learnerOf(Adam.config(fields)), {
    shapes: { table: [5, 2] },
  });
  await step(0, { table: dense(STEPS[0]!) });
  const before = read('table');
  await step(1, { table: dense(STEPS[1]!) });
  const squares = read('table').map((x, i) => (x - before[i]!) ** 2);
  expect(squares.map((x) => x > 0)).toEqual(dense({ 3: [1, 1], 4: [1, 1] }).map(Boolean));
  expect(Math.sqrt(squares.reduce((a, b) => a + b) / 10)).toBeCloseTo(most, 6);
});
