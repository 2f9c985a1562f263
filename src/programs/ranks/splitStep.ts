/**
 * @file Training step of ranks that hold parts of the variables: parts along axes of rows are joined, gradients of a rank's rows are
 * summed over the ranks with other rows, and each rank updates its own parts.
 */
import {
  compile,
  compileProgram,
  flatViews,
  type Group,
  type HostArray,
  type HostTensor,
  isTensor,
  layoutSpecs,
  mapTree,
  membersOf,
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

/** What a step is made of. */
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

/** Dimensions of a variable that are split over axes of rows, with the ranks that hold its parts along each. */
type RowSplits = readonly { readonly dim: number; readonly group: Group }[];

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
  const rows = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const count = partsOfRank(numSubBatches, share.count);
  const compiling = (name: string) => ({
    ...compileOptions(options, name, numTrainSteps),
    ...({ engine, ranks: ranks.steps } as const),
  });
  const buffers = new BatchBuffers(inputName, batch);
  const joined = await joinedParts(split, mesh, compiling('gather_step'));
  const { prngKey: _, ...inputs } = trainSpecs(task, state, { specs: specsOf(batch) });
  const whole = { ...inputs, prngKeys: { shape: [count, 2], dtype: 'int32' } };
  const gradients = await compileProgram(
    partitionedGradients(task, whole as Record<string, Tree<TensorSpec>>, split, mesh),
    compiling('gradient_step'),
  );
  const { sums: specs, media } = gradients.outputs as unknown as Record<'sums' | 'media', Specs>;
  const [keys, prngKeys, steps] = [new Int32Array(2), new Int32Array(2 * count), new Int32Array(1)];
  const gradientCall = gradients.bind({
    inputs: {
      ...{ params: { ...parts.views, ...joined?.views }, batch: buffers.arrays, prngKeys },
      ...stepNumber(task, steps),
    },
    outputs: { sums: ownMemory(specs), rowSums: {}, media: ownMemory(media) },
  });
  const computed = gradientCall.outputs as Record<'sums' | 'media', Tree<HostTensor>>;
  const means = meanStep(task);
  let updater: FlatUpdater | undefined;
  const update = await compile(
    ({ sums }: { sums: GradientSums }) => means(ownSums(sums, rows, joined?.splits ?? {}), {}),
    { sums: specs } as Record<string, Tree<TensorSpec>>,
    {
      ...compiling('update_step'),
      following: () => {
        const { layout, params, grads, slots } = parts;
        const isFirst = ranks.rank === 0;
        updater = learner.createUpdater(layout, {
          ...{ params, grads, slots },
          ...(isFirst && { whole: { layout: state.layout, params: state.params, grads: state.grads } }),
        });
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
    await joined?.run();
    await agree(ranks, () => gradientCall.run());
    await split.change(async () => {
      await updateCall.run();
    });
    return outputs;
  };
  const call = { outputs, problemOf: gradientCall.problemOf, run };
  return { executable: gradients, call, updater: updater!, buffers, keys, steps, mostSteps: 1 };
}

/**
 * The gradients of a rank's rows by its parts of the variables. Rows are its own: the mesh's axes of rows split nothing here.
 *
 * @param specs of whole variables.
 */
function partitionedGradients(
  task: SingleTask,
  specs: Readonly<Record<string, Tree<TensorSpec>>>,
  { shards }: StateInParts,
  mesh: Mesh,
): Program {
  const { axes: ofRows } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const shardings = new Map(
    shards.map(({ path, axes }) => [path, axes.map((each) => each.filter((axis) => !ofRows.includes(axis)))]),
  );
  const under =
    (prefix: string) =>
    (path: string): Sharding | undefined =>
      path.startsWith(prefix) ? shardings.get(path.slice(prefix.length)) : undefined;
  const step = gradientStep(task);
  const splits: Parameters<typeof splitActivations>[0] = (...tensor) => mesh.activationAxes(...tensor);
  const traced = traceProgram((inputs) => splitActivations(splits, () => step(inputs)), specs);
  const borders = {
    ...{ inputs: under('params.'), outputs: under('sums.grads.') },
    ...{ rowAxes: ofRows, axisNames: mesh.axisNames },
  };
  return partitionProgram(traced, borders, mesh.sizes, 'gradient_step');
}

const isHostTensor = (value: unknown): value is HostTensor =>
  ArrayBuffer.isView((value as HostTensor | undefined)?.data);

/** The sums over all rows, of gradients this rank's parts. */
function ownSums(sums: GradientSums, rows: Group, splits: Readonly<Record<string, RowSplits>>): GradientSums {
  const all = mapTree<Tensor, Tensor>(sums, isTensor, (sum) => ops.allReduce(sum, rows)) as GradientSums;
  const grads = Object.fromEntries(
    Object.entries(all.grads).map(([path, sum]) => [
      path,
      (splits[path] ?? []).reduce((part, { dim, group }) => ops.ownPart(part, group, dim), sum),
    ]),
  );
  return { ...all, grads };
}

/**
 * Variables that are split over axes of rows, whose parts a step joins in memory of its own; undefined where there are none.
 *
 * @param options of compiling.
 */
async function joinedParts(
  { parts, shards }: StateInParts,
  mesh: Mesh,
  options: Parameters<typeof compile>[2],
): Promise<
  | {
      readonly views: Readonly<Record<string, HostArray>>;
      readonly splits: Readonly<Record<string, RowSplits>>;
      run(): Promise<unknown>;
    }
  | undefined
> {
  const { axes: ofRows, mesh: sizes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  const splits = Object.fromEntries(
    shards.flatMap(({ path, axes }) => {
      const own = axes
        .map((each, dim) => ({
          dim,
          group: { mesh: sizes, axes: each.filter((axis) => ofRows.includes(axis)) },
        }))
        .filter(({ group }) => membersOf(group) > 1);
      return own.length === 0 ? [] : [[path, own]];
    }),
  ) as Record<string, RowSplits>;
  const paths = Object.keys(splits);
  if (paths.length === 0) return undefined;
  const specs = layoutSpecs(parts.layout);
  const held = Object.fromEntries(paths.map((path) => [path, specs[path]!]));
  const executable = await compile(
    (given: Readonly<Record<string, Tensor>>) =>
      Object.fromEntries(
        paths.map((path) => [
          path,
          splits[path]!.reduce((whole, { dim, group }) => ops.allGather(whole, group, dim), given[path]!),
        ]),
      ),
    held,
    options,
  );
  const call = executable.bind({
    inputs: Object.fromEntries(paths.map((path) => [path, parts.views[path]!])),
    outputs: Object.fromEntries(paths.map((path) => [path, null])),
  });
  const outputs = call.outputs as Readonly<Record<string, HostTensor>>;
  return {
    splits,
    views: Object.fromEntries(paths.map((path) => [path, outputs[path]!.data])),
    run: () => call.run(),
  };
}
