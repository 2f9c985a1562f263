/** @file Token and position embeddings. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { stepsFrom } from '../../src/layers/attention/positions.js';
import {
  Embedding,
  PositionalEmbedding,
  RotaryPositionalEmbedding,
  ScaledRotaryPositionalEmbedding,
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

test('ScaledRotaryPositionalEmbedding slows what turns seldom, keeps what turns often, and interpolates between', () => {
  const fields = { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalMaxSeqLength: 100 };
  /** Turns over originalMaxSeqLength of the rotation whose frequency is 1 / minTimescale, and how much slower it is. */
  const share = (turns: number) => {
    const minTimescale = 100 / (2 * Math.PI * turns);
    const scaled = ScaledRotaryPositionalEmbedding.config({ embeddingDims: 2, minTimescale, ...fields });
    const rotated = build(scaled)
      .fprop(tf.tensor([1, 0], [1, 1, 1, 2]), ints([1], [1, 1]))
      .dataSync();
    return Math.atan2(rotated[1]!, rotated[0]!) * minTimescale;
  };
  for (const [turns, factor] of [
    [0.5, 1 / 8],
    [1, 1 / 8],
    [1.75, 0.75 / 8 + 0.25],
    [2.5, 0.5 / 8 + 0.5],
    [4, 1],
    [9, 1],
  ] as const)
    expect(share(turns)).toBeCloseTo(factor, 4);
  const wrong = ScaledRotaryPositionalEmbedding.config({ embeddingDims: 2, highFrequencyFactor: 1 });
  expect(() => build(wrong)).toThrow(
    'highFrequencyFactor (ScaledRotaryPositionalEmbedding): expected more than lowFrequencyFactor (1)',
  );
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

test('RotaryPositionalEmbedding rotates pairs by position over timescale', () => {
  const [batch, time, heads, dims] = [2, 3, 2, 4];
  const [min, max] = [2, 60];
  const layer = build(
    RotaryPositionalEmbedding.config({ embeddingDims: dims, minTimescale: min, maxTimescale: max }),
  );
  const x = tensor([batch, time, heads, dims]);
  const values = x.dataSync();
  const rotated = (position: (b: number, t: number) => number): number[] => {
    const result = new Array<number>(values.length);
    for (let b = 0; b < batch; b++)
      for (let t = 0; t < time; t++)
        for (let n = 0; n < heads; n++)
          for (let i = 0; i < dims / 2; i++) {
            const at = ((b * time + t) * heads + n) * dims + i;
            const angle = position(b, t) / (min * (max / min) ** ((2 * i) / dims));
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
