/** @file The training loop, in Pax's order: save, stop, step, evaluate, decode; whatever ends it, the state is saved. */
import { join } from 'node:path';
import { Checkpointer } from '../checkpoints/index.js';
import { takeMemory } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import { InputError, type InputSource, type InputState } from '../inputs/index.js';
import type { StopSignal } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { thenClose } from './closing.js';
import { forgetData } from './dataRecord.js';
import { Evaluations } from './evaluations.js';
import { invalidStepsError, mostInvalidSteps } from './invalidSteps.js';
import { writeJobFiles } from './jobFiles.js';
import { machineChanges, machineOf, recordedMachine } from './machine.js';
import { type OpenedDataset, openDataset, TRAIN } from './openDataset.js';
import { type JobOptions, phase } from './options.js';
import { type Progress, readProgress, savedWith } from './progress.js';
import { Reporter } from './reporter.js';
import type { TrainMemory } from './stepCalls.js';
import { beginToInitialize, trainStateOf } from './taskState.js';
import { trainingDataset } from './trainingDataset.js';
import { TrainMeter } from './trainMeter.js';
import { TrainProgram } from './trainProgram.js';
import { writeSummary } from './trainSummary.js';

/** Everything that a training run holds. */
interface Training {
  readonly options: JobOptions;
  readonly stop: StopSignal;
  readonly task: SingleTask;
  readonly state: TrainMemory;
  readonly input: InputSource;
  readonly checkpointer: Checkpointer;
  readonly reporter: Reporter;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly evaluations: Evaluations;
  /** Steps of this process. */
  taken: number;
}

/** Trains to the task's last step, or until a signal or an error; in each case the present state is saved at the end. */
export async function runTraining(options: JobOptions, stop: StopSignal): Promise<void> {
  const training = await openTraining(options, stop);
  const { input, checkpointer, reporter, evaluations } = training;
  await thenClose([input, checkpointer, reporter, evaluations], async () => {
    try {
      await trainLoop(training);
    } catch (error) {
      await saveAfterError(training);
      throw error;
    }
  });
}

async function openTraining(options: JobOptions, stop: StopSignal): Promise<Training> {
  const task = build(options.task);
  const { train } = task.hp;
  const dataset = trainingDataset(options);
  let tell: (line: string) => void = (line) => process.stdout.write(`${line}\n`);
  const checkpointer = new Checkpointer({
    directory: join(options.jobLogDir, 'checkpoints'),
    experiment: options.name,
    saveIntervalSteps: train.hp.saveIntervalSteps,
    saveMaxToKeep: train.hp.saveMaxToKeep,
    saveKeepIntervalDuration: train.hp.saveKeepIntervalDuration,
    notify: ({ message }) => tell(message),
  });
  if (checkpointer.latestStep() === undefined) forgetData(options.jobLogDir);
  const opened = openDataset(options, { task, dataset, program: TRAIN });
  const { input } = opened;
  const state = trainStateOf(task);
  const restored = await restoreNewest(options, state, opened, checkpointer);
  const evaluations = new Evaluations(options, task, state, input);
  evaluations.checkDatasets();
  const { numTrainSteps, summaryIntervalSteps, logTrainOutputIntervalSteps } = train.hp;
  if (restored?.progress) evaluations.restore(restored.progress.pending, restored.progress.positions);
  // A finished run that is started again shows what came of it.
  if (state.step >= numTrainSteps) evaluations.reach(state.step);
  const reporter = new Reporter(options, {
    ...{ numTrainSteps, firstStep: state.step, again: evaluations.pending },
    logIntervalSteps: logTrainOutputIntervalSteps ?? summaryIntervalSteps,
  });
  tell = (line) => reporter.tell(line);
  reporter.trainingStarts(task, input.getGlobalBatchSize(), restored?.path);
  // Other threads draw initial values while this one compiles.
  const beginning = restored === undefined ? await beginToInitialize(options, task, state) : undefined;
  const creating = TrainProgram.create(options, task, state, input);
  const [program] = await Promise.all([creating, beginning?.done]);
  const machine = await machineOf(options, program.executable);
  if (restored !== undefined) {
    reporter.tell(...machineChanges(recordedMachine(options.jobLogDir) ?? {}, machine));
    if (opened.changes !== undefined)
      reporter.tell(`Going on with data that is not what the run began with: ${opened.changes}.`);
  }
  // Only now: a run that can't go on from what is there must not write over it.
  writeJobFiles(options, machine);
  const meter = new TrainMeter(program);
  if (restored?.progress) meter.restore(restored.progress.meter);
  return {
    ...{ options, stop, task, state, input, checkpointer, reporter, program, meter, evaluations },
    taken: 0,
  };
}

