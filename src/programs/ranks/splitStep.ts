/**
 * @file Training step of ranks that hold parts of the variables: weights are gathered where they are read, gradients of a rank's rows
 * are summed over the ranks with other rows, and each rank updates its own parts.
 */
import {
  type BoundCall,
  chainPrograms,
  compileProgram,
  flatViews,
  type HostTensor,
  isTensor,
  mapTree,
  ops,
  type Program,
  partitionProgram,
  type Sharding,
  splitKeyHost,
  type Tensor,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';
import { ConfigError } from '../../hparams/index.js';
import { type Batch, specsOf } from '../../inputs/index.js';
import { splitActivations } from '../../layers/index.js';
import type { FlatUpdater } from '../../learners/index.js';
import { compileOptions, type JobOptions } from '../../runs/index.js';
import {
  type GradientSums,
  gradientStep,
  type Mesh,
  meanStep,
  partsOfRank,
  type Shard,
  type SingleTask,
} from '../../tasks/index.js';
import { BatchBuffers } from '../batchBuffers.js';
import { type BoundStep, ownMemory, stepNumber, trainSpecs } from '../stepCalls.js';
import type { StateInParts, TrainMemory } from '../taskState.js';
import { agree } from './agreement.js';

/** Parts of a step. */
interface SplitParts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  /** Whole on rank 0, elsewhere without memory. */
  readonly state: TrainMemory;
  readonly split: StateInParts;
  readonly inputName: string;
  /** The first of this rank's own. */
  readonly batch: Batch;
}

/** Structure of tensors by name. */
type Specs = Readonly<Record<string, Tree<TensorSpec>>>;

/**
 * A step like that of `compileStep`, one per call, on the parts that ranks hold.
 *
 * @throws ConfigError for an engine without collectives, and where the ranks cannot share the task's sub-batches.
 */
export async function splitStep(given: SplitParts): Promise<BoundStep> {
  const { options, task, state, split, inputName, batch } = given;
  const { parts } = split;
  const { engine = 'auto' } = options;
  const [ranks, mesh] = [options.ranks!, options.mesh!];
  if (engine !== 'auto' && engine !== 'native')
    throw new ConfigError(
      `Ranks that hold parts of variables train by machine code: leave out --engine=${engine}.`,
    );
  const { numSubBatches, numTrainSteps, learner } = task.hp.train.hp;
  const share = mesh.shareOf(ranks.rank);
  const count = partsOfRank(numSubBatches, share.count);
  const buffers = new BatchBuffers(inputName, batch);
  const { prngKey: _key, ...inputs } = trainSpecs(task, state, { specs: specsOf(batch) });
  const whole = { ...inputs, prngKeys: { shape: [count, 2], dtype: 'int32' } };
  const program = partitionedStep(task, whole as Record<string, Tree<TensorSpec>>, mesh, 'train_step');
  const [keys, prngKeys, steps] = [new Int32Array(2), new Int32Array(2 * count), new Int32Array(1)];
  let updater: FlatUpdater | undefined;
  const executable = await compileProgram(program, {
    ...{ ...compileOptions(options, 'train_step', numTrainSteps), engine, ranks: ranks.steps },
    following: () => {
      const { layout, params, grads, slots } = parts;
      updater = learner.createUpdater(layout, { params, grads, slots });
      return updater.following;
    },
  });
  const [{ grads, updatedVars, rowGrads: _, ...told }] = executable.outputs as unknown as [
    Record<'grads' | 'updatedVars' | 'rowGrads', Specs> & Specs,
  ];
  const views = flatViews(parts.changing, parts.grads);
  const placesOf = (some: Specs) => Object.fromEntries(Object.keys(some).map((path) => [path, views[path]!]));
  const call = executable.bind({
    inputs: [
      { params: parts.views, batch: buffers.arrays, prngKeys, ...stepNumber(task, steps) },
      updater!.inputs as unknown as Tree<Float32Array>,
    ],
    outputs: [
      { ...ownMemory(told), grads: placesOf(grads), updatedVars: placesOf(updatedVars), rowGrads: {} },
      updater!.outputs,
    ],
  });
  const run = async (): Promise<Tree<HostTensor>> => {
    const ofAll = splitKeyHost(keys, numSubBatches);
    prngKeys.set(ofAll.subarray(share.index * prngKeys.length, (share.index + 1) * prngKeys.length));
    // A rank that fails within a collective ends the job: the others wait for it there.
    await agree(ranks, async () => checkIndices(call));
    await split.change(async () => {
      await call.run();
    });
    return call.outputs;
  };
  const { outputs, problemOf } = call;
  return {
    ...{ executable, buffers, keys, steps, mostSteps: 1 },
    ...{ call: { outputs, problemOf, run }, updater: updater! },
  };
}

