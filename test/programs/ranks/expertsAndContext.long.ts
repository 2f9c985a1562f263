/** @file Experts over the axis data_expert, and rows over the axis context: the losses of one process. */
import { describe, expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import type { InputSource } from '../../../src/inputs/index.js';
import { TransformerFeedForwardMoe } from '../../../src/layers/index.js';
import type { LanguageModel } from '../../../src/models/index.js';
import { isPart, Mesh, type SingleTask } from '../../../src/tasks/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { isShort } from '../../faults/campaign.js';
import { divided, shareOf } from './rowShares.js';
import { expectNear, trained } from './splitTraining.js';

const STEPS = 10;

type Gating = 'top2' | 'topk' | 'expert_choice';

/** Four experts in each layer, of which a token takes two; a bound of their tokens. */
const experts = (gatingFunc: Gating) => (config: Config<SingleTask>) => {
  divided(config);
  const stack = (config.model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;
  stack.moeLayerTpl = TransformerFeedForwardMoe.config({
    hiddenDims: 16,
    moeLoadBalanceLossWeight: 0.01,
    gatingFunc,
  });
  stack.moeLayers = [0];
  stack.numExperts = 4;
};

/** Packed rows of two documents. */
const packed = (config: Config<SingleTask>): void => {
  divided(config);
  (config.model as Config<LanguageModel>).lmTpl.packedInput = true;
};

function packedShare(rank: number, count: number): InputSource {
  const input = shareOf(rank, count);
  for (const name of ['getNext', 'peek'] as const) {
    const next = input[name].bind(input) as () => Promise<any>;
    input[name] = async () => {
      const batch = await next();
      const { shape } = batch.ids;
      const of = (value: (at: number) => number) => ({
        shape,
        dtype: 'int32',
        data: Int32Array.from(batch.ids.data, (_: number, i: number) => value(i % shape[1])),
      });
      const first = 5;
      return {
        ...batch,
        segmentIds: of((at) => (at < first ? 1 : 2)),
        segmentPos: of((at) => (at < first ? at : at - first)),
      };
    };
  }
  return input;
}

const axes = { meshAxisNames: ['replica', 'data', 'data_expert', 'context', 'mdl'] };
const ofExperts = (inputsSplitMapping: string[], ...iciMeshShape: number[]): Mesh =>
  build(
    Mesh.config({
      ...{ ...axes, iciMeshShape, inputsSplitMapping },
      weightSplitDimsMapping: { '.*/(wi|wo)_0': ['data_expert', null, null] },
    }),
  );
const ofContext = (...iciMeshShape: number[]): Mesh =>
  build(
    Mesh.config({
      ...{ ...axes, iciMeshShape },
      activationSplitDimsMapping: {
        '.*/transformer(/(?!.*self_attention).*)?': [['replica', 'data'], 'context', null],
        '.*/self_attention(/.*)?': [['replica', 'data'], 'context', null, null],
      },
    }),
  );

/** A short run tries the last of each. */
const tried = <T>(cases: T[]): T[] => (isShort ? cases.slice(-1) : cases);

describe.runIf(hasCompiler)('on machine code', () => {
  test.each(
    tried<[string, Mesh, Gating]>([
      ['beside rows', ofExperts(['replica', 'data'], 1, 1, 4, 1, 1), 'topk'],
      ['beside rows of two, by two', ofExperts(['replica', 'data'], 1, 2, 2, 1, 1), 'top2'],
      ['of other rows', ofExperts(['data', 'data_expert'], 1, 1, 2, 1, 1), 'expert_choice'],
    ]),
  )('experts on ranks %s have the losses of one process', async (_, mesh, gating) => {
    const one = await trained(experts(gating), undefined, STEPS);
    const { state, reports } = await trained(experts(gating), mesh, STEPS);
    expect(state.split!.shards.filter(isPart).length).toBeGreaterThan(1);
    expectNear({ state, reports }, one);
  });

  test.each(
    tried<[string, Mesh]>([
      ['four ranks', ofContext(1, 1, 1, 4, 1)],
      ['two ranks of two with other rows', ofContext(1, 2, 1, 2, 1)],
    ]),
  )('parts of packed rows on %s have the losses of one process', async (_, mesh) => {
    const one = await trained(packed, undefined, STEPS, packedShare);
    expectNear(await trained(packed, mesh, STEPS, packedShare), one);
  });
});
