/** @file The training loop, in Pax's order: save, stop, step, evaluate, decode; at the end a forced save. */
import { join } from 'node:path';
import { Checkpointer } from '../checkpoints/index.js';
import { flatViews, takeMemory } from '../compiler/index.js';
import { build } from '../hparams/index.js';
import type { InputSource, InputState } from '../inputs/index.js';
import { sumOfSquares } from '../learners/index.js';
import type { StopSignal } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { DecodeProgram } from './decodeProgram.js';
import { EvalProgram, EvalSteps } from './evalProgram.js';
import { writeJobFiles } from './jobFiles.js';
import { machineChanges, machineOf, recordedMachine } from './machine.js';
import { findPeak, modelCost } from './mfu.js';
import { openDataset } from './openDataset.js';
import { type JobOptions, phase } from './options.js';
import { Reporter } from './reporter.js';
import { averaged, beginToInitialize, trainStateOf } from './taskState.js';
import { trainingDataset } from './trainingDataset.js';
import { TrainMeter } from './trainMeter.js';
import { type FlatTrainState, type TrainMemory, TrainProgram, type TrainReport } from './trainProgram.js';

/** Everything that a training run holds. */
interface Training {
  readonly options: JobOptions;
  readonly stop: StopSignal;
  readonly task: SingleTask;
  readonly state: FlatTrainState;
  readonly input: InputSource;
  readonly checkpointer: Checkpointer;
  readonly reporter: Reporter;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly evalSteps: EvalSteps;
  readonly evals: readonly EvalProgram[];
  readonly decodes: readonly DecodeProgram[];
  /** Steps of this process. */
  taken: number;
}

/** Trains to the task's last step, or until a signal; either way the present state is saved at the end. */
export async function runTraining(options: JobOptions, stop: StopSignal): Promise<void> {
  const training = await openTraining(options, stop);
  try {
    await trainLoop(training);
  } finally {
    const { input, checkpointer, reporter, evals, decodes } = training;
    await Promise.all([input, checkpointer, reporter, ...evals, ...decodes].map((part) => part.close()));
  }
}

async function openTraining(options: JobOptions, stop: StopSignal): Promise<Training> {
  const task = build(options.task);
  const { train } = task.hp;
  const input = openDataset(options, trainingDataset(options));
  let tell: (line: string) => void = (line) => process.stdout.write(`${line}\n`);
  const checkpointer = new Checkpointer({
    directory: join(options.jobLogDir, 'checkpoints'),
    experiment: options.name,
    saveIntervalSteps: train.hp.saveIntervalSteps,
    saveMaxToKeep: train.hp.saveMaxToKeep,
    saveKeepIntervalDuration: train.hp.saveKeepIntervalDuration,
    notify: ({ message }) => tell(message),
  });
  const state = trainStateOf(task);
  const restored = await restoreNewest(options, state, input, checkpointer);
  const { numTrainSteps, summaryIntervalSteps, logTrainOutputIntervalSteps } = train.hp;
  const logIntervalSteps = logTrainOutputIntervalSteps ?? summaryIntervalSteps;
  const reporter = new Reporter(options, { numTrainSteps, firstStep: state.step, logIntervalSteps });
  tell = (line) => reporter.tell(line);
  reporter.trainingStarts(task, input.getGlobalBatchSize(), restored);
  // Other threads draw initial values while this one compiles.
  const beginning = restored === undefined ? await beginToInitialize(options, task, state) : undefined;
  const creating = TrainProgram.create(options, task, state, input);
  const [program] = await Promise.all([creating, beginning?.done]);
  const machine = await machineOf(options, program.executable);
  if (restored !== undefined)
    reporter.tell(...machineChanges(recordedMachine(options.jobLogDir) ?? {}, machine));
  // Only now: a run that can't go on from what is there must not write over it.
  writeJobFiles(options, machine);
  const evalSteps = new EvalSteps(options, task, train.hp.evalUseEmaStates ? averaged(state) : state);
  const decodedParams = train.hp.decodeUseEmaStates ? averaged(state) : state;
  const { mode, datasets, decodeDatasets } = options;
  const evaluated = mode === 'train' ? [] : datasets.filter((dataset) => !dataset.isTraining);
  const decoded = mode === 'train_and_decode' ? decodeDatasets : [];
  return {
    ...{ options, stop, task, state, input, checkpointer, reporter, program, evalSteps },
    meter: new TrainMeter(program),
    taken: 0,
    evals: evaluated.map((dataset) => new EvalProgram(options, evalSteps, dataset)),
    decodes: decoded.map((dataset) => new DecodeProgram(options, task, decodedParams, dataset)),
  };
}

/** Fills the state from the newest checkpoint, and says which that is; undefined where there is none. */
async function restoreNewest(
  options: JobOptions,
  state: TrainMemory,
  input: InputSource,
  checkpointer: Checkpointer,
): Promise<string | undefined> {
  if (checkpointer.latestStep() === undefined) return undefined;
  await takeMemory([state.params, ...Object.values(state.slots), state.grads], options);
  const restored = await checkpointer.restore(state, { allowPrevious: options.restorePreviousCheckpoint });
  if (restored.inputState !== null) input.setState(restored.inputState as InputState);
  return restored.path;
}

