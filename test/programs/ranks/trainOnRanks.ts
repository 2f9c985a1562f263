/** @file Trainings under mpirun, and their losses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Mpi, mpirun } from '../../collectives/mpirun.js';

export interface RankJob {
  readonly experiment: string;
  /** A run directory, which may have checkpoints. */
  readonly directory: string;
  /** In all, with those of its checkpoints. */
  readonly steps: number;
}

/** Trains with settings, and returns the losses of all steps that the directory tells. */
export async function trainOnRanks(
  mpi: Mpi,
  ranks: number,
  { experiment, directory, steps }: RankJob,
  settings: readonly string[],
): Promise<number[]> {
  const { code, output } = await mpirun(mpi, ranks, [
    ...['src/tools/luthier.js', 'train', `--exp=${experiment}`, `--job_log_dir=${directory}`],
    ...[`numTrainSteps=${steps}`, ...settings].flatMap((set) => ['--set', set]),
  ]).ended;
  expect(code, output).toBe(0);
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  return lines
    .map((line) => JSON.parse(line))
    .flatMap(({ program, loss }) => (program === 'train' ? [loss] : []));
}

/** Losses of the evaluations that a run's directory tells, by program and step. */
export function evaluationsIn(directory: string): Record<string, number> {
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  const found = lines
    .map((line) => JSON.parse(line))
    .filter(({ program }) => program !== 'train' && program.startsWith('eval_'));
  return Object.fromEntries(found.map(({ program, step, loss }) => [`${program} ${step}`, loss]));
}

/** Losses of a few steps in another order of sums. */
export function expectSame(losses: readonly number[], expected: readonly number[]): void {
  expect(losses.length).toBe(expected.length);
  for (const [i, loss] of losses.entries()) expect(Math.abs(loss - expected[i]!), `${i}`).toBeLessThan(1e-5);
}
