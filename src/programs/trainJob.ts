/** @file Training job: opens its parts, runs the loop, reports the outcome. */
import { Checkpointer } from '../checkpoints/index.js';
import { build } from '../hparams/index.js';
import { batchCount, type InputSource } from '../inputs/index.js';
import { type StopSignal, writeText } from '../system/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { CheckpointProgram } from './checkpointProgram.js';
import { forgetData } from './dataRecord.js';
import { DecodeProgram } from './decodeProgram.js';
import { DuePrograms } from './duePrograms.js';
import { EvalProgram, EvalTrainProgram } from './evalProgram.js';
import { EvalSteps } from './evalStep.js';
import { expectedEvalRuns } from './expectedRuns.js';
import { InitFromCheckpoint } from './initFromCheckpoint.js';
import { checkClasses, undrawnIds } from './inputAgreement.js';
import { runToEnd } from './jobEnd.js';
import { strayFailures } from './jobErrors.js';
import { keepRecord, writeJobFiles } from './jobFiles.js';
import { type Loop, runLoop } from './loop.js';
import { machineChanges, machineOf, recordedMachine } from './machine.js';
import { MeteredTraining } from './meteredTraining.js';
import { checkpointDirectory, type JobOptions } from './options.js';
import { ProgramDataset, TRAIN, trainingDataset } from './programDataset.js';
import { evaluationsOf } from './progress.js';
import { Reporter, shortList } from './reporter.js';
import { Run } from './run.js';
import { type RunEnd, StatusRecord } from './runStatus.js';
import { setAside } from './setAside.js';
import { recordOrigin, restoreStart, takeData } from './startingCheckpoint.js';
import { StepTaps } from './stepTaps.js';
import type { FlatTrainState } from './taskState.js';
import { averaged, beginToInitialize, trainStateOf } from './taskState.js';
import { TrackProgram } from './trackProgram.js';
import { TrainMeter } from './trainMeter.js';
import { TrainProgram } from './trainProgram.js';

/** Parts of a training run. */
interface Training extends Loop {
  readonly train: MeteredTraining;
  readonly meter: TrainMeter;
  readonly dataset: ProgramDataset;
}

/** Trains to the task's last step, or until a signal or an error; saves and records the state in every case. */
export async function runTraining(options: JobOptions, stop: StopSignal): Promise<void> {
  const status = new StatusRecord(options.jobLogDir);
  try {
    status.end(await train(options, stop, status));
  } catch (error) {
    status.fail(error);
    throw error;
  }
}

async function train(options: JobOptions, stop: StopSignal, status: StatusRecord): Promise<RunEnd> {
  const training = await openTraining(options, stop, status);
  const { run, train, meter, dataset, checkpoints, programs } = training;
  const { reporter } = run;
  await runToEnd(options, reporter, [dataset, checkpoints.checkpointer, programs], async () => {
    stop.postpone('saving a checkpoint, then leaving');
    await runLoop(training);
    if (meter.skipped > 0)
      reporter.tell(`Of ${run.step} steps, ${meter.skipped} changed nothing: their updates were left out.`);
    reporter.trainingEnds(run.step, meter, stop.received, run.ended);
    return { steps: train.profiledSteps, peak: meter.cost?.peak };
  });
  const hasEnded = run.ended !== undefined || !train.isDue(run.step);
  if (hasEnded && !(run.isStopped && programs.pending.length > 0))
    return { state: 'finished', ...(run.ended !== undefined && { reason: run.ended }) };
  return { state: 'stopped', reason: stop.received! };
}

