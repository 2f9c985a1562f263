/** @file Recurrent layers and cells: the contract, published sums, zoneout, both directions, and what does not fit. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  CifgLstmCellSimple,
  FRnn,
  GruCell,
  LayerNormalizedLstmCellSimple,
  LstmCellSimple,
  LstmFrnn,
  SruCell,
  StackBiFrnn,
  StackFrnn,
} from '../../../src/layers/index.js';
import { checkLayers, checkMixers, expectNear, layerCase, mixerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';
import { ints, run, tensor } from '../helpers.js';
import { parameterCount, sineInput, sineTheta, sums } from '../sineFill.js';

const inputDim = 3;
const cells = {
  LSTM: LstmCellSimple.config({ forgetGateBias: 1, cellValueCap: 0.4 }),
  'LSTM with a projection': LstmCellSimple.config({
    ...{ numHiddenNodes: 4, cellValueCap: null, outputNonlinearity: false },
  }),
  'layer-normed LSTM': LayerNormalizedLstmCellSimple.config({ layerNormEpsilon: 0.1 }),
  'CIFG LSTM': CifgLstmCellSimple.config(),
  GRU: GruCell.config(),
  'GRU, reset before': GruCell.config({ resetAfter: false }),
  SRU: SruCell.config(),
};

checkMixers('recurrent layers', [
  ...Object.entries(cells).map(([title, cellTpl]) =>
    mixerCase({ title, config: FRnn.config({ inputDim, cellTpl }) }),
  ),
  mixerCase({
    title: 'zoneout',
    config: FRnn.config({ inputDim, cellTpl: GruCell.config({ zoProb: 0.3 }) }),
  }),
  mixerCase({ title: 'stack', config: StackFrnn.config({ inputDim, numLayers: 2 }) }),
]);

const paddings = given('float32', [0, 0, 0, 1, 1, 0, 0, 0, 0, 0], [2, 5]);
checkLayers('stacks', [
  layerCase({
    title: 'both directions',
    config: StackBiFrnn.config({ inputDim, numLayers: 2, numOutputNodes: 4 }),
    inputs: { x: floats([2, 5, inputDim]), paddings },
    call: (layer, { x, paddings }) => layer.fprop(x!, { seen: { paddings: tf.round(paddings!) as Tensor } }),
    variables: {
      'fwd_frnn_0/cell/wm': [5, 8],
      'fwd_frnn_0/cell/b': [8],
      'fwd_frnn_1/cell/wm': [6, 8],
      'fwd_frnn_1/cell/b': [8],
      'bwd_frnn_0/cell/wm': [5, 8],
      'bwd_frnn_0/cell/b': [8],
      'bwd_frnn_1/cell/wm': [6, 8],
      'bwd_frnn_1/cell/b': [8],
    },
  }),
  layerCase({
    title: 'SRU of another depth',
    config: FRnn.config({ inputDim, cellTpl: SruCell.config({ numOutputNodes: 2 }) }),
    inputs: { x: floats([2, 5, inputDim]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: { 'cell/w': [3, 8], 'cell/v': [4], 'cell/b': [4] },
  }),
]);

test('the published sums of LSTMs under the sine fill', () => {
  const published = [
    [LstmCellSimple.config({ numOutputNodes: 6 }), 360, 0.169301],
    [LayerNormalizedLstmCellSimple.config({ numOutputNodes: 6 }), 384, 0.060265],
  ] as const;
  for (const [cellTpl, parameters, q] of published) {
    const layer = build(LstmFrnn.config({ inputDim: 8, cellTpl }));
    expect(parameterCount(layer)).toBe(parameters);
    // Five rows of two times: the figures call the first axis time, and Pax's layer takes it for the batch.
    const outputs = run(sineTheta(layer), () => layer.fprop(sineInput([5, 2, 8])));
    expect(sums(outputs).q).toBeCloseTo(q, 6);
  }
});

test("the published sum of Trax's GRU, whose gates are one variable and its candidate another", () => {
  const cellTpl = GruCell.config({ resetAfter: false });
  const layer = build(FRnn.config({ inputDim: 8, cellTpl }));
  const sine = (shape: number[]): Tensor =>
    tf.reshape(tf.mul(tf.sin(tf.range(1, shape.reduce((a, b) => a * b) + 1)), 0.1), shape);
  const [gates, gatesBias, candidate, candidateBias] = [sine([16, 16]), sine([16]), sine([16, 8]), sine([8])];
  // Trax has the update gate first.
  const swapped = (x: Tensor): Tensor => tf.concat(tf.split(x, 2, -1).reverse(), -1);
  const all = tf.concat([swapped(gates), candidate], 1);
  const theta = {
    'cell/w': tf.slice(all, [0, 0], [8, 24]),
    'cell/u': tf.slice(all, [8, 0], [8, 24]),
    'cell/b': tf.concat([swapped(gatesBias), candidateBias], 0),
  };
  expect(sums(run(theta, () => layer.fprop(sineInput([2, 5, 8])))).q).toBeCloseTo(0.437192, 6);
});

test('backwards, a layer reads each sequence from its end, and its state rests at padding', () => {
  const layer = build(FRnn.config({ inputDim, cellTpl: GruCell.config(), reverse: true }));
  const ahead = build(FRnn.config({ inputDim, cellTpl: GruCell.config() }));
  const x = tensor([1, 6, inputDim]);
  const theta = {
    'cell/w': tensor([3, 9], 2),
    'cell/u': tensor([3, 9], 3),
    'cell/b': tensor([9], 4),
    'cell/c': tensor([3], 5),
  };
  const part = (begin: number, size: number): Tensor => tf.slice(x, [0, begin, 0], [1, size, inputDim]);
  const backwards = (part: Tensor): Tensor =>
    tf.reverse(
      run(theta, () => ahead.fprop(tf.reverse(part, 1))),
      1,
    );
  const segments = ints([1, 1, 2, 2, 2, 2], [1, 6]);
  const packed = run(theta, () =>
    layer.fprop(x, { seen: { segments: { queries: segments, keys: segments } } }),
  );
  expectNear(packed, tf.concat([backwards(part(0, 2)), backwards(part(2, 4))], 1), 1e-6);
  const padded = tf.concat([part(0, 4), tf.fill([1, 2, inputDim], 1e4)], 1);
  const outputs = run(theta, () =>
    layer.fprop(padded, { seen: { paddings: tf.tensor2d([[0, 0, 0, 0, 1, 1]]) } }),
  );
  expectNear(tf.slice(outputs, [0, 0, 0], [1, 4, inputDim]), backwards(part(0, 4)), 1e-6);
});

test('zoneout holds elements of the state in training, and mixes them in evaluation', () => {
  const layer = build(FRnn.config({ inputDim: 64, cellTpl: GruCell.config({ zoProb: 0.25 }) }));
  const theta = Object.fromEntries(
    [...layer.children.get('cell')!.variables].map(([name, { shape }], i) => [
      `cell/${name}`,
      tensor([...shape], i),
    ]),
  );
  const x = tensor([8, 3, 64]);
  const outputs = run(theta, () => layer.fprop(x), { prngKey: ints([1, 2], [2]) });
  const [first, second] = tf.unstack(outputs, 1) as [Tensor, Tensor];
  const held = tf.mean(tf.cast(tf.equal(first, 0), 'float32')).dataSync()[0]!;
  expect(held).toBeGreaterThan(0.2);
  expect(held).toBeLessThan(0.3);
  const heldNext = tf.mean(tf.cast(tf.equal(first, second), 'float32')).dataSync()[0]!;
  expect(heldNext).toBeGreaterThan(0.2);
  // Each step draws numbers of its own.
  expect(heldNext).toBeLessThan(0.32);
  const plain = build(FRnn.config({ inputDim: 64, cellTpl: GruCell.config() }));
  const once = tf.slice(x, [0, 0, 0], [8, 1, 64]);
  const evaluated = run(theta, () => layer.fprop(once), { doEval: true });
  expectNear(
    evaluated,
    tf.mul(
      run(theta, () => plain.fprop(once)),
      0.75,
    ),
    1e-6,
  );
});

test('a layer goes on from the state that another call ended with', () => {
  const layer = build(FRnn.config({ inputDim }));
  const theta = { 'cell/wm': tensor([6, 12]), 'cell/b': tensor([12], 2) };
  const x = tensor([2, 5, inputDim]);
  const first = run(theta, () => layer.unroll(tf.slice(x, [0, 0, 0], [2, 2, inputDim])));
  const rest = run(theta, () =>
    layer.unroll(tf.slice(x, [0, 2, 0], [2, 3, inputDim]), { state: first.state }),
  );
  const whole = run(theta, () => layer.fprop(x));
  expectNear(tf.concat([first.outputs, rest.outputs], 1), whole, 1e-6);
});

test('what does not fit is one error', () => {
  const seen = { causal: true, window: { before: 2 } };
  const x = tf.zeros([1, 2, inputDim]);
  const reverse = build(FRnn.config({ inputDim, reverse: true }));
  const plain = build(FRnn.config({ inputDim }));
  const theta = { 'cell/wm': tf.zeros([6, 12]), 'cell/b': tf.zeros([12]) };
  const thrown = (f: () => unknown): string => {
    try {
      run(theta, f);
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  };
  expect(
    thrown(() => build(FRnn.config({ inputDim, cellTpl: GruCell.config({ numInputNodes: 4 }) }))),
  ).toContain('model (FRnn): cellTpl.numInputNodes: expected inputDim 3, or 0 for it, got 4.');
  expect(
    thrown(() => build(FRnn.config({ inputDim, cellTpl: CifgLstmCellSimple.config({ forgetGateBias: 1 }) }))),
  ).toContain(
    'cell (CifgLstmCellSimple): forgetGateBias: expected 0, for the forget gate is the input gate too, got 1.',
  );
  expect(thrown(() => plain.fprop(tf.zeros([1, 2, 4])))).toBe(
    'model (FRnn): expected inputs [B, T, 3], got [1, 2, 4].',
  );
  expect(thrown(() => plain.fprop(x, { seen }))).toBe(
    "model (FRnn): goes from token to token, and cannot keep to 'window' of the visibility: expected an attention in its place.",
  );
  expect(thrown(() => plain.fprop(x, { keyVec: x }))).toBe(
    'model (FRnn): sees its own inputs alone: keyVec and valueVec are for attention.',
  );
  expect(thrown(() => reverse.fprop(x, { seen: { causal: true } }))).toBe(
    'model (FRnn): goes from the last token to the first (reverse), and the visibility is causal.',
  );
  expect(thrown(() => reverse.extendStep(x, { timeStep: tf.scalar(0, 'int32') }))).toBe(
    'model (FRnn): goes from the last token to the first (reverse), and cannot decode.',
  );
});
