/** @file Trainings of a tiny model by one process and by ranks in it that hold parts of the variables, and what they differ by. */
import { expect } from 'vitest';
import { openThreadRanks } from '../../../src/compiler/native/threadRanks.js';
import type { Config } from '../../../src/hparams/index.js';
import { nextTurn } from '../../../src/programs/ranks/agreement.js';
import type { TrainMemory } from '../../../src/programs/taskState.js';
import type { TrainReport } from '../../../src/programs/trainProgram.js';
import type { JobRanks } from '../../../src/runs/index.js';
import type { Mesh, SingleTask } from '../../../src/tasks/index.js';
import { tinyTraining } from '../tinyTraining.js';
import { ranksInProcess } from './ranksInProcess.js';
import { shareOf } from './rowShares.js';

export interface Trained {
  readonly reports: readonly TrainReport[];
  readonly state: TrainMemory;
  readonly norms: Readonly<Record<string, number>>;
}

/** Steps of one process, or of as many ranks as a mesh has. */
export async function trained(
  edit: (config: Config<SingleTask>) => void,
  mesh?: Mesh,
  steps = 3,
  rowsOf = shareOf,
): Promise<Trained> {
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
          input: rowsOf(mesh?.shareOf(rank).index ?? 0, mesh?.shareOf(0).count ?? 1),
        },
        ...(each && { ranks: each }),
        ...(mesh && { mesh }),
      }),
    ),
  );
  const reports: TrainReport[] = [];
  for (let step = 0; step < steps; step++) {
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
export const differences = (a: TrainMemory, b: TrainMemory): Record<string, number> =>
  Object.fromEntries(
    Object.entries({ params: a.params, ...a.slots }).map(([name, buffer]) => {
      const other = name === 'params' ? b.params : b.slots[name]!;
      return [name, Math.max(...Array.from(buffer, (value, i) => Math.abs(value - other[i]!)))];
    }),
  );

/** Parameters and their averages, and losses, are those of another training but for rounding. */
export function expectNear({ state, reports }: Pick<Trained, 'state' | 'reports'>, other: Trained): void {
  const { params, ema } = differences(state, other.state);
  expect(Math.max(params!, ema!)).toBeLessThan(2e-6);
  for (const [i, { loss }] of reports.entries())
    expect(Math.abs(loss - other.reports[i]!.loss)).toBeLessThan(1e-5);
}
