/** @file Checks of a run that was disturbed: it ends as one that nobody disturbed, with each step's metrics once. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { listCheckpoints } from '../../src/checkpoints/directory.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { stateAt, trainLosses } from '../programs/runs.js';

/** The step of the newest checkpoint, or -1. */
export const newest = (directory: string): number =>
  [...listCheckpoints(join(directory, 'checkpoints')).keys()].at(-1) ?? -1;

/** The last step in the metrics. */
export const lastStep = (directory: string): number => Number(trainLosses(directory).at(-1)?.[0] ?? 0);

/** The metrics have every step once, in order, and no line that is torn. */
export function checkMetrics(directory: string): void {
  const steps = trainLosses(directory).map(([step]) => step);
  expect(steps).toEqual(steps.map((_, i) => i + 1));
}

/**
 * The run goes on to an end, which is that of a run that nobody disturbed; nothing half-written is left.
 *
 * @param flags of a run of so many steps.
 */
export async function checkTrajectory(directory: string, flags: (numTrainSteps: number) => string[]) {
  const last = Math.max(newest(directory), lastStep(directory)) + 3;
  const undisturbed = temporaryDirectory();
  for (const each of [directory, undisturbed]) {
    const { code, stderr } = await runCommand([...flags(last), `--job_log_dir=${each}`]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }
  expect(stateAt(directory, last).equals(stateAt(undisturbed, last))).toBe(true);
  expect(trainLosses(directory)).toEqual(trainLosses(undisturbed));
  const names = [...readdirSync(directory), ...readdirSync(join(directory, 'checkpoints'))];
  expect(names.filter((name) => /tmp|replaced|deletion_|lease_/.test(name))).toEqual([]);
}
