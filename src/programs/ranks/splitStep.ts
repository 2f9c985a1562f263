/**
 * @file Training step of ranks that hold parts of the variables: weights are gathered where they are read, gradients of a rank's rows
 * are summed over the ranks with other rows, and each rank updates its own parts.
 */
import {
  type BoundCall,
  compile,
  compileProgram,
  flatViews,
  type HostArray,
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
  const compiling = (name: string) => ({
    ...compileOptions(options, name, numTrainSteps),
    ...({ engine, ranks: ranks.steps } as const),
  });
  const buffers = new BatchBuffers(inputName, batch);
  const { prngKey: _, ...inputs } = trainSpecs(task, state, { specs: specsOf(batch) });
  const whole = { ...inputs, prngKeys: { shape: [count, 2], dtype: 'int32' } };
  const gradients = await compileProgram(
    partitionedGradients(task, whole as Record<string, Tree<TensorSpec>>, mesh, 'gradient_step'),
    compiling('gradient_step'),
  );
  const { sums: specs, media } = gradients.outputs as unknown as Record<'sums' | 'media', Specs>;
  const [keys, prngKeys, steps] = [new Int32Array(2), new Int32Array(2 * count), new Int32Array(1)];
  const gradientCall = gradients.bind({
    inputs: {
      ...{ params: parts.views, batch: buffers.arrays, prngKeys },
      ...stepNumber(task, steps),
    },
    outputs: { sums: ownMemory(specs), rowSums: {}, media: ownMemory(media) },
  });
  const computed = gradientCall.outputs as Record<'sums' | 'media', Tree<HostTensor>>;
  const means = meanStep(task);
  let updater: FlatUpdater | undefined;
  const update = await compile(
    ({ sums }: { sums: GradientSums }) => means(ownSums(sums, split, mesh), {}),
    { sums: specs } as Record<string, Tree<TensorSpec>>,
    {
      ...compiling('update_step'),
      following: () => {
        const { layout, params, grads, slots } = parts;
        updater = learner.createUpdater(layout, { params, grads, slots });
        return updater.following;
      },
    },
  );
  const [{ grads, updatedVars, rowGrads: _rows, ...told }] = update.outputs as unknown as [
    Record<'grads' | 'updatedVars' | 'rowGrads', Specs> & Specs,
  ];
  const views = flatViews(parts.changing, parts.grads);
  const placesOf = (some: Specs) => Object.fromEntries(Object.keys(some).map((path) => [path, views[path]!]));
  const updateCall = update.bind({
    inputs: [
      { sums: mapTree<HostTensor, HostArray>(computed.sums, isHostTensor, ({ data }) => data) },
      updater!.inputs as unknown as Tree<Float32Array>,
    ],
    outputs: [
      { ...ownMemory(told), grads: placesOf(grads), updatedVars: placesOf(updatedVars), rowGrads: {} },
      updater!.outputs,
    ],
  });
  const [results, updated] = updateCall.outputs as unknown as [object, Tree<HostTensor>];
  const outputs = [{ ...results, media: computed.media }, updated] as Tree<HostTensor>;
  const run = async (): Promise<Tree<HostTensor>> => {
    const ofAll = splitKeyHost(keys, numSubBatches);
    prngKeys.set(ofAll.subarray(share.index * prngKeys.length, (share.index + 1) * prngKeys.length));
    // A rank that fails within a collective ends the job: the others wait for it there.
    await agree(ranks, async () => checkIndices(gradientCall));
    await split.change(async () => {
      await gradientCall.run();
      await updateCall.run();
    });
    return outputs;
  };
  const call = { outputs, problemOf: gradientCall.problemOf, run };
  return { executable: gradients, call, updater: updater!, buffers, keys, steps, mostSteps: 1 };
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

const isHostTensor = (value: unknown): value is HostTensor =>
  ArrayBuffer.isView((value as HostTensor | undefined)?.data);

/** @throws the error of a batch that has an index out of range. */
function checkIndices(call: BoundCall): void {
  const problem = call.problemOf(0);
  if (problem !== undefined) throw problem;
}

/** The sums over all rows: those of variables that are split over rows are, along these axes. */
function ownSums(sums: GradientSums, { shards }: StateInParts, mesh: Mesh): GradientSums {
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
