/** @file Training job: opens its parts, runs the loop, reports the outcome. */
import { build } from '../hparams/index.js';
import { checkInputSpecs, peekBatch } from '../inputs/index.js';
import {
  type JobOptions,
  type JobRanks,
  keepRecord,
  keptProducts,
  type Machine,
  machineOf,
  type RunEnd,
  StatusRecord,
  strayFailures,
  timed,
  WallTime,
  writeJobFiles,
} from '../runs/index.js';
import { type StopSignal, writeText } from '../system/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import type { DatasetDecoder } from './datasetDecoder.js';
import { trainedWeights } from './evaluatedWeights.js';
import { checkClasses, undrawnIds } from './inputAgreement.js';
import { runToEnd } from './jobEnd.js';
import { checkDatasets, evaluationsAmong, pendingAt, programsOf, restoreStates } from './jobPrograms.js';
import { runLoop } from './loop.js';
import { Measurements } from './measurements.js';
import { TRAIN } from './programDataset.js';
import { announce } from './ranks/agreement.js';
import { tellStart } from './ranks/followRanks.js';
import { unusedMesh } from './ranks/jobMesh.js';
import { SplitForward } from './ranks/splitForward.js';
import { Reporter, shortList } from './reporter.js';
import { sampleRollouts } from './rollouts.js';
import { setAside } from './setAside.js';
import { recordOrigin, restoredLines } from './startingCheckpoint.js';
import { stateTexts, writePostInit, writeProvenance } from './stateFiles.js';
import { compileTraining, makeLoop, type TrainingLoop } from './trainingLoop.js';
import { openStart, type TrainingStart } from './trainingStart.js';
import { HangError, Watchdog } from './watchdog/watchdog.js';

/** A training run, open. */
interface Training {
  readonly task: SingleTask;
  readonly loop: TrainingLoop;
  readonly start: TrainingStart;
  readonly measurements: Measurements;
  /** Decoders that sample training's batches. */
  readonly samplers: readonly DatasetDecoder[];
}

/** Trains to the task's last step, or until a signal or an error; saves and records the state in every case. */
export async function runTraining(options: JobOptions, stop: StopSignal): Promise<void> {
  const status = new StatusRecord(options.jobLogDir);
  try {
    status.end(await train({ ...options, ...keptProducts(options.jobLogDir) }, stop, status));
  } catch (error) {
    status.fail(error);
    throw error;
  }
}

async function train(given: JobOptions, stop: StopSignal, status: StatusRecord): Promise<RunEnd> {
  const watchdog = new Watchdog();
  const time = new WallTime();
  const options: JobOptions = { ...given, progress: watchdog, time };
  const training = await openTraining(options, stop, status);
  const { loop, start, measurements, samplers } = training;
  const { run, train, meter, programs } = loop;
  const { memory } = start.state;
  const { reporter } = run;
  const toEnd = () =>
    runToEnd(
      options,
      reporter,
      [
        ...[start.dataset, programs, measurements, ...samplers, ...(memory ? [memory] : []), watchdog],
        { close: async () => time.close(run.step) },
      ],
      async () => {
        stop.postpone('saving a checkpoint, then leaving');
        watch(watchdog, options, training);
        await time.during('step', () => runLoop({ ...loop, hung: watchdog.hung }));
        if (meter.skipped > 0)
          reporter.tell(
            `Of ${run.step} steps, ${meter.skipped} changed nothing: their updates were left out.`,
          );
        reporter.trainingEnds(run.step, meter, stop.received, run.ended);
        return { steps: train.profiledSteps, peak: meter.cost?.peak };
      },
    );
  await (options.ranks ? endingRanks(options.ranks, toEnd) : toEnd());
  const hasEnded = run.ended !== undefined || !train.isDue(run.step);
  if (hasEnded && !(run.isStopped && programs.pending.length > 0))
    return { state: 'finished', ...(run.ended !== undefined && { reason: run.ended }) };
  return { state: 'stopped', reason: stop.received! };
}

/** Ends the steps of other ranks with those of rank 0; one that hangs is left to the launcher. */
async function endingRanks(ranks: JobRanks, act: () => Promise<void>): Promise<void> {
  let failure: unknown;
  try {
    await act();
  } catch (error) {
    failure = error;
  }
  if (!(failure instanceof HangError)) await announce(ranks, 'end');
  if (failure !== undefined) throw failure;
}

/** Starts the watchdog, unless the task wants none. */
function watch(watchdog: Watchdog, { jobLogDir, ranks }: JobOptions, { task, loop }: Training): void {
  const { stallSteps: steps, stallSeconds: seconds } = task.hp.train.hp;
  const { run, strays } = loop;
  if (steps !== null)
    watchdog.watch({ jobLogDir, ranks, strays, limits: { steps, seconds }, step: () => run.step });
}

