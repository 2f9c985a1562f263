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
import type { FlatUpdater, RowBuffers } from '../learners/index.js';
import { compileOptions, type JobOptions } from '../runs/index.js';
import { type SingleTask, type StepMetrics, stepNumberSpec, trainStep } from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import type { FlatTrainState, TrainMemory } from './taskState.js';

/** Results of a step besides gradients. */
export interface StepOutputs {
  readonly loss: HostTensor;
  readonly metrics: StepMetrics;
  readonly summaries: Readonly<Record<string, HostTensor>>;
  /** Summaries of layers that are no scalars, of the last step of a call. */
  readonly media: Readonly<Record<string, HostTensor>>;
}

/** Most steps per call: enough to make the overhead of calls, and of work between them, negligible. */
const STEPS_OF_A_CALL = 16;
/** Most memory for the batches of a call with several steps. */
const BATCHES_BYTES = 16 << 20;

/** Steps per call for batches of this many bytes. */
export function stepsOfCall(bytes: number): number {
  return Math.max(1, Math.min(STEPS_OF_A_CALL, Math.floor(BATCHES_BYTES / bytes)));
}

/** Specs of a training step's inputs. */
export function trainSpecs(
  task: SingleTask,
  state: FlatTrainState,
  { specs }: Pick<BatchBuffers, 'specs'>,
): Record<string, Tree<TensorSpec>> {
  const params = layoutSpecs(state.layout);
  return { params, batch: specs, prngKey: { shape: [2], dtype: 'int32' }, ...stepNumberSpec(task) };
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
  /** Finished steps before each, read by tasks for which `stepNumberSpec` has a spec. */
  readonly steps: Int32Array;
  /** Most steps per call. */
  readonly mostSteps: number;
}

/** A structure like `outputs` with null leaves, which the binding allocates. */
export function ownMemory(outputs: object): Record<string, Tree<null>> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, value]) => [name, 'dtype' in value ? null : ownMemory(value)]),
  );
}

/** Memory of summaries that are no scalars, which all steps of a call share. */
const sharedMemory = (media: StepOutputs['media']) =>
  Object.fromEntries(
    Object.entries(media).map(([name, { shape, dtype }]) => [
      name,
      dtype === 'int32' ? new Int32Array(sizeOf(shape)) : new Float32Array(sizeOf(shape)),
    ]),
  );

/** Gradients that are rows and indices, by the path of their table. */
export type RowSpecs = Readonly<Record<string, Record<keyof RowBuffers, TensorSpec>>>;

/** Memory of gradients that are rows and indices, which all steps of a call share. */
export const rowBuffers = (specs: RowSpecs): Record<string, RowBuffers> =>
  Object.fromEntries(
    Object.entries(specs).map(([path, { indices, rows }]) => [
      path,
      { indices: new Int32Array(sizeOf(indices.shape)), rows: new Float32Array(sizeOf(rows.shape)) },
    ]),
  );

/** Whether a program runs as it was traced. */
export const isTraced = ({ engine, device }: JobOptions): boolean => engine !== 'eager' && device !== 'gpu';

/** The input that holds the numbers of finished steps, where a task's step has one. */
export const stepNumber = (task: SingleTask, steps: Int32Array): { step?: Int32Array } =>
  'step' in stepNumberSpec(task) ? { step: steps } : {};

/** Compiles a step: the gradients of a batch, then the update. */
export async function compileStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
): Promise<BoundStep> {
  const { layout, changing, params, slots, grads } = state;
  const { learner, numTrainSteps } = task.hp.train.hp;
  const mostSteps = learner.needsReports ? 1 : stepsOfCall(batchBytes(batch));
  let updater: FlatUpdater | undefined;
  let rowGrads: Record<string, RowBuffers> = {};
  const executable = await compile(
    trainStep(task, { rows: isTraced(options) }),
    trainSpecs(task, state, { specs: specsOf(batch) }),
    {
      ...compileOptions(options, 'train_step', numTrainSteps),
      following: (outputs) => {
        rowGrads = rowBuffers((outputs as unknown as { rowGrads: RowSpecs }).rowGrads);
        updater = learner.createUpdater(layout, { params, grads, slots, rowGrads }, mostSteps);
        return updater.following;
      },
    },
  );
  const buffers = new BatchBuffers(inputName, batch, mostSteps);
  const [keys, steps] = [new Int32Array(2 * mostSteps), new Int32Array(mostSteps)];
  const gradViews = flatViews(changing, grads);
  const viewsOf = (paths: readonly string[]) =>
    Object.fromEntries(paths.map((path) => [path, gradViews[path]!]));
  const inputs = { params: state.views, batch: buffers.arrays, prngKey: keys, ...stepNumber(task, steps) };
  const [{ summaries, metrics, media }] = executable.outputs as unknown as [StepOutputs];
  const outputs = {
    loss: null,
    metrics: ownMemory(metrics),
    summaries: ownMemory(summaries),
    media: sharedMemory(media),
    grads: viewsOf(task.trainablePaths().filter((path) => rowGrads[path] === undefined)),
    rowGrads,
    updatedVars: viewsOf(task.nonTrainablePaths()),
  };
  const call = executable.bind({
    inputs: [inputs, updater!.inputs as unknown as Tree<Float32Array>],
    outputs: [outputs, updater!.outputs],
    runs: mostSteps,
  });
  return { executable, call, updater: updater!, buffers, keys, steps, mostSteps };
}
