/** @file Parts of a training run behind its start: the compiled step, the programs, the loop of both. */
import { build } from '../hparams/index.js';
import { type JobOptions, timed } from '../runs/index.js';
import type { StopSignal, StrayFailures } from '../system/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { BestCheckpoints } from './bestCheckpoints.js';
import { CheckpointProgram } from './checkpointProgram.js';
import { DuePrograms } from './duePrograms.js';
import type { Loop } from './loop.js';
import type { Measurements } from './measurements.js';
import { MeteredTraining } from './meteredTraining.js';
import { metricsOf, savedWith } from './progress.js';
import { agree } from './ranks/agreement.js';
import { shareState } from './ranks/followRanks.js';
import type { Reporter } from './reporter.js';
import { Run } from './run.js';
import { StepTaps } from './stepTaps.js';
import { beginToInitialize, type TrainMemory } from './taskState.js';
import type { TrainingStart } from './trainingStart.js';
import { TrainMeter } from './trainMeter.js';
import { TrainProgram } from './trainProgram.js';

/** The loop of a training run, with what its end tells of. */
export interface TrainingLoop extends Loop {
  readonly train: MeteredTraining;
  readonly meter: TrainMeter;
}

/** Parts of the loop. */
export interface TrainingParts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly start: TrainingStart;
  /** The compiled step. */
  readonly program: TrainProgram;
  /** Programs between steps, but for checkpoints. */
  readonly list: readonly Program[];
  /** Names of those that run before the first step. */
  readonly pending: readonly string[];
  readonly measurements: Measurements;
  readonly reporter: Reporter;
  readonly stop: StopSignal;
  readonly strays: StrayFailures;
}

/** Compiles the training step, while other threads draw the initial values of a run that begins. */
export async function compileTraining(
  options: JobOptions,
  task: SingleTask,
  { state, input, restored, given }: TrainingStart,
  strays: StrayFailures,
): Promise<TrainProgram> {
  const { matching } = restored ?? {};
  const begins = (restored === undefined || matching !== undefined) && drawsWhole(state);
  const beginning = begins ? await beginToInitialize(options, task, state, matching ?? given) : undefined;
  const { ranks } = options;
  const create = () => TrainProgram.create(options, task, state, input, (reading) => strays.during(reading));
  const creating = timed(options, 'compile', () => (ranks ? agree(ranks, create) : create()));
  const [program] = await Promise.all([creating, beginning?.done]);
  matching?.close();
  if (ranks) await shareState(options, ranks, state);
  return program;
}

/** Whether initial values are those of the whole state. */
const drawsWhole = ({ split }: TrainMemory): boolean => split === undefined || split.source.from === 'whole';

/** Makes the loop, with meters and metrics as the restored run left them. @throws JobError for taps that name nothing */
export async function makeLoop(parts: TrainingParts): Promise<TrainingLoop> {
  const { options, task, start, program, list, pending, measurements, reporter, stop, strays } = parts;
  const { state, input, restored, checkpointer } = start;
  const waitTag = input.followsTraining ? 'sampling' : 'input_wait';
  const { lossSpikeSigma, numTrainSteps } = task.hp.train.hp;
  const meter = new TrainMeter(program.batch, waitTag, lossSpikeSigma);
  const run = new Run({ options, state, reporter, stop, measurements, meter });
  const progress = restored?.progress;
  if (progress !== undefined) {
    meter.restore(progress.meter);
    program.updater.norms?.restore(progress.gradNorms);
    run.newest.restore(metricsOf(progress));
  }
  run.best = restored?.best;
  const best = list.find((each) => each instanceof BestCheckpoints);
  const checkpoints = new CheckpointProgram({
    ...{ options, checkpointer, state, writers: state.split?.checkpoints },
    numTrainSteps,
    isRestored: restored?.jobLogDir === options.jobLogDir,
    isWhole: () => program.isWhole,
    saved: () => ({ ...savedWith({ program, meter, programs, run }), metrics: best?.metrics }),
    announce: (checkpoint) => run.checkpointIsWhole(checkpoint),
  });
  const programs: DuePrograms = new DuePrograms(options, task, [...list, checkpoints], pending);
  const taps = options.taps && (await StepTaps.create(options, options.taps, task, state, program.step));
  const { newest } = run;
  const metered = { options, task, program, meter, reporter, newest, checkpointer, programs, taps };
  const executor = options.executor ? build(options.executor) : undefined;
  return { run, train: new MeteredTraining(metered), meter, programs, strays, executor };
}
