/** @file The compiled training step: gradients and update, one or more times per call. */
import {
  type BoundCall,
  compile,
  type Executable,
  flatViews,
  type HostTensor,
  layoutSpecs,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type Batch, batchBytes, specsOf } from '../inputs/index.js';
import type { FlatUpdater } from '../learners/index.js';
import { compileOptions, type JobOptions } from '../runs/index.js';
import { type SingleTask, type StepMetrics, trainStep } from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import type { FlatTrainState, TrainMemory } from './taskState.js';

/** Results of a step besides gradients. */
export interface StepOutputs {
  readonly loss: HostTensor;
  readonly metrics: StepMetrics;
  readonly summaries: Readonly<Record<string, HostTensor>>;
  /** Of the last step of a call. */
  readonly images: Readonly<Record<string, HostTensor>>;
}

/** Most steps per call: enough to make the overhead of calls, and of work between them, negligible. */
const STEPS_OF_A_CALL = 16;
/** Most memory for the batches of a call with several steps. */
const BATCHES_BYTES = 64 << 20;

/** Steps per call for batches of this many bytes. */
export function stepsOfCall(bytes: number): number {
  return Math.max(1, Math.min(STEPS_OF_A_CALL, Math.floor(BATCHES_BYTES / bytes)));
}

/** Specs of a training step's inputs. */
export function trainSpecs(
  state: FlatTrainState,
  { specs }: Pick<BatchBuffers, 'specs'>,
): Record<string, Tree<TensorSpec>> {
  return { params: layoutSpecs(state.layout), batch: specs, prngKey: { shape: [2], dtype: 'int32' } };
}

/** A training step on fixed memory: gradients of batches, each followed by an update. */
export interface BoundStep {
  readonly executable: Executable;
  readonly call: BoundCall;
  /** Source of norms for summaries. */
  readonly updater: FlatUpdater;
  readonly buffers: BatchBuffers;
  /** Two-word keys of each step. */
  readonly keys: Int32Array;
  /** Most steps per call. */
  readonly mostSteps: number;
}

/** A structure like `outputs` with null leaves, which the binding allocates. */
function ownMemory(outputs: object): Tree<null> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, value]) => [name, 'dtype' in value ? null : ownMemory(value)]),
  );
}

/** Memory of images that all steps of a call share. */
const sharedMemory = (images: StepOutputs['images']) =>
  Object.fromEntries(
    Object.entries(images).map(([name, { shape }]) => [name, new Float32Array(sizeOf(shape))]),
  );

/** Compiles a step: the gradients of a batch, then the update. */
export async function compileStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
): Promise<BoundStep> {
  const { layout, changing, params, slots, grads } = state;
  const mostSteps = stepsOfCall(batchBytes(batch));
  const updater = task.hp.train.hp.learner.createUpdater(layout, { params, grads, slots }, mostSteps);
  const executable = await compile(trainStep(task), trainSpecs(state, { specs: specsOf(batch) }), {
    ...compileOptions(options, 'train_step', task.hp.train.hp.numTrainSteps),
    following: updater.following,
  });
  const buffers = new BatchBuffers(inputName, batch, mostSteps);
  const keys = new Int32Array(2 * mostSteps);
  const gradViews = flatViews(changing, grads);
  const viewsOf = (paths: readonly string[]) =>
    Object.fromEntries(paths.map((path) => [path, gradViews[path]!]));
  const inputs = { params: state.views, batch: buffers.arrays, prngKey: keys };
  const [{ summaries, metrics, images }] = executable.outputs as unknown as [StepOutputs];
  const outputs = {
    loss: null,
    metrics: ownMemory(metrics),
    summaries: ownMemory(summaries),
    images: sharedMemory(images),
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
