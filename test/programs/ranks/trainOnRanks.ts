/** @file Trainings under mpirun, and their losses. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'vitest';
import { luthier, type Mpi, mpirun } from '../../collectives/mpirun.js';

export interface RankJob {
  readonly experiment: string;
  /** A run directory, which may have checkpoints. */
  readonly directory: string;
  /** In all, with those of its checkpoints. */
  readonly steps: number;
  /** Of the experiment; absent: that of Luthier. */
  readonly project?: string;
}

/** Trains with settings, and returns the losses of all steps that the directory tells. */
export async function trainOnRanks(
  mpi: Mpi,
  ranks: number,
  { experiment, directory, steps, project }: RankJob,
  settings: readonly string[],
): Promise<number[]> {
  const args = [
    ...[resolve(luthier), 'train', `--exp=${experiment}`, `--job_log_dir=${directory}`],
    ...[`numTrainSteps=${steps}`, ...settings].flatMap((set) => ['--set', set]),
  ];
  const { code, output } = await mpirun(mpi, ranks, args, {}, project).ended;
  expect(code, output).toBe(0);
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  return lines
    .map((line) => JSON.parse(line))
    .flatMap(({ program, loss }) => (program === 'train' ? [loss] : []));
}

/** Metrics of the evaluations that a run's directory tells, by program, step and name. */
export function evaluationsIn(directory: string): Record<string, number> {
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  const found = lines
    .map((line) => JSON.parse(line))
    .filter(({ program }) => program !== 'train' && program.startsWith('eval_'));
  return Object.fromEntries(
    found.flatMap(({ program, step, ...values }) =>
      Object.entries<number>(values)
        .filter(([name]) => name.startsWith('Metrics/'))
        .map(([name, value]) => [`${program} ${step} ${name}`, value]),
    ),
  );
}

/** Losses of a few steps in another order of sums. */
export function expectSame(losses: readonly number[], expected: readonly number[]): void {
  expect(losses.length).toBe(expected.length);
  for (const [i, loss] of losses.entries()) expect(Math.abs(loss - expected[i]!), `${i}`).toBeLessThan(1e-5);
}
