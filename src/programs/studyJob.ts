/** @file Study job: the trials of a search, several at once, each in a warm process and a directory of its own. */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatLiteral } from '../hparams/index.js';
import type { Search } from '../search/index.js';
import {
  type ClaimedTrial,
  type Outcome,
  Study,
  studyText,
  trialDirectory,
} from '../search/studies/index.js';
import { exitCodeOfSignal, inLanes, StopSignal, WorkerPool, warn, writeText } from '../system/index.js';
import { UsageError } from '../system/text/index.js';
import { measurementsOf, rewardsOf } from './trialOutcome.js';
import { type TrialEnd, TrialProcess } from './trialProcess.js';

/** Options of a study. */
export interface StudyJobOptions {
  /** Full name of the experiment. */
  readonly name: string;
  /** Directory of the study. */
  readonly directory: string;
  readonly search: Search;
  /** Flags of all trials, as given. */
  readonly flags: readonly string[];
  readonly numTrials?: number | undefined;
  /** How many trials run at once. */
  readonly parallel: number;
  /** Threads that the trials at work share. Default: the number of cores. */
  readonly numThreads?: number | undefined;
}

/** How often a lane without a trial looks for one, and a trial's measurements are compared, in ms. */
const LOOK_MS = 200;

/**
 * Runs a study until all its trials have ended, beside other processes that do. A trial that fails is tried again, and
 * then counts as infeasible, or ends the study, as the search says.
 *
 * @returns the exit code: 0, 1 if a trial ended the study, 130 or 143 after a signal, when its trials have saved.
 * @throws ConfigError for the directory of another search, or a metric that no trial reports.
 */
export async function runStudyJob(options: StudyJobOptions): Promise<number> {
  const { directory, name, search, parallel } = options;
  const { space, searchAlgorithm, seed, maxNumTrials, priorStudies, addPriorTrials } = search.hp;
  const stop = new StopSignal({
    first: (signal) => {
      warn(`\n${signal}: the study ends with the present trials.`);
      for (const each of running) each.stop(signal);
    },
  });
  const running = new Set<TrialProcess>();
  const study = await Study.open({
    ...{ directory, name, space, seed, priorStudies, addPriorTrials, algorithm: searchAlgorithm },
    maxNumTrials: options.numTrials ?? maxNumTrials,
  });
  const pool = new WorkerPool(() => new TrialProcess());
  let hasFailed = false;
  stop.listen();
  const isOver = () => hasFailed || stop.received !== undefined;
  try {
    const lanes = Array.from({ length: parallel }, (_, lane) => [lane]);
    await inLanes(lanes, async (_, lane) => {
      while (!isOver()) {
        const trial = await study.ask();
        if (trial === 'exhausted') return;
        if (trial === 'wait') await sleep(LOOK_MS);
        else {
          const process = pool.worker(lane);
          running.add(process);
          const outcome = await outcomeOf(trial, { options, study, process, isOver });
          running.delete(process);
          if (outcome === undefined) return;
          study.tell(trial, outcome);
          writeText(`${lineOf(trial, outcome)}\n`);
          hasFailed ||= outcome.state === 'failed' && search.hp.failFast;
        }
      }
    });
    writeText(`\n${studyText(study.trials())}\n`);
  } finally {
    stop.close();
    await pool.end();
    study.close();
  }
  if (stop.received !== undefined) return exitCodeOfSignal[stop.received];
  return hasFailed ? 1 : 0;
}

/** A trial at work. */
interface TrialWork {
  readonly options: StudyJobOptions;
  readonly study: Study;
  readonly process: TrialProcess;
  readonly isOver: () => boolean;
}

