/** @file Steps of ranks that hold parts of the variables: what one process computes from the same sub-batches. */
import { describe, expect, test } from 'vitest';
import { tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  BatchNorm,
  Constant,
  StackedTransformerRepeated,
  WeightCollection,
} from '../../../src/layers/index.js';
import {
  Adafactor,
  AdamW,
  type BaseOptimizer,
  Lamb,
  Muon,
  Shampoo,
  Sm3,
  Soap,
} from '../../../src/learners/index.js';
import { LanguageModel, type TensorBatch } from '../../../src/models/index.js';
import { isPart, Mesh, type SingleTask } from '../../../src/tasks/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { isShort } from '../../faults/campaign.js';
import { divided } from './rowShares.js';
import { differences, expectNear, trained } from './splitTraining.js';

/** Variables over the ranks that have other rows, by one dimension or two, and some that are whole. */
const weightSplitDimsMapping = {
  '.*/ffn_layer1/linear/w': [null, 'data'],
  '.*/ffn_layer2/linear/w': [['data', 'replica'], null],
  '.*/self_attention/(query|key|value)/w': ['data', 'replica', null],
  '.*/softmax/w': ['data', null],
  '.*/layer_norm/scale': ['data'],
};
const grid = (...iciMeshShape: number[]) => build(Mesh.config({ iciMeshShape, weightSplitDimsMapping }));

const repeatedGrid = (...iciMeshShape: number[]) =>
  build(
    Mesh.config({
      iciMeshShape,
      weightSplitDimsMapping: {
        '.*/ffn_layer1/linear/w': [null, null, 'data'],
        '.*/ffn_layer2/linear/w': [null, 'data', null],
        '.*/self_attention/(query|key|value|post)/w': [null, 'data', null, null],
        '.*/sub/.*/layer_norm/(scale|bias)': [null, 'data'],
        '.*/softmax/w': ['data', null],
      },
    }),
  );

/** Splits like Pax's of a language model. */
const paxGrid = (...iciMeshShape: number[]) =>
  build(
    Mesh.config({
      iciMeshShape,
      weightSplitDimsMapping: {
        '.*/ffn_layer1/linear/w': ['data', 'mdl'],
        '.*/ffn_layer2/linear/w': ['mdl', 'data'],
        '.*/self_attention/(query|key|value|post)/w': ['data', 'mdl', null],
        '.*/softmax/w': [['data', 'mdl'], null],
      },
    }),
  );

/** Of two elements that the forward pass replaces, the second becomes infinite. */
class Sharing extends LanguageModel {
  protected override setup(): void {
    super.setup();
    const init = build(Constant.config({ scale: 0 }));
    this.createVariable('share', { shape: [2], init, collections: [WeightCollection.NON_TRAINABLE] });
  }
  override fprop(batch: TensorBatch): ReturnType<LanguageModel['fprop']> {
    this.updateVar('share', tf.div(1, tf.tensor1d([1, 0])));
    return super.fprop(batch);
  }
}

/** Two ranks with other rows. */
const meshOf = (mapping: Record<string, string[]>): Mesh =>
  build(Mesh.config({ iciMeshShape: [1, 2, 1], weightSplitDimsMapping: mapping }));

const unclipped = (config: Config<SingleTask>): void => {
  divided(config);
  config.train.learner.optimizer.clipGradientNormToValue = 0;
  config.train.learner.gradNormIndividualVars = true;
};

/** Two layers in a loop, one sub-batch a rank. */
const repeated = (config: Config<SingleTask>): void => {
  unclipped(config);
  config.train.numSubBatches = 2;
  const { lmTpl } = config.model as Config<LanguageModel>;
  const { hiddenDims, numHeads, transformerLayerParamsTpl } = lmTpl.stackedTransformerTpl;
  lmTpl.stackedTransformerTpl = StackedTransformerRepeated.config({
    ...{ numLayers: 1, xTimes: 2, hiddenDims, numHeads, transformerLayerParamsTpl },
  });
};

