/** @file Recurrences in the attention's place of language models: decoding as training, and depths that do not fit. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config, deepCopy } from '../../../src/hparams/index.js';
import {
  type BaseMixer,
  decodeStateSpecs,
  FRnn,
  GatedDeltaNet,
  GriffinRecurrentBlock,
  GruCell,
  Mamba,
  Mamba2,
  MultiScaleRetention,
  S5,
  SSM,
  SSMGated,
  StackedTransformer,
  StackedTransformerRepeated,
  StackFrnn,
  Transformer,
  TransformerLm,
} from '../../../src/layers/index.js';
import { checkLayers, expectNear, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [B, T, D, vocabSize] = [2, 4, 4, 5];
const ids = ints([3, 1, 4, 1, 0, 2, 1, 3], [B, T]);
const depths = { modelDims: D, hiddenDims: 4, numHeads: 1 };
const stateSpace = { nheads: 3, stepSize: 0.1, hippoType: 'ss4d-1d-legs' } as const;

const block = (mixerTpl: Config<BaseMixer>) => Transformer.config({ mixerTpl });
const stacked = (mixerTpl: Config<BaseMixer>) =>
  StackedTransformer.config({ ...depths, numLayers: 1, transformerLayerParamsTpl: block(mixerTpl) });

const stacks = {
  FRnn: stacked(FRnn.config({ cellTpl: GruCell.config() })),
  StackFrnn: stacked(StackFrnn.config({ numLayers: 2 })),
  Mamba: stacked(Mamba.config({ stateDim: 3 })),
  Mamba2: stacked(Mamba2.config({ stateDim: 3, headDim: 2, chunkSize: 2 })),
  MultiScaleRetention: stacked(MultiScaleRetention.config({ numHeads: 2, chunkSize: 2 })),
  GatedDeltaNet: stacked(GatedDeltaNet.config({ keyHeadDim: 3, valueHeadDim: 2, chunkSize: 2 })),
  GriffinRecurrentBlock: stacked(GriffinRecurrentBlock.config()),
  "SSM, Pax's SSMTransformer": stacked(SSM.config(stateSpace)),
  S5: stacked(S5.config(stateSpace)),
  SSMGated: StackedTransformer.config({
    ...{ ...depths, numLayers: 2 },
    transformerLayerParamsTpl: SSMGated.config({ ssmDim: 6, mixerTpl: SSM.config(stateSpace) }),
  }),
  'Mamba in a loop': StackedTransformerRepeated.config({
    ...{ ...depths, numLayers: 1, xTimes: 2, unrollInDecode: false },
    transformerLayerParamsTpl: block(Mamba.config({ stateDim: 3 })),
  }),
};

test.each(Object.entries(stacks))(
  'a language model of %s decodes as it trains',
  (_, stackedTransformerTpl) => {
    const lm = build(TransformerLm.config({ vocabSize, modelDims: D, stackedTransformerTpl }));
    const theta = randomTheta(lm);
    const whole = run(theta, () => lm.logits({ ids }), { doEval: true });
    const decodeState = stateOf(decodeStateSpecs(lm, B, T));
    expect(Object.keys(decodeState)[0]).toMatch(/mixer|ssm/);
    const steps = [
      [0, 2],
      [2, 1],
      [3, 1],
    ] as const;
    const logits = steps.map(([at, count]) =>
      run(
        theta,
        () => lm.extendStep(tf.slice(ids, [0, at], [B, count]), { timeStep: tf.scalar(at, 'int32') }),
        { decodeState, doEval: true },
      ),
    );
    expectNear(tf.concat(logits, 1), whole, 1e-5);
  },
);

test.each([
  ['FRnn', FRnn.config({ cellTpl: GruCell.config({ numOutputNodes: 1 }) })],
  ['StackFrnn', StackFrnn.config({ numOutputNodes: 1 })],
])('%s of another output depth is refused in a block', (_, mixerTpl) => {
  const dims = { inputDims: D, hiddenDims: 4 };
  expect(() => build(Transformer.config({ ...dims, mixerTpl }))).toThrow(
    'model (Transformer): mixerTpl: expected outputs of depth 4, got 1.',
  );
  expect(() => build(SSMGated.config({ ...dims, ssmDim: 6, mixerTpl: deepCopy(mixerTpl) }))).toThrow(
    'model (SSMGated): mixerTpl: expected outputs of depth 6, got 1.',
  );
});

/** The parts of a block, for its formula. */
const partsOf = (layer: Transformer) => (name: string) =>
  layer.children.get(name)! as never as { fprop(x: Tensor): Tensor };

checkLayers('blocks of gated state spaces', [
  layerCase({
    title: 'SSMGated',
    config: SSMGated.config({ inputDims: D, hiddenDims: 1, ssmDim: 6, mixerTpl: SSM.config(stateSpace) }),
    inputs: { x: floats([2, 3, D], 3) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: {
      'layer_norm/scale': [4],
      'layer_norm/bias': [4],
      'ssm/D': [1, 6],
      'ssm/C_re': [3, 6],
      'ssm/C_im': [3, 6],
      'gss_ffn_v/linear/w': [4, 12],
      'gss_ffn_v/bias/b': [12],
      'gss_ffn_u/linear/w': [4, 6],
      'gss_ffn_u/bias/b': [6],
      'gss_ffn_uc/linear/w': [6, 4],
      'gss_ffn_uc/bias/b': [4],
      'gss_ffn_uco/linear/w': [4, 12],
      'gss_ffn_uco/bias/b': [12],
      'gss_ffn_o/linear/w': [12, 4],
      'gss_ffn_o/bias/b': [4],
    },
  }),
]);

test.each(['pre', 'primer_hybrid'] as const)('a gated state space is its formula, norms %s', (normPolicy) => {
  const mixerTpl = SSM.config(stateSpace);
  const layer = build(SSMGated.config({ inputDims: D, hiddenDims: 1, ssmDim: 6, mixerTpl, normPolicy }));
  const [theta, x] = [randomTheta(layer), tensor([2, 3, D])];
  const part = partsOf(layer);
  const outputs = run(theta, () => layer.fprop(x));
  const expected = run(theta, () => {
    const n = part(normPolicy === 'pre' ? 'layer_norm' : 'pre_layer_norm').fprop(x);
    const u = part('gss_ffn_u').fprop(n);
    const mixed = part('gss_ffn_uc').fprop(part('ssm').fprop(u));
    const h = tf.add(x, normPolicy === 'pre' ? mixed : part('post_layer_norm').fprop(mixed)) as Tensor;
    return part('gss_ffn_o').fprop(tf.mul(part('gss_ffn_uco').fprop(h), part('gss_ffn_v').fprop(n)));
  });
  expectNear(outputs, expected, 1e-6);
});
