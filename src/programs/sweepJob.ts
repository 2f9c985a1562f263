/** @file A sweep: one run after another, each in a process and a directory of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { makeJobDirectory } from './jobFiles.js';
import { exitCodeOfSignal, StopSignal } from './signals.js';
import { lastLoss, type RunRecord, SweepRecord, type SweepRun } from './sweepRecord.js';

/** What a sweep is asked to do. */
export interface SweepOptions {
  /** Full name of the experiment. */
  readonly name: string;
  readonly directory: string;
  /** The flags that change the experiment, as given. */
  readonly sweeps: readonly string[];
  readonly runs: readonly SweepRun[];
}

/** Set in the processes of a sweep's runs: they end when the sweep does. */
const runVariable = 'LUTHIER_SWEEP_RUN';

/** In the process of a sweep's run: a sweep that was killed takes its run along, which saves and leaves. */
export function endWithSweep(): void {
  if (process.env[runVariable] === undefined) return;
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
}

/** Starts this very command with other flags. */
function startRun(flags: readonly string[]): ChildProcess {
  // A group of its own: Ctrl-C reaches the sweep alone, which hands it on once. Twice would end the run unsaved.
  return spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...flags], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
    env: { ...process.env, [runVariable]: '1' },
  });
}

async function execute(run: RunRecord, directory: string, stop: StopSignal): Promise<void> {
  const started = performance.now();
  const child = startRun([...run.flags, `--job_log_dir=${directory}`]);
  const handOn = () => child.kill(stop.received);
  process.on('SIGINT', handOn).on('SIGTERM', handOn);
  // A signal that came while the process was being started.
  if (stop.received !== undefined) handOn();
  try {
    run.exit = await new Promise<number | string>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code, signal) => resolve(code ?? signal ?? 1));
    });
  } finally {
    process.off('SIGINT', handOn).off('SIGTERM', handOn);
  }
  run.seconds = Math.round((performance.now() - started) / 100) / 10;
  Object.assign(run, lastLoss(directory));
  const stopped = run.exit !== 0 && stop.received !== undefined;
  run.status = run.exit === 0 ? 'finished' : stopped ? 'stopped' : 'failed';
}

/**
 * Runs a sweep, whose record stands in sweep.json. Runs that finished earlier with the same flags are passed over, those
 * that did not go on from their checkpoints. A run that fails does not keep the others from running; SIGINT and SIGTERM
 * reach the present run, which saves, and end the sweep.
 *
 * @returns the exit code: 0 where all runs finished, 1 where one failed, 130 or 143 after a signal.
 * @throws JobError for a directory that can't be written, or that has a sweep.json of something else.
 */
export async function runSweepJob(options: SweepOptions): Promise<number> {
  const { name, directory, sweeps, runs } = options;
  makeJobDirectory(directory);
  const record = new SweepRecord(directory, name, sweeps, runs);
  record.save();
  const stop = new StopSignal((signal) => {
    process.stderr.write(`\n${signal}: the sweep ends with the present run.\n`);
  });
  stop.listen();
  try {
    for (const [i, run] of record.runs.entries()) {
      const title = `Run ${i + 1} of ${record.runs.length}: ${run.name}`;
      if (stop.received !== undefined) break;
      if (run.status === 'finished') {
        process.stdout.write(`${title}: finished earlier\n`);
        continue;
      }
      process.stdout.write(`${title}\n`);
      run.status = 'running';
      record.save();
      await execute(run, join(directory, run.name), stop);
      record.save();
    }
  } finally {
    stop.close();
  }
  process.stdout.write(`\n${summary(record.runs)}\n`);
  if (stop.received !== undefined) return exitCodeOfSignal[stop.received];
  return record.runs.every(({ status }) => status === 'finished') ? 0 : 1;
}

/** A line for each run: its name, how it ended, and its last loss. */
function summary(runs: readonly RunRecord[]): string {
  const rows = runs.map(({ name, status, exit, step, loss }) => [
    name,
    status === 'failed' ? `failed (${exit})` : status,
    step === undefined ? '' : String(step),
    loss === undefined ? '' : loss.toPrecision(5),
  ]);
  const table = [['run', 'status', 'step', 'loss'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]!.length)));
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
