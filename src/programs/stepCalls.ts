/** @file The compiled training step: gradients and update, one or several times a call. */
import type { TrainState } from '../checkpoints/index.js';
import {
  type BoundCall,
  compile,
  type Executable,
  type FlatLayout,
  flatViews,
  type HostTensor,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type Batch, batchBytes, specsOf } from '../inputs/index.js';
import type { FlatUpdater } from '../learners/index.js';
import { type SingleTask, type StepMetrics, trainStep } from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import { paramSpecs } from './flatParams.js';
import { compileOptions, type JobOptions } from './options.js';

/** A state whose layout is the compiler's. */
export type FlatTrainState = TrainState & { readonly layout: FlatLayout };

/** All memory that updates work on. */
export type TrainMemory = FlatTrainState & { readonly grads: Float32Array };

/** What a step computes beside gradients. */
export interface StepOutputs {
  readonly loss: HostTensor;
  readonly metrics: StepMetrics;
  readonly summaries: Readonly<Record<string, HostTensor>>;
}

/** Steps that one call may take: so many that the calls themselves, and the work between them, cost next to nothing. */
const STEPS_OF_A_CALL = 16;
/** Batches of a call take no more memory than this, if they are more than one. */
const BATCHES_BYTES = 64 << 20;

/** Specs of a training step's inputs. */
export function trainSpecs(
  state: FlatTrainState,
  { specs }: Pick<BatchBuffers, 'specs'>,
): Record<string, Tree<TensorSpec>> {
  return { params: paramSpecs(state), batch: specs, prngKey: { shape: [2], dtype: 'int32' } };
}

/** A training step over fixed memory: gradients of batches, and the updates that follow them. */
export interface BoundStep {
  readonly executable: Executable;
  readonly call: BoundCall;
  /** Tells norms of what it updates. */
  readonly updater: FlatUpdater;
  readonly buffers: BatchBuffers;
  /** Keys of each step, two words. */
  readonly keys: Int32Array;
  /** Steps that a call may take. */
  readonly mostSteps: number;
}

/** A structure like `outputs` that leaves every array to the binding. */
function ownMemory(outputs: object): Tree<null> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, value]) => [name, 'dtype' in value ? null : ownMemory(value)]),
  );
}

/** Compiles a step: the gradients of a batch, and the update that follows them. */
export async function compileStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
): Promise<BoundStep> {
  const { layout, params, slots, grads } = state;
  const fitting = Math.floor(BATCHES_BYTES / batchBytes(batch));
  const mostSteps = Math.max(1, Math.min(STEPS_OF_A_CALL, fitting));
  const updater = task.hp.train.hp.learner.createUpdater(layout, { params, grads, slots }, mostSteps);
  const executable = await compile(trainStep(task), trainSpecs(state, { specs: specsOf(batch) }), {
    ...compileOptions(options, 'train_step'),
    following: updater.following,
  });
  const buffers = new BatchBuffers(inputName, batch, mostSteps);
  const keys = new Int32Array(2 * mostSteps);
  const gradViews = flatViews(layout, grads);
  const viewsOf = (paths: readonly string[]) =>
    Object.fromEntries(paths.map((path) => [path, gradViews[path]!]));
  const inputs = { params: flatViews(layout, params), batch: buffers.arrays, prngKey: keys };
  const [{ summaries, metrics }] = executable.outputs as unknown as [StepOutputs];
  const outputs = {
    loss: null,
    metrics: ownMemory(metrics),
    summaries: ownMemory(summaries),
    grads: viewsOf(task.trainablePaths()),
    updatedVars: viewsOf(task.nonTrainablePaths()),
  };
  const call = executable.bind({
    inputs: [inputs, updater.inputs as unknown as Tree<Float32Array>],
    outputs: [outputs, updater.outputs],
    runs: mostSteps,
  });
  return { executable, call, updater, buffers, keys, mostSteps };
}
