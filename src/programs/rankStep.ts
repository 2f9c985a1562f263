/** @file Training step that several ranks take together: gradients of a rank's rows, their sum over ranks, the update. */
import {
  compile,
  type FlatLayout,
  flatLayout,
  flattenTree,
  flatViews,
  type HostTensor,
  isSpec,
  mapTree,
  splitKeyHost,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { type Batch, specsOf } from '../inputs/index.js';
import { compileOptions, type JobOptions } from '../runs/index.js';
import { gradientStep, meanStep, partsOfRank, type SingleTask } from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import { type BoundStep, ownMemory, trainSpecs } from './stepCalls.js';
import type { TrainMemory } from './taskState.js';

/** The processes that take a step together: rank i has the i-th share of the rows of each batch. */
export interface Ranks {
  /** Number of this one, from 0. */
  readonly rank: number;
  readonly count: number;
  /** Replaces this rank's sums by those over all ranks, `treeSum`, whose bits do not depend on how many ranks there are. */
  allReduce(sums: Float32Array): Promise<void>;
}

/** Structure of tensors by name. */
type Specs = Readonly<Record<string, Tree<TensorSpec>>>;

/**
 * A step like that of `compileStep`, one per call, that stops between gradients and update for the other ranks. All have the
 * same parameters before it, and so after it.
 *
 * @param batch the first of this rank's own.
 * @throws ConfigError where the ranks cannot share the task's sub-batches.
 */
export async function rankStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
  { rank, count, allReduce }: Ranks,
): Promise<BoundStep> {
  const { numSubBatches, numTrainSteps, learner } = task.hp.train.hp;
  const parts = partsOfRank(numSubBatches, count);
  const buffers = new BatchBuffers(inputName, batch);
  const { prngKey: _, ...given } = trainSpecs(state, { specs: specsOf(batch) });
  const gradients = await compile(
    gradientStep(task),
    { ...given, prngKeys: { shape: [parts, 2], dtype: 'int32' } },
    compileOptions(options, 'gradient_step', numTrainSteps),
  );
  const { sums: specs, images } = gradients.outputs as { sums: Specs; images: Specs };
  const { sums, grads, placesOf } = sumBuffer(state.changing, specs);
  const { layout, params, slots } = state;
  const updater = learner.createUpdater(layout, { params, grads, slots });
  const update = await compile(meanStep(task), specs, {
    ...compileOptions(options, 'update_step', numTrainSteps),
    following: updater.following,
  });
  const [keys, prngKeys] = [new Int32Array(2), new Int32Array(2 * parts)];
  const gradientCall = gradients.bind({
    inputs: { params: state.views, batch: buffers.arrays, prngKeys },
    outputs: { sums: placesOf(specs), images: ownMemory(images) },
  });
  const [means] = update.outputs as unknown as [Specs];
  const { grads: meanGrads, updatedVars, ...told } = means as Record<'grads' | 'updatedVars', Specs> & Specs;
  const updateCall = update.bind({
    inputs: [placesOf(specs), updater.inputs as unknown as Tree<Float32Array>],
    outputs: [{ ...ownMemory(told), ...placesOf({ grads: meanGrads, updatedVars }) }, updater.outputs],
  });
  const { images: pictures } = gradientCall.outputs as Record<string, Tree<HostTensor>>;
  const [results, updated] = updateCall.outputs as unknown as [object, Tree<HostTensor>];
  const outputs = [{ ...results, images: pictures }, updated] as Tree<HostTensor>;
  const run = async (): Promise<Tree<HostTensor>> => {
    const all = splitKeyHost(keys, numSubBatches);
    prngKeys.set(all.subarray(rank * prngKeys.length, (rank + 1) * prngKeys.length));
    await gradientCall.run();
    await allReduce(sums);
    await updateCall.run();
    return outputs;
  };
  const call = { outputs, problemOf: gradientCall.problemOf, run };
  return { executable: gradients, call, updater, buffers, keys, mostSteps: 1 };
}

/** One buffer of all sums: gradients and replaced variables as they lie in the state's, then the others. */
function sumBuffer(
  { entries, size }: FlatLayout,
  specs: Specs,
): {
  readonly sums: Float32Array;
  readonly grads: Float32Array;
  placesOf(specs: Specs): Record<string, Tree<Float32Array>>;
} {
  const variableOf = (path: string) => /^(?:grads|updatedVars)\.(.*)$/s.exec(path)?.[1];
  const others = flattenTree<TensorSpec>(specs, isSpec).filter(({ path }) => variableOf(path) === undefined);
  const group = 'sums';
  const layout = flatLayout([
    ...entries,
    ...others.map(({ path, value: { shape } }) => ({ name: `${group}.${path}`, shape, group })),
  ]);
  const sums = new Float32Array(layout.size);
  const views = flatViews(layout, sums);
  const placesOf = (some: Specs) =>
    mapTree<TensorSpec, Float32Array>(
      some,
      isSpec,
      (_, path) => views[variableOf(path) ?? `${group}.${path}`]!,
    ) as Record<string, Tree<Float32Array>>;
  return { sums, grads: sums.subarray(0, size), placesOf };
}