/**
 * The gradients of a rank's rows by its parts of the variables: the sums of those that are split over axes of rows, in parts. Rows are
 * its own: the mesh's axes of rows split nothing else.
 *
 * @param specs of whole variables.
 * @param name of the program, for dumps.
 */
export function partitionedGradients(
  task: SingleTask,
  specs: Readonly<Record<string, Tree<TensorSpec>>>,
  mesh: Mesh,
  name: string,
  options: Parameters<typeof traceProgram>[2] = {},
): Program {
  const { axes: rowAxes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const shardings = new Map(mesh.shards(task.variables, 0).map(({ path, axes }) => [path, axes]));
  const under =
    (...prefixes: readonly string[]) =>
    (path: string): Sharding | undefined => {
      const prefix = prefixes.find((each) => path.startsWith(each));
      return prefix === undefined ? undefined : shardings.get(path.slice(prefix.length));
    };
  const step = gradientStep(task);
  const splits: Parameters<typeof splitActivations>[0] = (...tensor) => mesh.activationAxes(...tensor);
  const traced = traceProgram((inputs) => splitActivations(splits, () => step(inputs)), specs, options);
  const borders = {
    ...{ inputs: under('params.'), outputs: under('sums.grads.', 'sums.updatedVars.') },
    ...{ rowAxes, axisNames: mesh.axisNames },
  };
  return partitionProgram(traced, borders, mesh.sizes, name);
}

/**
 * The step of a rank by its parts of the variables, in front of the update: its gradients are the means over all rows.
 *
 * @param specs as those of {@link partitionedGradients}, and so the others.
 */
export function partitionedStep(
  task: SingleTask,
  specs: Readonly<Record<string, Tree<TensorSpec>>>,
  mesh: Mesh,
  name: string,
  options: Parameters<typeof traceProgram>[2] = {},
): Program {
  const gradients = partitionedGradients(task, specs, mesh, name, options);
  const means = meanStep(task);
  const { sums } = gradients.outputs as Specs;
  const shards = mesh.shards(task.variables, 0);
  const ofAll = traceProgram(
    (given) => means(ownSums(given.sums, shards, mesh), {}) as unknown as Tree<Tensor>,
    { sums: sums! },
    options,
  );
  return chainPrograms(gradients, ofAll, ['media']);
}

/** @throws the error of a batch that has an index out of range. */
function checkIndices(call: BoundCall): void {
  const problem = call.problemOf(0);
  if (problem !== undefined) throw problem;
}

/** The sums over all rows: those of variables that are split over rows are, along these axes. */
function ownSums(sums: GradientSums, shards: readonly Shard[], mesh: Mesh): GradientSums {
  const rows = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const split = new Map(shards.map(({ path, axes }) => [path, axes.flat()]));
  const overRows = (sum: Tensor, path = ''): Tensor => {
    const axes = rows.axes.filter((axis) => !split.get(path)?.includes(axis));
    return ops.allReduce(sum, { ...rows, axes });
  };
  const all = (tree: Tree<Tensor>) => mapTree<Tensor, Tensor>(tree, isTensor, overRows);
  const { grads, updatedVars, ...others } = sums;
  return { ...(all(others) as object), grads: all(grads), updatedVars: all(updatedVars) } as GradientSums;
}