async function openTraining(options: JobOptions, stop: StopSignal, status: StatusRecord): Promise<Training> {
  const task = build(options.task);
  const { hp } = task.hp.train;
  const dataset = new ProgramDataset(options, task, trainingDataset(options), TRAIN);
  let tell: (line: string) => void = (line) => writeText(`${line}\n`);
  const checkpointer = new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
    saveIntervalSteps: hp.saveIntervalSteps,
    saveMaxToKeep: hp.saveMaxToKeep,
    saveKeepIntervalDuration: hp.saveKeepIntervalDuration,
    notify: ({ message }) => tell(message),
  });
  if (checkpointer.latestStep() === undefined) {
    forgetData(options.jobLogDir);
    takeData(options);
  }
  const input = dataset.open();
  const state = trainStateOf(task);
  const restored = await restoreStart(options, checkpointer, state, dataset);
  const given = restored === undefined ? InitFromCheckpoint.open(task, state) : undefined;
  const list = programsOf(options, task, state, input);
  const tracked = list.find((each) => each instanceof TrackProgram);
  const programs = new DuePrograms(options, task, list);
  const progress = restored?.progress;
  if (progress !== undefined) programs.restore(progress.pending, progress.positions);
  // A finished run that is restarted shows its results.
  if (state.step >= hp.numTrainSteps) programs.reach(state.step);
  const told = setAside(options, state.step);
  const reporter = new Reporter(options, {
    ...{ numTrainSteps: hp.numTrainSteps, firstStep: state.step, again: programs.pending },
    logIntervalSteps: hp.logTrainOutputIntervalSteps ?? hp.summaryIntervalSteps,
  });
  tell = (line) => reporter.tell(line);
  if (hp.trackMetric !== null && tracked === undefined)
    reporter.tell(
      `--mode=train does not run ${hp.trackMetric.hp.evaluation}, so no best checkpoint is kept.`,
    );
  reporter.trainingStarts(task, input.getGlobalBatchSize(), restored?.path);
  reporter.tell(...told);
  const undrawn = restored === undefined ? undrawnIds(task, input.vocabularyFor('ids')) : undefined;
  if (undrawn !== undefined) reporter.tell(undrawn);
  if (given !== undefined) reporter.tell(...given.lines());
  // Other threads draw initial values while this one compiles.
  const beginning = restored === undefined ? await beginToInitialize(options, task, state, given) : undefined;
  const strays = strayFailures();
  const explained: JobOptions = { ...options, explain: (sentence) => reporter.tell(sentence) };
  const creating = TrainProgram.create(explained, task, state, input, (reading) => strays.during(reading));
  const [program] = await Promise.all([creating, beginning?.done]);
  const evaluated = list.flatMap((each) => (each instanceof EvalProgram ? [each.dataset.build()] : []));
  checkClasses({ indexLimits: program.executable.indexLimits() }, dataset.build(), evaluated);
  const machine = await machineOf(options, program.executable);
  if (restored !== undefined) {
    reporter.tell(...machineChanges(recordedMachine(restored.jobLogDir) ?? {}, machine));
    if (restored.changes !== undefined)
      reporter.tell(`Going on with data that is not what the run began with: ${restored.changes}.`);
    if (restored.average !== undefined)
      reporter.tell(
        `The moving average of the parameters ${restored.average} at this step: emaDecay has changed.`,
      );
    if (restored.unfrozen.length > 0)
      reporter.tell(
        `No longer frozen, with the optimizer's state of a first step: ${shortList(restored.unfrozen)}.`,
      );
  }
  // Written last, since a run that can't resume must not overwrite the earlier record.
  const changed = restored?.jobLogDir === options.jobLogDir ? keepRecord(options) : undefined;
  if (changed !== undefined)
    reporter.tell(
      `Resuming with changed settings: ${shortList(changed.changes)}. The earlier record is kept as ${changed.kept}.`,
    );
  writeJobFiles(options, machine);
  recordOrigin(options, restored);
  status.begin();
  given?.writeRecord(options.jobLogDir);
  given?.close();
  const meter = new TrainMeter(batchCount(program.buffers.specs, input.batchUnit));
  const run = new Run(options.jobLogDir, state, reporter, stop, meter);
  if (progress !== undefined) {
    meter.restore(progress.meter);
    run.restore(evaluationsOf(progress));
  }
  const taps = options.taps && (await StepTaps.create(options, options.taps, task, state, program.step));
  const saved = { state, program, meter, programs, run, tracked };
  const checkpoints = new CheckpointProgram(
    options,
    checkpointer,
    saved,
    restored?.jobLogDir === options.jobLogDir,
  );
  const train = new MeteredTraining({ options, task, program, meter, checkpoints, programs, taps });
  return { run, train, meter, dataset, checkpoints, programs, strays };
}

/** Evaluations, decodes, the tracked metric and the task's own programs, in this order. @throws as `ProgramDataset.check` */
function programsOf(
  options: JobOptions,
  task: SingleTask,
  state: FlatTrainState,
  input: InputSource,
): Program<Run>[] {
  const { mode, datasets, decodeDatasets } = options;
  const { evalSkipTrain, evalUseEmaStates, decodeUseEmaStates, trackMetric, programs } = task.hp.train.hp;
  const evaluates = mode === 'train' ? [] : datasets.filter((dataset) => !dataset.isTraining);
  const runs = expectedEvalRuns(options, task, evaluates);
  const steps = new EvalSteps(options, task, evalUseEmaStates ? averaged(state) : state, runs);
  const decoded = decodeUseEmaStates ? averaged(state) : state;
  const evals = evaluates.map((dataset) => new EvalProgram(options, task, steps, dataset));
  const decodes = (mode === 'train_and_decode' ? decodeDatasets : []).map(
    (dataset) => new DecodeProgram(options, task, decoded, dataset),
  );
  for (const { dataset } of [...evals, ...decodes]) dataset.check();
  const ofTraining = evalSkipTrain ? [] : [new EvalTrainProgram(task, steps, input)];
  const evaluations = [...ofTraining, ...evals];
  const isEvaluated = mode !== 'train' || evaluations.some(({ name }) => name === trackMetric?.hp.evaluation);
  const tracked =
    trackMetric !== null && isEvaluated ? [new TrackProgram(trackMetric, [...evaluations, ...decodes])] : [];
  return [...evaluations, ...decodes, ...tracked, ...programs];
}
