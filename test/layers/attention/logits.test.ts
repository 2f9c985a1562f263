/** @file Logits of XL and of trained biases by distance, and the convolution of heads, against plain loops. */
import { expect, test } from 'vitest';
import type { Tensor } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  CausalDepthwiseConv1D,
  DotProductAttentionXL,
  LocalSelfAttentionRelativeBias,
} from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';

const [T, D, N, H] = [5, 4, 2, 2];
const dims = { inputDim: D, hiddenDim: N * H, numHeads: N, internalEnablePerDimScale: false };

type Values = Record<string, Tensor>;
type Row = readonly number[];
const dot = (a: Row, b: Row): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);

/** A variable, or another tensor, as an array whose last axis is `size`. */
const rows = (x: Tensor, size: number): number[][] =>
  Array.from({ length: x.size / size }, (_, i) => [...x.dataSync().slice(i * size, (i + 1) * size)]);

/** A projection to heads of `vectors`: [place][head] of depth H. */
function heads(theta: Values, name: string, vectors: readonly Row[]): number[][][] {
  const w = rows(theta[`${name}/w`]!, H);
  const b = theta[`${name}/b`] ? rows(theta[`${name}/b`]!, H) : null;
  return vectors.map((vector) =>
    Array.from({ length: N }, (_, n) =>
      Array.from({ length: H }, (_, h) =>
        vector.reduce((sum, value, d) => sum + value * w[d * N + n]![h]!, b ? b[n]![h]! : 0),
      ),
    ),
  );
}

interface Pair {
  readonly n: number;
  readonly t: number;
  readonly s: number;
  /** The query, scaled by 1 / sqrt(H). */
  readonly q: Row;
  readonly k: Row;
}

/** Attention of one sequence x [T, D] with such logits; undefined: hidden. */
function attended(theta: Values, x: readonly Row[], logit: (pair: Pair) => number | undefined): number[] {
  const [query, key, value] = ['query', 'key', 'value'].map((name) => heads(theta, name, x));
  const post = rows(theta['post/w']!, H);
  const bias = theta['post/b']!.dataSync();
  return x.flatMap((_, t) => {
    const outputs = Array.from({ length: D }, (_, d) => bias[d]!);
    for (let n = 0; n < N; n++) {
      const q = query![t]![n]!.map((each) => each / Math.sqrt(H));
      const weights = x.map((_, s) => {
        const own = logit({ n, t, s, q, k: key![s]![n]! });
        return own === undefined ? 0 : Math.exp(own);
      });
      const total = weights.reduce((a, b) => a + b);
      const sum = Array.from({ length: H }, (_, h) =>
        weights.reduce((all, weight, s) => all + (weight / total) * value![s]![n]![h]!, 0),
      );
      outputs.forEach((_, d) => {
        outputs[d]! += dot(sum, post[d * N + n]!);
      });
    }
    return outputs;
  });
}

test('XL: content and position each have a bias, and the sinusoid is of the query less the key', () => {
  const depth = 6;
  const layer = build(DotProductAttentionXL.config({ ...dims, relPosEmbDim: depth }));
  const theta = randomTheta(layer);
  const x = tensor([1, T, D]);
  const sinusoid = (distance: number): number[] => {
    const angles = [1, 1e-2, 1e-4].map((frequency) => distance * frequency);
    return [...angles.map(Math.sin), ...angles.map(Math.cos)];
  };
  const [u, v] = [rows(theta.u!, H), rows(theta.v!, H)];
  const plus = (a: Row, b: Row): number[] => a.map((value, i) => value + b[i]!);
  const logit = ({ n, t, s, q, k }: Pair): number => {
    const r = heads(theta, 'pos_proj', [sinusoid(t - s)])[0]![n]!;
    return dot(plus(q, u[n]!), k) + dot(plus(q, v[n]!), r);
  };
  expectClose(
    run(theta, () => layer.fprop(x)),
    attended(theta, rows(x, D), logit),
  );
});

test('local attention with a trained number for each distance', () => {
  const [leftContext, rightContext, blockSize] = [3, 1, 2];
  const layer = build(
    LocalSelfAttentionRelativeBias.config({ ...dims, leftContext, rightContext, blockSize }),
  );
  const theta = randomTheta(layer);
  const table = rows(theta.pos_emb_compressed!, leftContext + rightContext + 2 * (blockSize - 1));
  const x = tensor([1, T, D]);
  const logit = ({ n, t, s, q, k }: Pair): number | undefined =>
    t - s < leftContext && s - t <= rightContext
      ? dot(q, k) + table[n]![leftContext + blockSize - 3 - (t - s)]!
      : undefined;
  expectClose(
    run(theta, () => layer.fprop(x)),
    attended(theta, rows(x, D), logit),
  );
});

test('the convolution of heads: tap i is of the input i places before', () => {
  const layer = build(CausalDepthwiseConv1D.config({ kernelSize: 3, hiddenDims: [N, H] }));
  const theta = randomTheta(layer);
  const x = tensor([1, T, N, H]);
  const inputs = rows(x, N * H);
  const expected = inputs.flatMap((row, t) =>
    row.map((_, c) =>
      [0, 1, 2].reduce(
        (sum, i) => sum + (t < i ? 0 : inputs[t - i]![c]! * theta[`dconv_${i}`]!.dataSync()[c]!),
        0,
      ),
    ),
  );
  expect(expected.length).toBe(T * N * H);
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
});
