/** @file Softmax layers against plain loops. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type AuxLoss,
  type BaseSoftmax,
  FullSoftmax,
  listVariables,
  NClassMajorSharedEmbeddingSoftmax,
  SharedEmbeddingSoftmax,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, tensor } from './helpers.js';

const [ROWS, DIMS, CLASSES] = [4, 3, 6];
const LABELS = [5, 0, 0, 3];
const WEIGHTS = [1, 0.5, 0, 2];

/** Cross entropy of a row of logits with target probabilities. */
function xent(logits: number[], target: number[]): number {
  const logSum = Math.log(logits.reduce((a, b) => a + Math.exp(b), 0));
  return -logits.reduce((sum, logit, i) => sum + target[i]! * (logit - logSum), 0);
}

/** Logits by plain loops; `w(i, c)` is the weight from input i to class c. */
function logitsOf(
  x: ArrayLike<number>,
  w: (i: number, c: number) => number,
  b: ArrayLike<number>,
): number[][] {
  return Array.from({ length: ROWS }, (_, row) =>
    Array.from({ length: CLASSES }, (_, c) => {
      let sum = b[c]!;
      for (let i = 0; i < DIMS; i++) sum += x[row * DIMS + i]! * w(i, c);
      return sum;
    }),
  );
}

const oneHot = (label: number): number[] => Array.from({ length: CLASSES }, (_, c) => Number(c === label));
const dims = { inputDims: DIMS, numClasses: CLASSES };
const labels = () => ints(LABELS, [ROWS]);
const weights = () => tf.tensor1d(WEIGHTS);

const layers: [string, Config<BaseSoftmax>, string, string][] = [
  ['FullSoftmax', FullSoftmax.config(dims), 'logits_ffn/linear/w', 'logits_ffn/bias/b'],
  ['SharedEmbeddingSoftmax', SharedEmbeddingSoftmax.config(dims), 'logits_ffn/linear/w', 'logits_ffn/bias/b'],
  ['NClassMajorSharedEmbeddingSoftmax', NClassMajorSharedEmbeddingSoftmax.config(dims), 'w', 'bias/b'],
];

test.each(layers)('%s', (_, config, wPath, bPath) => {
  const layer = build(config);
  const theta = randomTheta(layer);
  const [w, b] = [theta[wPath]!, theta[bPath]!];
  const classMajor = w.shape[0] === CLASSES;
  const wData = w.dataSync();
  const x = tensor([ROWS, DIMS]);
  const logits = logitsOf(
    x.dataSync(),
    (i, c) => wData[classMajor ? c * DIMS + i : i * CLASSES + c]!,
    b.dataSync(),
  );
  const each = logits.map((row, i) => xent(row, oneHot(LABELS[i]!)));
  const total = each.reduce((sum, value, i) => sum + value * WEIGHTS[i]!, 0);
  const output = run(theta, () => layer.fprop(x, weights(), labels()));
  expectClose(output.logits, logits.flat());
  expectClose(output.perExampleXent, each);
  expectClose(output.totalXent, [total]);
  expectClose(output.totalWeight, [3.5]);
  expectClose(output.avgXent, [total / 3.5]);
  expect([...output.perExampleArgmax.dataSync()]).toEqual(logits.map((row) => row.indexOf(Math.max(...row))));
  checkGradients(layer, [x], (input) => layer.fprop(input!, weights(), labels()).avgXent);
});