/** Fills the state from the newest checkpoint, and says which that is; undefined where there is none. */
async function restoreNewest(
  options: JobOptions,
  state: TrainMemory,
  { input, changes }: OpenedDataset,
  checkpointer: Checkpointer,
): Promise<{ readonly path: string; readonly progress: Progress | undefined } | undefined> {
  if (checkpointer.latestStep() === undefined) return undefined;
  await takeMemory([state.params, ...Object.values(state.slots), state.grads], options);
  const restored = await checkpointer.restore(state, { allowPrevious: options.restorePreviousCheckpoint });
  try {
    if (restored.inputState !== null) input.setState(restored.inputState as InputState);
  } catch (error) {
    if (!(error instanceof InputError) || changes === undefined) throw error;
    throw new InputError(`${error.message} Since the run began: ${changes}.`, { cause: error });
  }
  return { path: restored.path, progress: readProgress(restored.progress, restored.path) };
}

async function trainLoop(training: Training): Promise<void> {
  const { options, task, state, stop, checkpointer, reporter, evaluations, meter } = training;
  const { numTrainSteps } = task.hp.train.hp;
  // The newest checkpoint on the disk may be one that was passed over as broken.
  stop.postpone('saving a checkpoint, then leaving');
  let saved = checkpointer.latestStep() === undefined ? undefined : state.step;
  const save = async () => {
    await phase(options, 'checkpoints', () => checkpointer.save(state, savedWith(training)));
    saved = state.step;
  };
  const evaluate = () => evaluations.run({ reporter, meter, isStopped: () => stop.received !== undefined });
  await evaluate();
  for (;;) {
    const preempted = stop.received !== undefined;
    if (saved !== state.step && checkpointer.shouldSave(state.step, { preempted })) await save();
    if (preempted || state.step >= numTrainSteps) break;
    await takeSteps(training);
    await evaluate();
  }
  if (saved === undefined || saved < state.step) await save();
  await phase(options, 'checkpoints', () => checkpointer.waitUntilFinished());
  if (meter.skipped > 0)
    reporter.tell(`Of ${state.step} steps, ${meter.skipped} changed nothing: their updates were left out.`);
  reporter.trainingEnds(state.step, stop.received);
  await reportProfile(training);
}

/** Saves what an error has left, if that is the state of a step. Never throws: the error is what the user must see. */
async function saveAfterError(training: Training): Promise<void> {
  const { state, checkpointer, reporter, program } = training;
  // A save that failed is no reason not to try another.
  await checkpointer.waitUntilFinished().catch(() => {});
  let problem = `the step after ${state.step} failed half-way, so the state is that of no step`;
  if (program.isWhole) {
    try {
      await checkpointer.save(state, savedWith(training));
      await checkpointer.waitUntilFinished();
      return reporter.saved(state.step);
    } catch (error) {
      problem = (error as Error).message;
    }
  }
  reporter.tell(`Not saved at step ${state.step}: ${problem}. ${newestCheckpoint(checkpointer)}`);
}

function newestCheckpoint(checkpointer: Checkpointer): string {
  try {
    const newest = checkpointer.latestStep();
    if (newest !== undefined) return `The newest checkpoint is that of step ${newest}.`;
  } catch {
    // The directory can't even be listed.
  }
  return 'There is no checkpoint.';
}

async function reportProfile({ options, reporter, meter, taken }: Training): Promise<void> {
  const { profiler } = options;
  if (profiler === undefined) return;
  const { writeProfile } = await import('./profile/write.js');
  // The first of several steps warms up, and is not counted.
  const steps = taken > 1 ? taken - 1 : taken;
  reporter.tell(await writeProfile(options, profiler, steps, meter.cost?.peak));
}

async function takeSteps(training: Training): Promise<void> {
  const { task, state, program, meter, reporter, options, evaluations } = training;
  const { numTrainSteps, summaryIntervalSteps } = task.hp.train.hp;
  const first = state.step;
  const reports = await program.runSteps(stepsAtOnce(training));
  evaluations.reach(state.step);
  meter.lap(reports.length);
  for (const [i, report] of reports.entries()) {
    const step = first + i + 1;
    meter.add(report);
    if (report.update.isValidStep === 0) reporter.invalidStep(step, report, meter.skipped);
    if (step % summaryIntervalSteps === 0 || step >= numTrainSteps)
      await phase(options, 'summaries', () => writeSummary(training, report));
    else reporter.progress(step, meter);
  }
  if (training.taken === 0 && state.step < numTrainSteps) options.profiler?.restart();
  training.taken += reports.length;
  if (meter.invalidInARow >= mostInvalidSteps(task)) throw await invalidStepsError(training, reports.at(-1)!);
}

/** How many steps are taken before anybody asks what came of them. */
function stepsAtOnce({ task, state, program, meter }: Training): number {
  const { summaryIntervalSteps, evalIntervalSteps, saveIntervalSteps, decodeIntervalSteps, numTrainSteps } =
    task.hp.train.hp;
  const intervals = [summaryIntervalSteps, evalIntervalSteps, saveIntervalSteps, decodeIntervalSteps];
  const due = intervals.map((steps) => (steps === null ? numTrainSteps : steps - (state.step % steps)));
  const untilEnd = Math.max(1, mostInvalidSteps(task) - meter.invalidInARow);
  return Math.min(program.timelySteps(meter.stepSeconds), numTrainSteps - state.step, untilEnd, ...due);
}
