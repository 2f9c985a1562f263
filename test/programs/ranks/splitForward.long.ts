/** @file Evaluations by the parts of ranks: the metrics of one process, without a whole state on rank 0. */
import { describe, expect, test } from 'vitest';
import { openThreadRanks } from '../../../src/compiler/native/threadRanks.js';
import { build } from '../../../src/hparams/index.js';
import type { Batch } from '../../../src/inputs/index.js';
import { EvalSteps } from '../../../src/programs/evalStep.js';
import { trainedWeights } from '../../../src/programs/evaluatedWeights.js';
import { announce, nextTurn } from '../../../src/programs/ranks/agreement.js';
import { SplitForward } from '../../../src/programs/ranks/splitForward.js';
import type { JobRanks } from '../../../src/runs/index.js';
import { Evaluation, isPart, Mesh } from '../../../src/tasks/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { isShort } from '../../faults/campaign.js';
import { tinyTraining } from '../tinyTraining.js';
import { ranksInProcess } from './ranksInProcess.js';
import { divided, shareOf } from './rowShares.js';

const weightSplitDimsMapping = {
  '.*/ffn_layer1/linear/w': ['data', 'mdl'],
  '.*/ffn_layer2/linear/w': ['mdl', 'data'],
  '.*/self_attention/(query|key|value|post)/w': ['data', 'mdl', null],
  '.*/softmax/w': [['data', 'mdl'], null],
};
const activationSplitDimsMapping = {
  '.*/self_attention(/.*)?': [['replica', 'data'], null, 'mdl', null],
  '.*/ffn_layer[12](/.*)?': [['replica', 'data'], null, 'mdl'],
};
const grid = (...iciMeshShape: number[]): Mesh =>
  build(Mesh.config({ iciMeshShape, weightSplitDimsMapping, activationSplitDimsMapping }));

type Metrics = Readonly<Record<string, number>>;

/** Metrics of two batches after a step, by the parameters and by their average, and what rank 0 asked for meanwhile. */
async function evaluated(mesh?: Mesh): Promise<{ metrics: Metrics[]; turns: string[] }> {
  const count = mesh?.ways() ?? 1;
  const threads = mesh && (await openThreadRanks(count));
  const ranks: (JobRanks | undefined)[] = threads
    ? ranksInProcess(count).map((each, i) => ({ ...each, steps: threads.ranks[i]! }))
    : [undefined];
  const all = await Promise.all(
    ranks.map((each, rank) => {
      const { index, count } = mesh?.shareOf(rank) ?? { index: 0, count: 1 };
      const given = { emaDecay: 0.5, edit: divided, input: shareOf(index, count) };
      return tinyTraining('native', 1, { ...given, ...(each && { ranks: each }), ...(mesh && { mesh }) });
    }),
  );
  const turns: string[] = [];
  const follow = async (rank: number): Promise<void> => {
    const { program, state } = all[rank]!;
    for (let turn = await nextTurn(ranks[rank]!); turn !== 'end'; turn = await nextTurn(ranks[rank]!)) {
      if (rank === 1) turns.push(turn);
      if (turn === 'step') await program.run();
      else if (turn !== 'peek') await state.split!.take(turn);
    }
  };
  for (const { state, task, options } of all)
    if (state.split) {
      expect(state.split.shards.some(isPart)).toBe(true);
      state.split.forward = new SplitForward({ ...options, mesh }, task, state.split);
    }
  const following = all.slice(1).map((_, i) => follow(i + 1));
  const { program, state, task, options } = all[0]!;
  await program.run();
  if (mesh === undefined) await state.memory?.toHost();
  const input = shareOf(0, 1);
  const batches: Batch[] = [await input.getNext(), await input.getNext()];
  const metrics: Metrics[] = [];
  for (const isAverage of [false, true]) {
    const steps = new EvalSteps(options, task, trainedWeights(state)(isAverage), undefined, isAverage);
    const evaluation = new Evaluation({});
    for (const batch of batches) await steps.run('held_out', batch, evaluation);
    const values = Object.entries(evaluation.result().metrics).map(([name, { value }]) => [name, value]);
    metrics.push(Object.fromEntries(values));
  }
  const [batch] = batches as [any];
  batch.ids.data[7 * 16 + 3] = 64;
  const steps = new EvalSteps(options, task, trainedWeights(state)(false));
  await expect(steps.run('held_out', batch, new Evaluation({}))).rejects.toThrow(
    /Input 'held_out': ids\[7,3\] of its batch, 64 is not one of the 64/,
  );
  if (ranks[0] !== undefined) {
    await announce(ranks[0], 'end');
    await Promise.all(following);
  }
  return { metrics, turns };
}

describe.runIf(hasCompiler)('on machine code', () => {
  test('meshes evaluate parameters and their average as one process does, and nothing gathers them', async () => {
    const one = await evaluated();
    const others = [
      [1, 2, 1],
      [1, 1, 2],
      [2, 2, 1],
    ];
    for (const shape of [[1, 2, 2], ...(isShort ? [] : others)]) {
      const { metrics, turns } = await evaluated(grid(...shape));
      expect(turns, `${shape}`).toEqual(['step', ...Array(5).fill('evaluate')]);
      for (const [i, expected] of one.metrics.entries()) {
        expect(Object.keys(metrics[i]!).sort()).toEqual(Object.keys(expected).sort());
        for (const [name, value] of Object.entries(expected))
          expect(
            Math.abs(metrics[i]![name]! - value) / Math.max(1, Math.abs(value)),
            `${shape} ${name}`,
          ).toBeLessThan(1e-5);
      }
    }
  });
});
