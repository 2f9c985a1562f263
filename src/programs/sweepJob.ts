/** @file Sweep job: runs in sequence, each in its own process and directory. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { textTable } from '../summaries/index.js';
import { exitCodeOfSignal, OwnProcess, StopSignal } from '../system/index.js';
import { compareRuns, runTable } from './compareRuns.js';
import { openJobDirectory } from './jobDirectory.js';
import { readRun } from './runSummary.js';
import { type RunRecord, SweepRecord, type SweepRun } from './sweepRecord.js';

/** Options of a sweep. */
export interface SweepOptions {
  /** Full name of the experiment. */
  readonly name: string;
  readonly directory: string;
  /** Flags that change the experiment, as given. */
  readonly sweeps: readonly string[];
  readonly runs: readonly SweepRun[];
}

/** Runs `run` to its end in a separate process. @param begin receives the process */
async function execute(
  run: RunRecord,
  directory: string,
  begin: (process: OwnProcess) => void,
): Promise<void> {
  const started = performance.now();
  const process = new OwnProcess(['train', ...run.flags, `--job_log_dir=${directory}`]);
  begin(process);
  run.exit = await process.ended;
  run.seconds = Math.round((performance.now() - started) / 100) / 10;
  const trained = (await readRun(directory)).metrics.get('train/loss')?.last;
  if (trained !== undefined) Object.assign(run, { step: trained.step, loss: trained.value });
}

/**
 * Runs a sweep, recorded in sweep.json. Skips runs that finished earlier with the same flags; resumes unfinished ones
 * from their checkpoints. A failing run does not end the sweep; SIGINT and SIGTERM do, after the current run has saved.
 *
 * @returns the exit code: 0 if all runs finished, 1 if one failed, 130 or 143 after a signal.
 * @throws JobInUseError if another process uses the directory, JobError for a directory that can't be written or a
 *   foreign sweep.json.
 */
export async function runSweepJob(options: SweepOptions): Promise<number> {
  const { name, directory, sweeps, runs } = options;
  let running: OwnProcess | undefined;
  const stop = new StopSignal({
    first: (signal) => {
      process.stderr.write(`\n${signal}: the sweep ends with the present run.\n`);
      running?.stop(signal);
    },
    again: () => running?.kill(),
  });
  const opened = await openJobDirectory(directory, 'sweep');
  stop.listen();
  const record = new SweepRecord(directory, name, sweeps, runs);
  try {
    record.save();
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
      await execute(run, join(directory, run.name), (process) => {
        running = process;
      });
      run.status = run.exit === 0 ? 'finished' : stop.received !== undefined ? 'stopped' : 'failed';
      record.save();
    }
  } finally {
    stop.close();
    opened.close();
  }
  process.stdout.write(`\n${await summary(directory, record.runs)}\n`);
  if (stop.received !== undefined) return exitCodeOfSignal[stop.received];
  return record.runs.every(({ status }) => status === 'finished') ? 0 : 1;
}

/** The runs by their evaluation loss or the metric that they track; those that have written nothing come last. */
async function summary(directory: string, records: readonly RunRecord[]): Promise<string> {
  const labels = new Map(
    records.map(({ name, status, exit }) => [
      join(directory, name),
      { name, state: status === 'failed' ? `failed (${exit})` : status },
    ]),
  );
  const hasBegun = (path: string): boolean => existsSync(join(path, 'experiment.json'));
  const begun = [...labels.keys()].filter(hasBegun);
  const { header, rows, below } = runTable(compareRuns(await Promise.all(begun.map(readRun))), labels);
  const others = [...labels].filter(([path]) => !hasBegun(path)).map(([, { name, state }]) => [name, state]);
  return [textTable([...rows, ...others], header), ...below].join('\n');
}
