/** @file Token and position embeddings. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { stepsFrom } from '../../src/layers/attention/positions.js';
import {
  Embedding,
  PositionalEmbedding,
  PositionalEmbedding2D,
  TokenCounter,
  TrainablePositionalEmbedding,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run } from './helpers.js';

test('Embedding looks rows up; a row that is used often gets the sum of its gradients', () => {
  for (const scaleSqrtDepth of [false, true]) {
    const layer = build(Embedding.config({ numClasses: 5, inputDims: 3, scaleSqrtDepth }));
    const theta = randomTheta(layer);
    const table = theta.emb_var!.dataSync();
    const ids = [4, 0, 4, 4, 2, 0];
    const factor = scaleSqrtDepth ? Math.sqrt(3) : 1;
    const rows = run(theta, () => layer.embLookup(ints(ids, [2, 3])));
    expect(rows.shape).toEqual([2, 3, 3]);
    expectClose(
      rows,
      ids.flatMap((id) => [0, 1, 2].map((i) => factor * table[id * 3 + i]!)),
    );
    checkGradients(layer, [], () => layer.embLookup(ints(ids, [2, 3])), { probes: 15 });
  }
});

test.each([
  [1, {}],
  [2, {}],
  [3, { minTimescale: 2, maxTimescale: 50 }],
  [6, {}],
  [7, { minTimescale: 2, maxTimescale: 50 }],
])('PositionalEmbedding of depth %i: sines, then cosines, and 0 where the depth is odd', (dims, fields) => {
  const layer = build(PositionalEmbedding.config({ embeddingDims: dims, ...fields }));
  const { minTimescale: min, maxTimescale: max } = layer.hp;
  const half = Math.floor(dims / 2);
  const expected = (t: number): number[] => {
    const scale = (i: number) => (half === 1 ? min : min * (max / min) ** (i / (half - 1)));
    const angles = Array.from({ length: half }, (_, i) => t / scale(i));
    return [...angles.map(Math.sin), ...angles.map(Math.cos), ...(dims % 2 ? [0] : [])];
  };
  for (const length of [0, 1, 4]) {
    const table = layer.fprop(length);
    expect(table.shape).toEqual([length, dims]);
    expectClose(table, [0, 1, 2, 3].slice(0, length).flatMap(expected));
  }
  expectClose(layer.atPositions(ints([9, 2], [1, 2])), [...expected(9), ...expected(2)]);
});

test('stepsFrom counts from the time step', () => {
  const steps = (count: number) => [...stepsFrom(ints([5], []), count).dataSync()];
  expect([steps(1), steps(2), steps(3)]).toEqual([[5], [5, 6], [5, 6, 7]]);
});

test('TrainablePositionalEmbedding gives its rows, and refuses sequences longer than its table', () => {
  const layer = build(TrainablePositionalEmbedding.config({ embeddingDims: 2, maxSeqLength: 4 }));
  const theta = randomTheta(layer);
  const table = [...theta.emb_var!.dataSync()];
  expectClose(
    run(theta, () => layer.fprop(3)),
    table.slice(0, 6),
  );
  expectClose(
    run(theta, () => layer.fprop(4)),
    table,
  );
  expectClose(
    run(theta, () => layer.atPositions(ints([3, 0], [2]))),
    [...table.slice(6), ...table.slice(0, 2)],
  );
  checkGradients(layer, [], () => layer.fprop(3), { probes: 8 });
  expect(() => run(theta, () => layer.fprop(5))).toThrow(
    'model (TrainablePositionalEmbedding): a sequence of 5 tokens is longer than maxSeqLength 4.',
  );
});

test('PositionalEmbedding2D has the published figures, rows before columns, and refuses other lengths', () => {
  const layer = build(PositionalEmbedding2D.config({ h: 2, w: 3, embeddingDims: 8 }));
  const cells = [...layer.fprop(6).dataSync()];
  for (const [i, value] of [-0.841471, -0.01, 0.540302].entries()) expect(cells[i]).toBeCloseTo(value, 6);
  const signal = (at: number): number[] => [
    Math.sin(at),
    Math.sin(at / 100),
    Math.cos(at),
    Math.cos(at / 100),
  ];
  // Row 1 of 2, column 2 of 3.
  expectClose(layer.atPositions(ints([5], [1])), [...signal(0), ...signal(0.5)], 1e-6);
  expect(() => layer.fprop(5)).toThrow(
    'model (PositionalEmbedding2D): a sequence of 5 positions is no grid of 2 rows and 3 columns.',
  );
  expect(() => build(PositionalEmbedding2D.config({ h: 2, w: 3, embeddingDims: 6 }))).toThrow(
    'embeddingDims (PositionalEmbedding2D): expected a multiple of 4: sines and cosines of two axes',
  );
});

test('Embedding by product gives what it gives by index, and NaN for ids out of range where asked', () => {
  const dims = { numClasses: 4, inputDims: 3, scaleSqrtDepth: true };
  const ids = ints([3, 0, 0, 2], [2, 2]);
  const [byIndex, byProduct] = (['index', 'matmul'] as const).map((lookupStyle) =>
    build(Embedding.config({ ...dims, lookupStyle })),
  );
  const theta = randomTheta(byIndex!);
  const rows = run(theta, () => byIndex!.fprop(ids));
  expectClose(
    run(theta, () => byProduct!.fprop(ids)),
    rows.dataSync(),
  );
  checkGradients(byProduct!, [], () => byProduct!.fprop(ids), { probes: 12, theta });
  for (const lookupStyle of ['index', 'matmul'] as const) {
    const layer = build(Embedding.config({ ...dims, lookupStyle, setNanForOobId: true }));
    const found = run(theta, () => layer.fprop(ints([4, 3, -1], [3])));
    expect([...found.dataSync()].map(Number.isNaN)).toEqual([1, 1, 1, 0, 0, 0, 1, 1, 1].map(Boolean));
  }
});

test('TokenCounter counts the tokens of training that are no padding, in millions', () => {
  const layer = build(TokenCounter.config());
  const count = (doEval: boolean): number[] => {
    const updatedVars: Record<string, Tensor> = {};
    const theta = { approx_total_tokens_mm: tf.scalar(2) };
    run(theta, () => layer.fprop(tf.tensor2d([[0, 0, 1, 1]])), { doEval, updatedVars });
    return Object.values(updatedVars).map((value) => value.dataSync()[0]!);
  };
  expect(count(false)[0]).toBeCloseTo(2.000002, 6);
  expect(count(true)).toEqual([]);
});
