/** @file TrainProgram: gradients of a batch, then the learner's update (paxml's SingleTaskTrainProgram). */
import type { TrainState } from '../checkpoints/index.js';
import {
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
import { EndOfData, type InputSource } from '../inputs/index.js';
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

/** Specs of a training step's inputs. */
export function trainSpecs(state: FlatTrainState, buffers: BatchBuffers): Record<string, Tree<TensorSpec>> {
  return { params: paramSpecs(state), batch: buffers.specs, prngKey: { shape: [2], dtype: 'int32' } };
}

/** Gradients of a batch and the update that they ask for, over fixed memory. */
interface StepCalls {
  readonly executable: Executable;
  /** Tells norms of what it updates. */
  readonly updater: FlatUpdater | FusedUpdate;
  run(step: number): Promise<{ readonly outputs: StepOutputs; readonly update: UpdateReport }>;
}

/** Takes training steps on a state, in place. */
export class TrainProgram {
  private readonly stream: PrngKey;

  private constructor(
    private readonly options: JobOptions,
    task: SingleTask,
    readonly state: FlatTrainState,
    private readonly input: InputSource,
    readonly buffers: BatchBuffers,
    private readonly key: Int32Array,
    private readonly calls: StepCalls,
  ) {
    this.stream = foldIn(prngKey(task.hp.train.hp.randomSeed), hashString('train'));
  }

  /** Compiles the step for the shapes of the input's next batch, which is not taken. */
  static async create(
    options: JobOptions,
    task: SingleTask,
    state: FlatTrainState,
    input: InputSource,
  ): Promise<TrainProgram> {
    const buffers = new BatchBuffers(input.name, await input.peek());
    const key = new Int32Array(2);
    const calls = await compileStep(options, task, state, buffers, key);
    return new TrainProgram(options, task, state, input, buffers, key, calls);
  }

  /** The compiled step. */
  get executable(): Executable {
    return this.calls.executable;
  }

  /** Tells norms of gradients and parameters. */
  get updater(): FlatUpdater | FusedUpdate {
    return this.calls.updater;
  }

  /** Takes one step: everything random in it depends on the seed and the step alone. */
  async run(): Promise<TrainReport> {
    const { options } = this;
    await phase(options, 'input', async () => this.buffers.load(await this.nextBatch()));
    const { step } = this.state;
    this.key.set(foldIn(this.stream, step));
    const { outputs, update } = await this.calls.run(step);
    const { loss, metrics, summaries } = outputs;
    this.state.step = step + 1;
    return {
      loss: loss.data[0]!,
      metrics: metricValues(metrics),
      summaries: Object.fromEntries(Object.entries(summaries).map(([name, { data }]) => [name, data[0]!])),
      update,
    };
  }

  private async nextBatch() {
    try {
      return await this.input.getNext();
    } catch (error) {
      if (!(error instanceof EndOfData)) throw error;
      throw new JobError(
        `Input '${this.input.name}' ended at step ${this.state.step}: a training input must repeat.`,
      );
    }
  }
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
  state: FlatTrainState,
  buffers: BatchBuffers,
  key: Int32Array,
): Promise<StepCalls> {
  const { learner } = task.hp.train.hp;
  const { layout, params, slots } = state;
  const grads = new Float32Array(layout.size);
  const updated = { params, grads, slots };
  const fused = learner.fuseUpdate(layout, updated);
  const executable = await compile(trainStep(task), trainSpecs(state, buffers), {
    ...compileOptions(options, 'train_step'),
    following: fused.following,
  });
  const gradViews = flatViews(layout, grads);
  const trainable = task.trainablePaths().map((path) => [path, gradViews[path]!] as const);
  const inputs = { params: flatViews(layout, params), batch: buffers.arrays, prngKey: key };
  const results = (executable.follows ? (executable.outputs as Tree<TensorSpec>[])[0] : executable.outputs)!;
  const { summaries, metrics } = results as unknown as StepOutputs;
  const outputs = {
    loss: null,
    metrics: ownMemory(metrics),
    summaries: ownMemory(summaries),
    grads: Object.fromEntries(trainable),
  };
  if (executable.follows) {
    const call = executable.bind({
      inputs: [inputs, fused.inputs as unknown as Tree<Float32Array>],
      outputs: [outputs, fused.outputs],
    });
    const run = async (step: number) => {
      fused.prepare(step);
      const [told] = (await phase(options, 'step', () => call.run())) as unknown as [StepOutputs];
      return { outputs: told, update: fused.report() };
    };
    return { executable, updater: fused, run };
  }
  const call = executable.bind({ inputs, outputs });
  const updater = await learner.createUpdater(layout, updated, compileOptions(options, 'update'));
  const run = async (step: number) => {
    const told = (await phase(options, 'gradients', () => call.run())) as unknown as StepOutputs;
    return { outputs: told, update: await phase(options, 'update', () => updater.run(step)) };
  };
  return { executable, updater, run };
}