/** Runs a trial, several times if it fails; undefined where the study ends before it. */
async function outcomeOf(trial: ClaimedTrial, work: TrialWork): Promise<Outcome | undefined> {
  const { options, process, isOver } = work;
  const { hp } = options.search;
  const directory = trialDirectory(options.directory, trial);
  const started = performance.now();
  const seconds = () => Math.round(performance.now() - started) / 1000;
  for (let tries = 1; ; ) {
    const watch = watchTrial(directory, work);
    const end = await process.run(flagsOf(trial, directory, work));
    const stopped = watch();
    if (end.exit === 0) return { state: 'done', seconds: seconds(), ...rewardsOf(directory, hp) };
    if (stopped !== undefined) {
      const rewards = hp.treatsEarlyStoppedTrialsAsDone ? rewardsOf(directory, hp) : {};
      return { state: 'stopped', reason: stopped, seconds: seconds(), ...rewards };
    }
    if (isOver()) return undefined;
    // The flags are wrong, for all trials.
    if (end.error?.name === 'UsageError') throw new UsageError(end.error.message);
    const reason = reasonOf(end);
    // The run of a process that was killed may still be saving there.
    if (end.error?.name === 'JobInUseError') await sleep(LOOK_MS);
    else if (isInfeasible(reason, hp.errorsToSkip))
      return { state: 'infeasible', reason, seconds: seconds() };
    else if (tries++ > hp.retries) return { state: 'failed', reason, seconds: seconds() };
  }
}

function reasonOf({ exit, error }: TrialEnd): string {
  return error?.message.split('\n')[0] ?? `exit code ${exit}`;
}

/** Losses that are not finite end a run; values that make them are infeasible, as in Pax. */
function isInfeasible(reason: string, errorsToSkip: readonly string[]): boolean {
  return ['not finite', ...errorsToSkip].some((pattern) => new RegExp(pattern).test(reason));
}

/** Trials at once share the threads: each has the same number, however many are at work, since it decides the bits. */
function flagsOf(trial: ClaimedTrial, directory: string, { options, study }: TrialWork): string[] {
  const { parallel, numThreads = availableParallelism(), search } = options;
  const { values, steps, from } = trial;
  const set = (path: string, text: string) => `--set=${path}=${text}`;
  const origin = study.trials().find(({ number }) => number === from);
  return [
    ...options.flags,
    ...Object.entries(values).map(([path, value]) => set(path, formatLiteral(value))),
    ...(steps === undefined ? [] : [set(search.hp.stepsPath, String(steps))]),
    ...(origin === undefined ? [] : [`--checkpoint=${trialDirectory(options.directory, origin)}`]),
    ...(parallel === 1 && options.numThreads === undefined
      ? []
      : [`--num_threads=${Math.max(1, Math.floor(numThreads / parallel))}`]),
    `--job_log_dir=${directory}`,
  ];
}

/** Ends a trial early where the search says so. @returns a function that ends the watch, with the reason if there was one */
function watchTrial(directory: string, { options, study, process }: TrialWork): () => string | undefined {
  const { earlyStopping, searchReward } = options.search.hp;
  if (earlyStopping === null) return () => undefined;
  let reason: string | undefined;
  const look = () => {
    const own = measurementsOf(directory, searchReward);
    if (reason !== undefined || own.length === 0) return;
    const others = study.trials().map((trial) => ({ trial, at: trialDirectory(options.directory, trial) }));
    reason = earlyStopping.reasonToStop(
      own,
      others
        .filter(({ at }) => at !== directory)
        .map(({ trial, at }) => ({
          measurements: measurementsOf(at, searchReward),
          isDone: trial.state === 'done',
        })),
    );
    if (reason !== undefined) process.stop('SIGTERM');
  };
  const timer = setInterval(look, LOOK_MS);
  return () => {
    clearInterval(timer);
    return reason;
  };
}

function lineOf({ number, values }: ClaimedTrial, { state, rewards, reason, seconds }: Outcome): string {
  const settings = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  const rewarded =
    rewards === undefined ? '' : `  reward ${rewards.map((each) => each.toPrecision(5)).join(', ')}`;
  const because = reason === undefined ? '' : `  (${reason})`;
  return `Trial ${number}: ${state}${rewarded}${because}  ${settings.join(' ')}  ${seconds} s`;
}
