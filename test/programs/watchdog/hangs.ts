/** @file Runs that hang, as processes of their own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Finished, startCommand, temporaryDirectory } from '../../command.js';
import { metricLines } from '../runs.js';

/** A run that hung. */
export interface Hung extends Finished {
  readonly directory: string;
  /** hang.txt. */
  readonly log: string;
  /** The last step in metrics.jsonl. */
  readonly step: number;
  /** Seconds without progress, as the watchdog tells. */
  readonly seconds: number;
}

/** The limit of `hanging.Hanging`, in seconds. */
export const LIMIT = 3;

/** Runs `hanging.Hanging` until its watchdog ends it. */
export async function hungRun(where: string, more: readonly string[] = [], env = {}): Promise<Hung> {
  const directory = temporaryDirectory();
  const flags = ['--exp=hanging.Hanging', `--job_log_dir=${directory}`, '--set', `where=${where}`, ...more];
  const finished = await startCommand(flags, undefined, undefined, env).finished;
  expect(finished.code, finished.stderr).toBe(1);
  const log = readFileSync(join(directory, 'hang.txt'), 'utf8');
  const { step } = metricLines(directory).at(-1) as { step: number };
  const seconds = Number(/nothing has finished for ([\d.]+) s/.exec(log)![1]);
  return { ...finished, directory, log, step, seconds };
}