async function trainLoop(training: Training): Promise<void> {
  const { options, task, state, stop, checkpointer, reporter } = training;
  const { numTrainSteps } = task.hp.train.hp;
  // The newest checkpoint on the disk may be one that was passed over as broken.
  stop.postpone('saving a checkpoint, then leaving');
  let saved = checkpointer.latestStep() === undefined ? undefined : state.step;
  const save = async () => {
    await phase(options, 'checkpoints', () =>
      checkpointer.save(state, { inputState: training.input.getState() }),
    );
    saved = state.step;
  };
  const evaluateAndDecode = async () => {
    await phase(options, 'evaluation', () => evaluateIfDue(training));
    await phase(options, 'decoding', () => decodeIfDue(training));
  };
  if (state.step >= numTrainSteps) {
    // A finished run that is started again shows what came of it.
    await evaluateAndDecode();
  }
  for (;;) {
    const preempted = stop.received !== undefined;
    if (saved !== state.step && checkpointer.shouldSave(state.step, { preempted })) await save();
    if (preempted || state.step >= numTrainSteps) break;
    await takeSteps(training);
    await evaluateAndDecode();
  }
  if (saved === undefined || saved < state.step) await save();
  await phase(options, 'checkpoints', () => checkpointer.waitUntilFinished());
  reporter.trainingEnds(state.step, stop.received);
  await reportProfile(training);
}

async function reportProfile({ options, reporter, meter, taken }: Training): Promise<void> {
  const { profiler } = options;
  if (profiler === undefined) return;
  const { writeProfile } = await import('./profile/write.js');
  // The first of several steps warms up, and is not counted.
  const steps = taken > 1 ? taken - 1 : taken;
  reporter.profiled(await writeProfile(options, profiler, steps, meter.cost?.peak));
}

async function takeSteps(training: Training): Promise<void> {
  const { task, state, program, meter, reporter, options } = training;
  const { numTrainSteps, summaryIntervalSteps } = task.hp.train.hp;
  const first = state.step;
  const reports = await program.runSteps(stepsAtOnce(training));
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
}

/** How many steps are taken before anybody asks what came of them. */
function stepsAtOnce({ task, state, program, meter }: Training): number {
  const { summaryIntervalSteps, evalIntervalSteps, saveIntervalSteps, decodeIntervalSteps, numTrainSteps } =
    task.hp.train.hp;
  const intervals = [summaryIntervalSteps, evalIntervalSteps, saveIntervalSteps, decodeIntervalSteps];
  const due = intervals.map((steps) => (steps === null ? numTrainSteps : steps - (state.step % steps)));
  return Math.min(program.timelySteps(meter.stepSeconds), numTrainSteps - state.step, ...due);
}

async function writeSummary(training: Training, report: TrainReport): Promise<void> {
  const { task, state, program, meter, reporter } = training;
  const { learner, variableNormSummary } = task.hp.train.hp;
  meter.pause();
  // Counting FLOPs and measuring the peak take a while; the first step does not wait for them.
  if (!meter.cost && meter.speed !== undefined) {
    const { flops, precision } = modelCost(task, state, program.buffers);
    meter.cost = { flops, peak: await findPeak(training.options, precision) };
  }
  const scalars = meter.take(report);
  if (learner.hp.varNormSummary) scalars['learning/var_norm'] = program.updater.varNorm();
  if (learner.hp.gradNormIndividualVars) {
    for (const [path, norm] of Object.entries(program.updater.gradNorms()))
      scalars[`per_var_grad_norm/${path}`] = norm;
  }
  if (variableNormSummary) Object.assign(scalars, rootMeanSquares(state));
  reporter.trainSummary(state.step, scalars, meter);
  meter.resume();
}

/** Root mean square of every variable, by summary tag. */
function rootMeanSquares({ layout, params }: FlatTrainState): Record<string, number> {
  const entries = Object.entries(flatViews(layout, params)).map(([path, values]) => {
    const sum = sumOfSquares(values, 0, values.length);
    return [`vars/${path}`, Math.sqrt(sum / Math.max(1, values.length))] as const;
  });
  return Object.fromEntries(entries);
}

async function evaluateIfDue(training: Training): Promise<void> {
  const { task, state, stop, meter, reporter, input, evals, evalSteps } = training;
  const { numTrainSteps, evalIntervalSteps, evalSkipTrain } = task.hp.train.hp;
  if (state.step % evalIntervalSteps !== 0 && state.step < numTrainSteps) return;
  meter.pause();
  if (!evalSkipTrain) {
    const metrics = await evalSteps.run(input.name, await input.peek());
    reporter.evaluated('eval_train', state.step, { metrics, batches: 1, seconds: 0 });
  }
  for (const program of evals) {
    const result = await program.run(() => stop.received !== undefined);
    if (result) reporter.evaluated(program.name, state.step, result);
  }
  meter.resume();
}

async function decodeIfDue(training: Training): Promise<void> {
  const { task, state, stop, meter, reporter, decodes } = training;
  const { numTrainSteps, decodeIntervalSteps, decodeStartAfterNSteps } = task.hp.train.hp;
  const isFinal = state.step >= numTrainSteps;
  const isDue = decodeIntervalSteps !== null && state.step % decodeIntervalSteps === 0;
  if (!isFinal && !(isDue && state.step >= decodeStartAfterNSteps)) return;
  meter.pause();
  for (const program of decodes) {
    const result = await program.run(state.step, () => stop.received !== undefined);
    if (result) reporter.decoded(program.name, state.step, result);
  }
  meter.resume();
}
