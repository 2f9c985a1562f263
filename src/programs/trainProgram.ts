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
import { EndOfData, type InputSource } from '../inputs/index.js';
import type { FlatUpdater, UpdateReport } from '../learners/index.js';
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
    private readonly call: BoundCall,
    readonly updater: FlatUpdater,
    /** The compiled step. */
    readonly executable: Executable,
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
    const grads = new Float32Array(state.layout.size);
    const compiling = compile(
      trainStep(task),
      trainSpecs(state, buffers),
      compileOptions(options, 'train_step'),
    );
    const updating = task.hp.train.hp.learner.createUpdater(
      state.layout,
      { params: state.params, grads, slots: state.slots },
      compileOptions(options, 'update'),
    );
    const [executable, updater] = await Promise.all([compiling, updating]);
    const { summaries, metrics } = executable.outputs as unknown as StepOutputs;
    const gradViews = flatViews(state.layout, grads);
    const trainable = task.trainablePaths().map((path) => [path, gradViews[path]!] as const);
    const key = new Int32Array(2);
    const call = executable.bind({
      inputs: { params: flatViews(state.layout, state.params), batch: buffers.arrays, prngKey: key },
      outputs: {
        loss: null,
        metrics: ownMemory(metrics),
        summaries: ownMemory(summaries),
        grads: Object.fromEntries(trainable),
      },
    });
    return new TrainProgram(options, task, state, input, buffers, key, call, updater, executable);
  }

  /** Takes one step: everything random in it depends on the seed and the step alone. */
  async run(): Promise<TrainReport> {
    const { options } = this;
    await phase(options, 'input', async () => this.buffers.load(await this.nextBatch()));
    const { step } = this.state;
    this.key.set(foldIn(this.stream, step));
    const outputs = await phase(options, 'gradients', () => this.call.run());
    const { loss, metrics, summaries } = outputs as unknown as StepOutputs;
    const update = await phase(options, 'update', () => this.updater.run(step));
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
