/** @file TrainProgram: gradients of a batch, then the learner's update (paxml's SingleTaskTrainProgram). */
import type { TrainState } from '../checkpoints/index.js';
import {
  type BoundCall,
  compile,
  type Executable,
  type FlatLayout,
  flatViews,
  foldIn,
  type HostTensor,
  hashString,
  type PrngKey,
  prngKey,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type Batch, batchBytes, EndOfData, type InputSource, specsOf } from '../inputs/index.js';
import type { FlatUpdater, FusedUpdate, UpdateReport } from '../learners/index.js';
import {
  metricValues,
  type SingleTask,
  type StepMetrics,
  trainStep,
  type WeightedValues,
} from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import { JobError } from './errors.js';
import { paramSpecs } from './flatParams.js';
import { compileOptions, type JobOptions, phase } from './options.js';

/** A state whose layout is the compiler's. */
export type FlatTrainState = TrainState & { readonly layout: FlatLayout };

/** All memory that updates work on. */
export type TrainMemory = FlatTrainState & { readonly grads: Float32Array };

/** What a training step did. */
export interface TrainReport {
  readonly loss: number;
  readonly metrics: WeightedValues;
  /** What layers reported, by name. */
  readonly summaries: Readonly<Record<string, number>>;
  readonly update: UpdateReport;
}

interface StepOutputs {
  readonly loss: HostTensor;
  readonly metrics: StepMetrics;
  readonly summaries: Readonly<Record<string, HostTensor>>;
}

/** Steps that one call may take: so many that the calls themselves, and the work between them, cost next to nothing. */
const STEPS_OF_A_CALL = 16;
/** Steps of one call take no longer than this: signals and the console's line wait until they are over. */
const CALL_SECONDS = 0.1;
/** Batches of a call take no more memory than this, if they are more than one. */
const BATCHES_BYTES = 64 << 20;

/** Specs of a training step's inputs. */
export function trainSpecs(
  state: FlatTrainState,
  { specs }: Pick<BatchBuffers, 'specs'>,
): Record<string, Tree<TensorSpec>> {
  return { params: paramSpecs(state), batch: specs, prngKey: { shape: [2], dtype: 'int32' } };
}

/** Gradients of batches and the updates that they ask for, over fixed memory. */
interface StepCalls {
  readonly executable: Executable;
  /** Tells norms of what it updates. */
  readonly updater: FlatUpdater | FusedUpdate;
  readonly buffers: BatchBuffers;
  /** Keys of each step, two words. */
  readonly keys: Int32Array;
  /** Steps that `run` may take at once. */
  readonly mostSteps: number;
  /** Takes `count` steps from step number `first` on; gives what the steps told, each in its part, and the updates. */
  run(
    first: number,
    count: number,
  ): Promise<{ readonly outputs: StepOutputs; readonly updates: readonly UpdateReport[] }>;
}

/** Takes training steps on a state, in place. */
export class TrainProgram {
  private readonly stream: PrngKey;

  private constructor(
    private readonly options: JobOptions,
    task: SingleTask,
    readonly state: TrainMemory,
    private readonly input: InputSource,
    private readonly calls: StepCalls,
  ) {
    this.stream = foldIn(prngKey(task.hp.train.hp.randomSeed), hashString('train'));
  }

  /** Compiles the step for the shapes of the input's next batch, which is not taken. */
  static async create(
    options: JobOptions,
    task: SingleTask,
    state: TrainMemory,
    input: InputSource,
  ): Promise<TrainProgram> {
    const calls = await compileStep(options, task, state, input.name, await input.peek());
    return new TrainProgram(options, task, state, input, calls);
  }

  /** The compiled step. */
  get executable(): Executable {
    return this.calls.executable;
  }

  /** The memory that batches are read from. */
  get buffers(): BatchBuffers {
    return this.calls.buffers;
  }

  /** Tells norms of gradients and parameters. */
  get updater(): FlatUpdater | FusedUpdate {
    return this.calls.updater;
  }

  /** Steps that `runSteps` may take at once. */
  get mostSteps(): number {
    return this.calls.mostSteps;
  }

  /** Steps that `runSteps` takes while nobody minds to wait; one where it is not known how long a step takes. */
  timelySteps(stepSeconds: number | undefined): number {
    const timely = stepSeconds === undefined ? 1 : Math.floor(CALL_SECONDS / stepSeconds);
    return Math.max(1, Math.min(timely, this.calls.mostSteps));
  }

  /** Takes one step. */
  async run(): Promise<TrainReport> {
    const [report] = await this.runSteps(1);
    return report!;
  }

