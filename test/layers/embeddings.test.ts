/** @file Token and position embeddings. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  Embedding,
  PositionalEmbedding,
  RotaryPositionalEmbedding,
  TrainablePositionalEmbedding,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, tensor } from './helpers.js';

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

test.each([6, 7])(
  'PositionalEmbedding of depth %i: sines, then cosines, and 0 where the depth is odd',
  (dims) => {
    const layer = build(PositionalEmbedding.config({ embeddingDims: dims }));
    const half = Math.floor(dims / 2);
    const expected = (t: number): number[] => {
      const angles = Array.from({ length: half }, (_, i) => t * 10_000 ** (-i / (half - 1)));
      return [...angles.map(Math.sin), ...angles.map(Math.cos), ...(dims % 2 ? [0] : [])];
    };
    expectClose(layer.fprop(4), [0, 1, 2, 3].flatMap(expected));
    expectClose(layer.atPositions(ints([9, 2], [1, 2])), [...expected(9), ...expected(2)]);
  },
);

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

test('RotaryPositionalEmbedding rotates pairs by position over timescale', () => {
  const [batch, time, heads, dims] = [2, 3, 2, 4];
  const layer = build(RotaryPositionalEmbedding.config({ embeddingDims: dims }));
  const x = tensor([batch, time, heads, dims]);
  const values = x.dataSync();
  const rotated = (position: (b: number, t: number) => number): number[] => {
    const result = new Array<number>(values.length);
    for (let b = 0; b < batch; b++)
      for (let t = 0; t < time; t++)
        for (let n = 0; n < heads; n++)
          for (let i = 0; i < dims / 2; i++) {
            const at = ((b * time + t) * heads + n) * dims + i;
            const angle = position(b, t) / 10_000 ** ((2 * i) / dims);
            const [first, second] = [values[at]!, values[at + dims / 2]!];
            result[at] = first * Math.cos(angle) - second * Math.sin(angle);
            result[at + dims / 2] = second * Math.cos(angle) + first * Math.sin(angle);
          }
    return result;
  };
  expectClose(
    layer.fprop(x),
    rotated((_, t) => t),
  );
  const positions = [5, 1, 0, 2, 2, 7];
  expectClose(
    layer.fprop(x, ints(positions, [batch, time])),
    rotated((b, t) => positions[b * time + t]!),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
  expect(() => RotaryPositionalEmbedding.config({ embeddingDims: 3 })).toThrow(/embeddingDims/);
});

test('rotations leave dot products to depend on distance alone', () => {
  const layer = build(RotaryPositionalEmbedding.config({ embeddingDims: 8 }));
  const [q, k] = [tensor([1, 1, 1, 8], 3), tensor([1, 1, 1, 8], 4)];
  const dot = (a: number, b: number): number =>
    tf.sum(tf.mul(layer.fprop(q, ints([a], [1, 1])), layer.fprop(k, ints([b], [1, 1])))).dataSync()[0]!;
  expect(dot(3, 1)).toBeCloseTo(dot(12, 10), 5);
  expect(dot(3, 1)).not.toBeCloseTo(dot(4, 1), 3);
});
