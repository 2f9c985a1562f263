/** @file Rotations: formula, scaling rules beside those of transformers, part of the elements, interleaved pairs. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseRotaryScaling,
  DynamicNtkRotaryScaling,
  LinearRotaryScaling,
  Llama3RotaryScaling,
  RotaryPositionalEmbedding,
  YarnRotaryScaling,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';
import { checkGradients, expectClose, ints, tensor } from '../helpers.js';
import { sineInput, sums } from '../sineFill.js';

/** What transformers computes, by `scripts/record_rotations.py`. */
const recorded: {
  readonly head_dim: number;
  readonly position: number;
  readonly cases: Readonly<Record<string, { readonly cos: number[]; readonly sin: number[] }>>;
} = JSON.parse(readFileSync(new URL('rotations.json', import.meta.url), 'utf8'));

const originalMaxSeqLength = 64;
const scalings: Readonly<Record<string, Config<BaseRotaryScaling>>> = {
  linear: LinearRotaryScaling.config({ factor: 4 }),
  'dynamic at 64': DynamicNtkRotaryScaling.config({ factor: 2, originalMaxSeqLength, seqLength: 64 }),
  'dynamic at 200': DynamicNtkRotaryScaling.config({ factor: 2, originalMaxSeqLength, seqLength: 200 }),
  llama3: Llama3RotaryScaling.config({ factor: 8, originalMaxSeqLength }),
  yarn: YarnRotaryScaling.config({ factor: 4, originalMaxSeqLength }),
  'yarn, other turns, not truncated': YarnRotaryScaling.config({
    ...{ factor: 8, betaFast: 6, betaSlow: 0.5, truncate: false, originalMaxSeqLength },
  }),
  'yarn, mscale': YarnRotaryScaling.config({
    // biome-ignore lint/suspicious/noApproximativeNumericConstant: the figure of DeepSeek-V2's config.
    ...{ factor: 40, mscale: 1, mscaleAllDim: 0.707, originalMaxSeqLength },
  }),
  'yarn, attention factor, half of the elements': YarnRotaryScaling.config({
    ...{ factor: 2, attentionFactor: 1.5, originalMaxSeqLength },
  }),
};

test('all recorded rules are tried', () => {
  expect(Object.keys(recorded.cases)).toEqual(Object.keys(scalings));
});

test.each(Object.entries(recorded.cases))('%s: cosines and sines of transformers', (name, { cos, sin }) => {
  const { head_dim: embeddingDims, position } = recorded;
  const rotaryFraction = (2 * cos.length) / embeddingDims;
  const layer = build(
    RotaryPositionalEmbedding.config({ embeddingDims, rotaryFraction, scalingTpl: scalings[name]! }),
  );
  // The first of each pair is 1, the second 0, and 7 what stays.
  const row = Array.from({ length: embeddingDims }, (_, i) =>
    i < cos.length ? 1 : i < 2 * cos.length ? 0 : 7,
  );
  const expected = [...cos, ...sin, ...row.slice(2 * cos.length)];
  const rows = Array.from({ length: position + 1 }, () => row).flat();
  const shape = [1, position + 1, 1, embeddingDims];
  const upTo = layer.fprop(tf.tensor(rows, shape));
  expectClose(tf.slice(upTo, [0, position, 0, 0]), expected, 2e-6);
  const at = layer.fprop(tf.tensor(row, [1, 1, 1, embeddingDims]), ints([position], [1, 1]));
  expectClose(at, expected, 2e-6);
});

test('the sine fill has the published sum of squares', () => {
  const layer = build(RotaryPositionalEmbedding.config({ embeddingDims: 8 }));
  expect(sums(layer.fprop(sineInput([1, 4, 2, 8]))).q).toBeCloseTo(31.437668, 4);
});

test('interleaved pairs are halves in another order, and elements beyond the fraction stay', () => {
  const fields = { embeddingDims: 12, rotaryFraction: 2 / 3 };
  const [halves, interleaved] = (['halves', 'interleaved'] as const).map((pairs) =>
    build(RotaryPositionalEmbedding.config({ ...fields, pairs })),
  );
  const x = tensor([2, 3, 2, 12]);
  // Places of the interleaved elements among the halves.
  const places = [0, 2, 4, 6, 1, 3, 5, 7, 8, 9, 10, 11];
  const moved = (y: Tensor): Tensor => tf.gather(y, tf.tensor1d(places, 'int32'), -1);
  expectClose(moved(interleaved!.fprop(x)), halves!.fprop(moved(x)).dataSync());
  const stays = (y: Tensor): number[] => [...tf.slice(y, [0, 0, 0, 8], [-1, -1, -1, 4]).dataSync()];
  expect(stays(halves!.fprop(x))).toEqual(stays(x));
});

test('the rotated part is checked before anything is built', () => {
  const config = RotaryPositionalEmbedding.config({ embeddingDims: 6, rotaryFraction: 0.5 });
  expect(() => build(config)).toThrow(
    'rotaryFraction (RotaryPositionalEmbedding): expected an even number of elements to rotate, got 3 of 6',
  );
});

const call = (layer: RotaryPositionalEmbedding, { x, position }: Readonly<Record<string, Tensor>>): Tensor =>
  tf.concat([layer.fprop(x!), layer.fprop(x!, position!)], -1);

checkLayers(
  'rotations',
  (['halves', 'interleaved'] as const).map((pairs) =>
    layerCase({
      title: pairs,
      config: RotaryPositionalEmbedding.config({
        ...{ embeddingDims: 8, rotaryFraction: 0.75, pairs, scalingTpl: scalings.yarn! },
      }),
      inputs: { x: floats([2, 3, 2, 8]), position: given('int32', [4, 1, 0, 2, 2, 9], [2, 3]) },
      call,
    }),
  ),
);

test('Llama3RotaryScaling slows what turns seldom, keeps what turns often, and interpolates between', () => {
  const fields = { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalMaxSeqLength: 100 };
  /** Turns over originalMaxSeqLength of the rotation whose frequency is 1 / minTimescale, and how much slower it is. */
  const share = (turns: number) => {
    const minTimescale = 100 / (2 * Math.PI * turns);
    const scalingTpl = Llama3RotaryScaling.config(fields);
    const scaled = RotaryPositionalEmbedding.config({ embeddingDims: 2, minTimescale, scalingTpl });
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
  const wrong = Llama3RotaryScaling.config({ highFrequencyFactor: 1 });
  expect(() => build(RotaryPositionalEmbedding.config({ embeddingDims: 2, scalingTpl: wrong }))).toThrow(
    'highFrequencyFactor (Llama3RotaryScaling): expected more than lowFrequencyFactor (1)',
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
