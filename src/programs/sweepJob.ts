/** @file Sweep job: runs in sequence or several at once, each in its own process and directory. */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import {
  compareRuns,
  missingOf,
  openJobDirectory,
  type RunRecord,
  readRun,
  runTable,
  SweepRecord,
  type SweepRun,
} from '../runs/index.js';
import { exitCodeOfSignal, inLanes, OwnProcess, StopSignal, warn, writeText } from '../system/index.js';
import { textTable } from '../system/text/index.js';

/** Options of a sweep. */
export interface SweepOptions {
  /** Full name of the experiment. */
  readonly name: string;
  readonly directory: string;
  /** Flags that change the experiment, as given. */
  readonly sweeps: readonly string[];
  readonly runs: readonly SweepRun[];
  /** How many runs train at once. */
  readonly parallel: number;
  /** Threads that the runs at work share. Default: the number of cores. */
  readonly numThreads?: number | undefined;
}

/**
 * Runs a sweep, recorded in sweep.json. Skips runs that finished earlier with the same flags and are still there; resumes
 * unfinished ones from their checkpoints. A failing run does not end the sweep; SIGINT and SIGTERM do, after the present runs have saved.
 *
 * @returns the exit code: 0 if all runs finished, 1 if one failed, 130 or 143 after a signal.
 * @throws JobInUseError if another process uses the directory, JobError for a directory that can't be written or a
 *   foreign sweep.json.
 */
export async function runSweepJob(options: SweepOptions): Promise<number> {
  const { name, directory, sweeps, runs } = options;
  const running = new Set<OwnProcess>();
  const stop = new StopSignal({
    first: (signal) => {
      const present = running.size > 1 ? `${running.size} present runs` : 'present run';
      warn(`\n${signal}: the sweep ends with the ${present}.`);
      for (const each of running) each.stop(signal);
    },
    again: () => {
      for (const each of running) each.kill();
    },
  });
  const opened = await openJobDirectory(directory, 'sweep');
  stop.listen();
  const record = new SweepRecord(directory, name, sweeps, runs);
  try {
    record.save();
    const queue = [...record.runs.entries()];
    const lanes = Array.from({ length: options.parallel }, () => queue);
    await inLanes(lanes, async ([i, run]) => {
      if (stop.received === undefined) await train(run, i, record, options, running, stop);
    });
  } finally {
    stop.close();
    opened.close();
  }
  writeText(`\n${await summary(directory, record.runs)}\n`);
  if (stop.received !== undefined) return exitCodeOfSignal[stop.received];
  return record.runs.every(({ status }) => status === 'finished') ? 0 : 1;
}

/** Trains a run, unless it finished earlier. */
async function train(
  run: RunRecord,
  i: number,
  record: SweepRecord,
  options: SweepOptions,
  running: Set<OwnProcess>,
  stop: StopSignal,
): Promise<void> {
  const isAlone = options.parallel === 1;
  const title = `Run ${i + 1} of ${record.runs.length}: ${run.name}`;
  const directory = join(options.directory, run.name);
  const isEarlier = run.status === 'finished';
  const missing = isEarlier ? missingOf(run, directory) : undefined;
  if (isEarlier && missing === undefined) {
    writeText(`${title}: finished earlier\n`);
    return;
  }
  writeText(isEarlier ? `${title}: finished earlier, but ${missing}: trained again\n` : `${title}\n`);
  run.status = 'running';
  record.save();
  const started = performance.now();
  const trial = new OwnProcess(argumentsOf(run, directory, options), isAlone ? undefined : `[${i + 1}] `);
  running.add(trial);
  run.exit = await trial.ended;
  running.delete(trial);
  run.seconds = Math.round((performance.now() - started) / 100) / 10;
  const { metrics, state } = await readRun(directory);
  const trained = metrics.get('train/loss')?.last;
  if (trained !== undefined) Object.assign(run, { step: trained.step, loss: trained.value });
  const isStopped = stop.received !== undefined && state !== 'failed';
  run.status = run.exit === 0 ? 'finished' : isStopped ? 'stopped' : 'failed';
  record.save();
  if (!isAlone) writeText(`${title}: ${stateOf(run)}\n`);
}

/** Runs at once share the threads: each has the same number, however many are at work, since it decides the bits. */
function argumentsOf({ flags }: RunRecord, directory: string, options: SweepOptions): string[] {
  const { parallel, numThreads = availableParallelism() } = options;
  const share = parallel === 1 ? [] : [`--num_threads=${Math.max(1, Math.floor(numThreads / parallel))}`];
  return ['train', ...flags, ...share, `--job_log_dir=${directory}`];
}

function stateOf({ status, exit }: RunRecord): string {
  return status === 'failed' ? `failed (${exit})` : status;
}

/** The runs by their evaluation loss or the metric that they track; those that have written nothing come last. */
async function summary(directory: string, records: readonly RunRecord[]): Promise<string> {
  const labels = new Map(
    records.map((run) => [join(directory, run.name), { name: run.name, state: stateOf(run) }]),
  );
  const hasBegun = (path: string): boolean => existsSync(join(path, 'status.json'));
  const begun = [...labels.keys()].filter(hasBegun);
  const { header, rows, below } = runTable(compareRuns(await Promise.all(begun.map(readRun))), labels);
  const others = [...labels].filter(([path]) => !hasBegun(path)).map(([, { name, state }]) => [name, state]);
  return [textTable([...rows, ...others], header), ...below].join('\n');
}