/** Opens the parts of training in order; bad settings are refused before the run's directory is changed. */
async function openTraining(options: JobOptions, stop: StopSignal, status: StatusRecord): Promise<Training> {
  const task = build(options.task);
  // Of use once there is a reporter.
  let tell = (line: string): void => writeText(`${line}\n`);
  const start = await openStart(options, task, (line) => tell(line));
  const { state, input, restored } = start;
  const measurements = new Measurements(options, task, trainedWeights(state), input);
  const list = programsOf(options, task);
  checkDatasets(list, measurements.inputs);
  const progress = restored?.progress;
  if (progress !== undefined) restoreStates(list, progress);
  const { numTrainSteps } = task.hp.train.hp;
  const pending = pendingAt(list, { step: state.step, isLast: state.step >= numTrainSteps }, progress);
  const reporter = openReporter(options, task, start, { list, pending });
  tell = (line) => reporter.tell(line);
  const strays = strayFailures();
  const explained: JobOptions = { ...options, explain: (sentence) => reporter.tell(sentence) };
  if (state.split) state.split.forward = new SplitForward(explained, task, state.split);
  if (options.ranks) await tellStart(options.ranks, start.dataset, input, state);
  await checkFirstBatch(options, start);
  const program = await compileTraining(explained, task, start, strays);
  const samplers = sampleRollouts(explained, task, state, start.dataset, input);
  const evaluated = evaluationsAmong(list, measurements.inputs).map((dataset) => dataset.build());
  checkClasses({ indexLimits: program.executable.indexLimits() }, start.dataset.build(), evaluated);
  const machine = await machineOf(program.options, program.executable);
  record(options, task, start, { reporter, status, machine });
  const shared = { options, task, start, measurements, reporter, stop, strays };
  const loop = await makeLoop({ ...shared, program, list, pending });
  return { task, loop, start, measurements, samplers };
}

/** @throws InputError where the next batch does not fit the specs that the experiment declares */
async function checkFirstBatch(options: JobOptions, { input }: TrainingStart): Promise<void> {
  const { inputSpecsProvider } = options;
  if (!inputSpecsProvider) return;
  const batch = await timed(options, 'first_batch', () => peekBatch(input));
  if (batch !== undefined) checkInputSpecs(build(inputSpecsProvider).getInputSpecs(), batch, input.name);
}

/** Opens the reporter, and tells what begins or goes on. Keeps later checkpoints aside where the run goes back. */
function openReporter(
  options: JobOptions,
  task: SingleTask,
  { state, restored, input, given }: TrainingStart,
  { list, pending }: { readonly list: readonly Program[]; readonly pending: readonly string[] },
): Reporter {
  const { numTrainSteps, logTrainOutputIntervalSteps, summaryIntervalSteps, trackMetric, trackers } =
    task.hp.train.hp;
  const told = setAside(options, state.step);
  const reporter = new Reporter(options, {
    ...{ numTrainSteps, firstStep: state.step, again: pending, trackers },
    logIntervalSteps: logTrainOutputIntervalSteps ?? summaryIntervalSteps,
  });
  if (trackMetric !== null && !list.some(({ name }) => name === trackMetric.hp.evaluation))
    reporter.tell(`--mode=train does not run ${trackMetric.hp.evaluation}, so no best checkpoint is kept.`);
  reporter.trainingStarts(task, input.getGlobalBatchSize(), restored?.path);
  reporter.tell(...told);
  const unused = unusedMesh(options, task);
  if (unused !== undefined) reporter.tell(unused);
  const undrawn = restored === undefined ? undrawnIds(task, input) : undefined;
  if (undrawn !== undefined) reporter.tell(undrawn);
  if (given !== undefined) reporter.tell(...given.lines());
  return reporter;
}

/** Parts of a run's record. */
interface Recorded {
  readonly reporter: Reporter;
  readonly status: StatusRecord;
  readonly machine: Machine;
}

/** Writes the record of the run; late, since a run that can't resume must not overwrite the earlier one. */
function record(
  options: JobOptions,
  task: SingleTask,
  { restored, given, state }: TrainingStart,
  { reporter, status, machine }: Recorded,
): void {
  const { jobLogDir } = options;
  if (restored !== undefined) reporter.tell(...restoredLines(restored, machine));
  const changed = restored?.jobLogDir === jobLogDir ? keepRecord(options) : undefined;
  if (changed !== undefined)
    reporter.tell(
      `Resuming with changed settings: ${shortList(changed.changes)}. The earlier record is kept as ${changed.kept}.`,
    );
  writeJobFiles(options, machine);
  writePostInit(options, task);
  if (restored?.jobLogDir !== jobLogDir) {
    writeProvenance(options, state, restored, given);
    reporter.summary(TRAIN, state.step, stateTexts(task, state, restored, given));
  }
  recordOrigin(options, restored);
  status.begin();
  options.time?.begin(jobLogDir, state.step);
  given?.writeRecord(jobLogDir);
  given?.close();
}