  /**
   * Takes steps in one call: everything random in them depends on the seed and the step alone, and nothing on how many
   * steps a call takes.
   *
   * @param count from 1 to `mostSteps`; fewer are taken where the input ends, at least one.
   * @throws JobError where the input has ended, RangeError for another count.
   */
  async runSteps(count: number): Promise<TrainReport[]> {
    const { options, calls, state } = this;
    if (!(count >= 1 && count <= calls.mostSteps))
      throw new RangeError(`${count} steps at once, and the program takes 1 to ${calls.mostSteps}`);
    const first = state.step;
    const loaded = await phase(options, 'input', () => this.load(count));
    for (let i = 0; i < loaded; i++) calls.keys.set(foldIn(this.stream, first + i), 2 * i);
    const { outputs, updates } = await calls.run(first, loaded);
    state.step = first + loaded;
    return updates.map((update, i) => reportOf(outputs, update, i));
  }

  /** Loads so many batches; says how many there were. */
  private async load(count: number): Promise<number> {
    const { input, buffers, state } = this;
    for (let i = 0; i < count; i++) {
      try {
        buffers.load(await input.getNext(), i);
      } catch (error) {
        if (!(error instanceof EndOfData)) throw error;
        // What there is, is trained on first.
        if (i > 0) return i;
        throw new JobError(
          `Input '${input.name}' ended at step ${state.step}: a training input must repeat.`,
        );
      }
    }
    return count;
  }
}

/** What step number `i` of a call told. */
function reportOf({ loss, metrics, summaries }: StepOutputs, update: UpdateReport, i: number): TrainReport {
  return {
    loss: loss.data[i]!,
    metrics: metricValues(metrics, i),
    summaries: Object.fromEntries(Object.entries(summaries).map(([name, { data }]) => [name, data[i]!])),
    update,
  };
}

/** A structure like `outputs` that leaves every array to the binding. */
function ownMemory(outputs: object): Tree<null> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, value]) => [name, 'dtype' in value ? null : ownMemory(value)]),
  );
}

/**
 * Compiles a step: one executable where it is machine code, else one for the gradients and others for the update, which
 * looks at the gradients' norm in between.
 */
async function compileStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
): Promise<StepCalls> {
  const { learner } = task.hp.train.hp;
  const { layout, params, slots, grads } = state;
  const updated = { params, grads, slots };
  const specs = specsOf(batch);
  const fitting = Math.floor(BATCHES_BYTES / batchBytes(batch));
  const steps = Math.max(1, Math.min(STEPS_OF_A_CALL, fitting));
  const fused = learner.fuseUpdate(layout, updated, steps);
  const executable = await compile(trainStep(task), trainSpecs(state, { specs }), {
    ...compileOptions(options, 'train_step'),
    following: fused.following,
  });
  const mostSteps = executable.follows ? steps : 1;
  const buffers = new BatchBuffers(inputName, batch, mostSteps);
  const keys = new Int32Array(2 * mostSteps);
  const gradViews = flatViews(layout, grads);
  const inputs = { params: flatViews(layout, params), batch: buffers.arrays, prngKey: keys };
  const results = (executable.follows ? (executable.outputs as Tree<TensorSpec>[])[0] : executable.outputs)!;
  const { summaries, metrics } = results as unknown as StepOutputs;
  const outputs = {
    loss: null,
    metrics: ownMemory(metrics),
    summaries: ownMemory(summaries),
    grads: Object.fromEntries(task.trainablePaths().map((path) => [path, gradViews[path]!])),
  };
  const held = { executable, buffers, keys, mostSteps };
  if (executable.follows) {
    const call = executable.bind({
      inputs: [inputs, fused.inputs as unknown as Tree<Float32Array>],
      outputs: [outputs, fused.outputs],
      runs: mostSteps,
    });
    return { ...held, updater: fused, run: (first, count) => runFused(options, fused, call, first, count) };
  }
  const call = executable.bind({ inputs, outputs });
  const updater = await learner.createUpdater(layout, updated, compileOptions(options, 'update'));
  const run = async (step: number) => {
    const told = (await phase(options, 'gradients', () => call.run())) as unknown as StepOutputs;
    return { outputs: told, updates: [await phase(options, 'update', () => updater.run(step))] };
  };
  return { ...held, updater, run };
}

/** Several steps in one call. */
async function runFused(
  options: JobOptions,
  fused: FusedUpdate,
  call: BoundCall,
  first: number,
  count: number,
): ReturnType<StepCalls['run']> {
  for (let i = 0; i < count; i++) fused.prepare(first + i, i);
  const [outputs] = (await phase(options, 'step', () => call.run(count))) as unknown as [StepOutputs];
  return { outputs, updates: Array.from({ length: count }, (_, i) => fused.report(i)) };
}