test.each([
  ['SharedEmbeddingSoftmax', SharedEmbeddingSoftmax, false],
  ['NClassMajorSharedEmbeddingSoftmax', NClassMajorSharedEmbeddingSoftmax, true],
] as const)('%s embeds with the weights of its logits', (_, cls, classMajor) => {
  for (const scaleSqrtDepth of [false, true]) {
    const layer = build(cls.config({ ...dims, scaleSqrtDepth }));
    const theta = randomTheta(layer);
    const w = Object.values(theta)[0]!.dataSync();
    const ids = [2, 5, 2, 0];
    const expected = ids.flatMap((id) =>
      [0, 1, 2].map(
        (i) => w[classMajor ? id * DIMS + i : i * CLASSES + id]! * (scaleSqrtDepth ? Math.sqrt(3) : 1),
      ),
    );
    expectClose(
      run(theta, () => layer.embLookup(ints(ids, [2, 2]))),
      expected,
    );
    const { 'logits_ffn/bias/b': _, 'bias/b': __, ...table } = theta;
    checkGradients(layer, [], () => layer.embLookup(ints(ids, [2, 2])), { probes: 18, theta: table });
  }
});

test('biases can be left out', () => {
  const full = FullSoftmax.config(dims);
  full.feedForwardTpl.hasBias = false;
  expect(listVariables(build(full)).map((v) => v.path)).toEqual(['logits_ffn/linear/w']);
  const major = NClassMajorSharedEmbeddingSoftmax.config({ ...dims, hasBias: false });
  expect(listVariables(build(major)).map((v) => v.path)).toEqual(['w']);
});

test('softCapLogits keeps logits within the cap', () => {
  const layer = build(FullSoftmax.config({ ...dims, softCapLogits: 0.5 }));
  const plain = build(FullSoftmax.config(dims));
  const theta = randomTheta(layer);
  const x = tensor([ROWS, DIMS]);
  const logits = [...run(theta, () => plain.getLogits(x)).dataSync()];
  expectClose(
    run(theta, () => layer.getLogits(x)),
    logits.map((value) => 0.5 * Math.tanh(value / 0.5)),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!, weights(), labels()).avgXent);
});

test('label smoothing spreads probability over the other classes, in evaluation only if asked', () => {
  const smoothing = 0.3;
  const layer = build(
    FullSoftmax.config({ ...dims, labelSmoothingProb: smoothing, labelSmoothingApplyForEval: false }),
  );
  const theta = randomTheta(layer);
  const x = tensor([ROWS, DIMS]);
  const forward = () => layer.fprop(x, weights(), labels());
  const { logits, perExampleXent } = run(theta, forward);
  const rows = Array.from({ length: ROWS }, (_, i) =>
    [...logits.dataSync()].slice(i * CLASSES, (i + 1) * CLASSES),
  );
  const smooth = (label: number): number[] =>
    oneHot(label).map((hot) => (hot ? 1 - smoothing : smoothing / (CLASSES - 1)));
  expectClose(
    perExampleXent,
    rows.map((row, i) => xent(row, smooth(LABELS[i]!))),
  );
  expectClose(
    run(theta, forward, { doEval: true }).perExampleXent,
    rows.map((row, i) => xent(row, oneHot(LABELS[i]!))),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!, weights(), labels()).avgXent);
});

test('zLossWeight adds the weighted mean of squared log-normalisers', () => {
  const layer = build(FullSoftmax.config({ ...dims, zLossWeight: 0.1 }));
  const theta = randomTheta(layer);
  const auxLosses: AuxLoss[] = [];
  const summaries: Record<string, Tensor> = {};
  const output = run(theta, () => layer.fprop(tensor([ROWS, DIMS]), weights(), labels()), {
    auxLosses,
    summaries,
  });
  const logits = [...output.logits.dataSync()];
  let sum = 0;
  for (let row = 0; row < ROWS; row++) {
    const z = logits.slice(row * CLASSES, (row + 1) * CLASSES).reduce((a, b) => a + Math.exp(b), 0);
    sum += WEIGHTS[row]! * Math.log(z) ** 2;
  }
  expect(auxLosses.map((loss) => loss.name)).toEqual(['aux_z_loss']);
  expectClose(auxLosses[0]!.value, [(0.1 * sum) / 3.5]);
  expectClose(summaries.aux_z_loss_scalar!, [(0.1 * sum) / 3.5]);
});
