/** @file Layers of a stack without positions, plain and repeated: those of a stack that is made by hand, and bad choices. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Alibi,
  decodeStateSpecs,
  listLayers,
  MultiTokenPredictionLm,
  SSM,
  StackedTransformer,
  StackedTransformerRepeated,
  Transformer,
} from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, stateOf, tensor } from '../helpers.js';

const dims = { modelDims: 4, hiddenDims: 6, numHeads: 2 };
const [B, T] = [2, 5];

const layer = (attention: object): Config<Transformer> => {
  const config = Transformer.config();
  Object.assign(config.trAttenTpl, attention);
  return config;
};
const rotated = () => layer({ useRotaryPositionEmb: true });

/** Four layers, of which the first and third have positions, each given by itself. */
const byHand = (positions: object) =>
  StackedTransformer.config({
    ...{ ...dims, numLayers: 4 },
    transformerLayerParamsTpls: [layer(positions), layer({}), layer(positions), layer({})],
  });

const whole = (stack: StackedTransformer, theta: Record<string, Tensor>, x: Tensor): Tensor =>
  run(theta, () => stack.fprop(x, { seen: { causal: true } }));

test.each([
  ['rotations', { useRotaryPositionEmb: true }],
  ['relative biases', { relativeBiasTpl: Alibi.config() }],
])('chosen layers are without %s, as in a stack made by hand', (_, positions) => {
  const chosen = build(
    StackedTransformer.config({
      ...{ ...dims, numLayers: 4, nopeLayers: [1, 3] },
      transformerLayerParamsTpl: layer(positions),
    }),
  );
  const [theta, x] = [randomTheta(chosen), tensor([B, T, 4])];
  const outputs = whole(chosen, theta, x);
  expectClose(outputs, whole(build(byHand(positions)), theta, x).dataSync());
});

test('every second layer of a repeated stack is without them, in training and in decoding', () => {
  const repeated = build(
    StackedTransformerRepeated.config({
      ...{ ...dims, xTimes: 2, numLayers: 2, nopeLayers: [1] },
      transformerLayerParamsTpl: rotated(),
    }),
  );
  const plain = build(byHand({ useRotaryPositionEmb: true }));
  const [theta, x] = [randomTheta(plain), tensor([B, T, 4])];
  // Layer 2 i + j of the plain stack is layer j of repetition i.
  const stacked = Object.fromEntries(
    Object.entries(theta).flatMap(([path, first]) => {
      const [, j, rest] = /^x_layers_([01])\/(.*)$/.exec(path) ?? [];
      if (j === undefined) return [];
      const second = theta[`x_layers_${Number(j) + 2}/${rest}`]!;
      return [[`repeat/sub/x_layers_${j}/${rest}`, tf.stack([first, second])]];
    }),
  );
  const expected = whole(plain, theta, x);
  expectClose(whole(repeated, stacked, x), expected.dataSync());
  const decodeState = stateOf(decodeStateSpecs(repeated, B, T));
  const tokens = Array.from({ length: T }, (_, t) =>
    run(
      stacked,
      () => repeated.extendStep(tf.slice(x, [0, t, 0], [B, 1, 4]), { timeStep: tf.scalar(t, 'int32') }),
      { decodeState },
    ),
  );
  expectClose(tf.concat(tokens, 1), expected.dataSync());
});

test.each([
  [0, true],
  [1, false],
])('heads that predict further have the last layer: without positions in layer %i', (nope, isRotated) => {
  const stackedTransformerTpl = StackedTransformer.config({
    ...{ numLayers: 2, hiddenDims: 6, numHeads: 2, nopeLayers: [nope] },
    transformerLayerParamsTpl: rotated(),
  });
  const model = build(MultiTokenPredictionLm.config({ vocabSize: 5, modelDims: 4, stackedTransformerTpl }));
  const rotations = listLayers(model).filter(({ path }) => path.endsWith('rotary_position_emb'));
  expect(rotations.some(({ path }) => path.startsWith('mtp_0/'))).toBe(isRotated);
});

test.each([
  [{ nopeLayers: [2] }, 'nopeLayers: expected layers from 0 to 1, got 2.'],
  [
    { nopeLayers: [1], transformerLayerParamsTpl: layer({}) },
    'nopeLayers: the attention of layer 1 has neither a rotation nor a relative bias to leave out.',
  ],
  [
    {
      nopeLayers: [0],
      transformerLayerParamsTpl: Transformer.config({ mixerTpl: SSM.config({ nheads: 2 }) }),
    },
    'nopeLayers: layer 0 has a mixer in the place of its attention.',
  ],
])('%j', (values, message) => {
  const config = StackedTransformer.config({
    ...{ ...dims, numLayers: 2, transformerLayerParamsTpl: rotated() },
    ...values,
  });
  expect(() => build(config)).toThrow(`model (StackedTransformer): ${message}`);
});
