/** @file Steps of ranks that hold parts of the variables: what one process computes from the same sub-batches. */
import { describe, expect, test } from 'vitest';
import { openThreadRanks } from '../../../src/compiler/native/threadRanks.js';
import { build, type Config } from '../../../src/hparams/index.js';
import { StackedTransformerRepeated } from '../../../src/layers/index.js';
import { Lamb } from '../../../src/learners/index.js';
import type { LanguageModel } from '../../../src/models/index.js';
import { nextTurn } from '../../../src/programs/ranks/agreement.js';
import type { TrainMemory } from '../../../src/programs/taskState.js';
import type { TrainReport } from '../../../src/programs/trainProgram.js';
import type { JobRanks } from '../../../src/runs/index.js';
import { isPart, Mesh, type SingleTask } from '../../../src/tasks/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { tinyTraining } from '../tinyTraining.js';
import { ranksInProcess } from './ranksInProcess.js';
import { divided, shareOf } from './rowShares.js';

const STEPS = 3;

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

interface Trained {
  readonly reports: readonly TrainReport[];
  readonly state: TrainMemory;
  readonly norms: Readonly<Record<string, number>>;
}

/** Three steps of one process, or of as many ranks as a mesh has. */
async function trained(edit: (config: Config<SingleTask>) => void, mesh?: Mesh): Promise<Trained> {
  const count = mesh?.ways() ?? 1;
  const threads = mesh && (await openThreadRanks(count));
  const ranks: (JobRanks | undefined)[] = threads
    ? ranksInProcess(count).map((each, i) => ({ ...each, steps: threads.ranks[i]! }))
    : [undefined];
  const all = await Promise.all(
    ranks.map((each, rank) =>
      tinyTraining('native', 1, {
        ...{
          emaDecay: 0.5,
          edit,
          input: shareOf(mesh?.shareOf(rank).index ?? 0, mesh?.shareOf(0).count ?? 1),
        },
        ...(each && { ranks: each }),
        ...(mesh && { mesh }),
      }),
    ),
  );
  const reports: TrainReport[] = [];
  for (let step = 0; step < STEPS; step++) {
    const [first] = await Promise.all(
      all.map(async ({ program }, rank) => {
        if (rank > 0) await nextTurn(ranks[rank]!);
        return program.run();
      }),
    );
    reports.push(first!);
  }
  const [{ state, program }] = all as [(typeof all)[number]];
  await Promise.all([
    state.memory?.toHost(),
    ...all.slice(1).map(async ({ state }, i) => {
      expect(await nextTurn(ranks[i + 1]!)).toBe('gather');
      await state.split!.take('gather');
    }),
  ]);
  const [squares] = await Promise.all([
    state.split?.squares(),
    ...all.slice(1).map(async ({ state }, i) => {
      expect(await nextTurn(ranks[i + 1]!)).toBe('norms');
      await state.split!.take('norms');
    }),
  ]);
  const { updater } = program;
  const norms: Record<string, number> = {
    ...{ all: updater.varNorm(squares), ...updater.varNorms(squares) },
    ...Object.fromEntries(
      Object.entries(updater.gradNorms(squares)).map(([path, norm]) => [`gradient of ${path}`, norm]),
    ),
  };
  return { reports, state, norms };
}

/** Largest difference of two states, by buffer. */
const differences = (a: TrainMemory, b: TrainMemory): Record<string, number> =>
  Object.fromEntries(
    Object.entries({ params: a.params, ...a.slots }).map(([name, buffer]) => {
      const other = name === 'params' ? b.params : b.slots[name]!;
      return [name, Math.max(...Array.from(buffer, (value, i) => Math.abs(value - other[i]!)))];
    }),
  );

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