describe.runIf(hasCompiler)('on machine code', () => {
  test.each([
    ['two ranks', grid(1, 2, 1), unclipped],
    ['two replicas of two', grid(2, 2, 1), unclipped],
    ['repeated layers of two ranks, whose turns gather and scatter,', repeatedGrid(1, 2, 1), repeated],
  ])('%s have the bits of one process', async (_, mesh, edit) => {
    const one = await trained(edit);
    const { state, reports, norms } = await trained(edit, mesh);
    const { shards, parts } = state.split!;
    expect(shards.filter(isPart).length).toBeGreaterThan(5);
    expect(parts.params.length).toBeLessThan(state.params.length);
    expect(differences(state, one.state)).toEqual({ m: 0, v: 0, ema: 0, params: 0 });
    expect(reports.map(({ loss, metrics }) => ({ loss, metrics }))).toEqual(
      one.reports.map(({ loss, metrics }) => ({ loss, metrics })),
    );
    // Sums over parts are in another order.
    expect(Object.keys(norms).sort()).toEqual(Object.keys(one.norms).sort());
    for (const [name, norm] of Object.entries(norms))
      expect(norm / one.norms[name]!, name).toBeCloseTo(1, 12);
  });

  const rates = { learningRate: 1e-2, emaDecay: 0.5 };
  const factored = { ...rates, beta1: 0.9, minDimSizeToFactor: 4, multiplyByParameterScale: true };
  const ofWholes: [string, Config<BaseOptimizer>][] = [
    ['Adafactor', Adafactor.config({ ...factored, layerwiseAdaptation: true, weightDecay: 0.1 })],
    ['Muon', Muon.config(rates)],
    ['Shampoo', Shampoo.config(rates)],
    ['Soap', Soap.config(rates)],
    ['Sm3', Sm3.config(rates)],
    ['AdamW with int8 slots', AdamW.config({ ...rates, slotDtype: 'int8' })],
  ];
  test.each(isShort ? ofWholes.slice(0, 1) : ofWholes)(
    '%s, which sees whole variables, has the steps of one process',
    async (_, optimizer) => {
      const meshes = [
        [repeatedGrid(1, 2, 1), repeated] as const,
        ...(isShort ? [] : [[grid(2, 2, 1), unclipped] as const]),
      ];
      for (const [mesh, edit] of meshes) {
        const learned = (config: Config<SingleTask>): void => {
          edit(config);
          config.train.learner.optimizer = optimizer;
        };
        const one = await trained(learned);
        const { state, reports } = await trained(learned, mesh);
        expect(state.split!.shards.filter(isPart).length).toBeGreaterThan(5);
        expectNear({ state, reports }, one);
      }
    },
  );

  test('statistics of batch norm in parts are those of one process', async () => {
    const normed = (config: Config<SingleTask>): void => {
      unclipped(config);
      (config.model as Config<LanguageModel>).lmTpl.finalLnTpl = BatchNorm.config();
    };
    const mesh = meshOf({ '.*/final_ln/.*': ['data'] });
    const one = await trained(normed);
    const { state, reports } = await trained(normed, mesh);
    const parts = state.split!.shards.filter(isPart).map(({ path }) => path);
    expect(parts).toContain('lm/final_ln/moving_mean');
    expectNear({ state, reports }, one);
  });

  test('a part that the forward pass replaces by what is not finite keeps all ranks from the step', async () => {
    const sharing = (config: Config<SingleTask>): void => {
      divided(config);
      const { lmTpl } = config.model as Config<LanguageModel>;
      config.model = Sharing.config({ lmTpl });
    };
    const { reports } = await trained(sharing, meshOf({ share: ['data'] }));
    expect(reports.map(({ update }) => update.isValidStep)).toEqual([0, 0, 0]);
  });

  test.each([
    ['a model over two ranks', paxGrid(1, 1, 2)],
    ['rows over two, a model over two', paxGrid(1, 2, 2)],
  ])('%s has the losses of one process', async (_, mesh) => {
    const one = await trained(divided);
    const { state, reports } = await trained(divided, mesh);
    for (const [i, { loss, update }] of reports.entries()) {
      expect(loss).toBeCloseTo(one.reports[i]!.loss, 5);
      expect(update.rawGradNorm).toBeCloseTo(one.reports[i]!.update.rawGradNorm, 5);
    }
    for (const [name, difference] of Object.entries(differences(state, one.state)))
      expect(difference, name).toBeLessThan(1e-4);
  });

  test.each([
    ['all gradients together', (config: Config<SingleTask>) => divided(config)],
    [
      'each variable',
      (config: Config<SingleTask>) => {
        unclipped(config);
        config.train.learner.optimizer.clipGradientSingleNormToValue = 0.02;
      },
    ],
    [
      'Lamb',
      (config: Config<SingleTask>) => {
        unclipped(config);
        config.train.learner.optimizer = Lamb.config({
          ...{ learningRate: 1e-2, emaDecay: 0.5, cautious: true, clipThreshold: 0.5 },
        });
      },
    ],
  ])('norms of %s are those of whole variables', async (_, edit) => {
    const one = await trained(edit);
    const { state, reports } = await trained(edit, grid(1, 2, 1));
    for (const [name, difference] of Object.entries(differences(state, one.state)))
      expect(difference, name).toBeLessThan(2e-6);
    for (const [i, { update }] of reports.entries()) {
      const expected = one.reports[i]!.update;
      expect(update.rawGradNorm).toBeCloseTo(expected.rawGradNorm, 5);
      expect(update.clippedGradNorm).toBeCloseTo(expected.clippedGradNorm, 5);
      expect(update.isValidStep).toBe(1);
    }
  });
});
