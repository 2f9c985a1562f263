/** @file Recurrences in the attention's place of language models: decoding as training, and depths that do not fit. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
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
  StackedTransformer,
  StackedTransformerRepeated,
  StackFrnn,
  Transformer,
  TransformerLm,
} from '../../../src/layers/index.js';
import { expectNear } from '../contract.js';
import { ints, randomTheta, run } from '../helpers.js';

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
    const decodeState = Object.fromEntries(
      Object.entries(decodeStateSpecs(lm, B, T)).map(([path, { shape }]) => [
        path,
        tf.zeros([...shape]) as Tensor,
      ]),
    );
    expect(Object.keys(decodeState)[0]).toContain('mixer');
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
  const stackedTransformerTpl = stacked(mixerTpl);
  expect(() => build(TransformerLm.config({ vocabSize, modelDims: D, stackedTransformerTpl }))).toThrow(
    'transformer/x_layers_0 (Transformer): mixerTpl: expected outputs of depth inputDims 4, got 1.',
  );
});
