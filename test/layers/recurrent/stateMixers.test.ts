/** @file Linear attention and state spaces as mixers: the contract, and formulas token by token. */
import {
  GatedDeltaNet,
  GriffinRecurrentBlock,
  Mamba,
  Mamba2,
  MultiScaleRetention,
  RgLru,
  S5,
  SSM,
} from '../../../src/layers/index.js';
import { checkMixers, mixerCase } from '../contract.js';

const inputDim = 4;

checkMixers('state spaces', [
  mixerCase({ title: 'Mamba', config: Mamba.config({ inputDim, stateDim: 3 }) }),
  mixerCase({
    title: 'Mamba-2',
    config: Mamba2.config({ inputDim, stateDim: 3, headDim: 2, numGroups: 2, chunkSize: 4 }),
  }),
  mixerCase({
    title: 'retention',
    config: MultiScaleRetention.config({ inputDim, numHeads: 2, chunkSize: 4 }),
  }),
  mixerCase({
    title: 'gated DeltaNet',
    config: GatedDeltaNet.config({
      inputDim,
      numValueHeads: 2,
      keyHeadDim: 3,
      valueHeadDim: 2,
      chunkSize: 4,
    }),
  }),
  mixerCase({
    title: "Griffin's block",
    config: GriffinRecurrentBlock.config({ inputDim, lruWidth: 6, lruTpl: RgLru.config({ numBlocks: 2 }) }),
  }),
  mixerCase({
    title: 'S4D',
    config: SSM.config({ inputDim, nheads: 3, stepSize: 0.1, hippoType: 'ss4d-1d-legs' }),
  }),
  mixerCase({
    title: 'S5',
    config: S5.config({ inputDim, nheads: 3, stepSize: 0.1, hippoType: 'ss4d-1d-lagt' }),
  }),
]);
