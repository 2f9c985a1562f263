/** @file Training step that several ranks take together: gradients of a rank's rows, their sum over ranks, the update. */

import type { Ranks } from '../../collectives/index.js';
import {
  BFLOAT16_PRODUCTS,
  type Bfloat16Products,
  chooseBfloat16,
  compile,
  type FlatLayout,
  flatLayout,
  flattenTree,
  flatViews,
  type HostTensor,
  isSpec,
  kernelRates,
  mapTree,
  mayBeNative,
  nativeTools,
  productsBy,
  sizeOf,
  splitKeyHost,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../../compiler/index.js';
import { type Batch, specsOf } from '../../inputs/index.js';
import type { FlatUpdater, RowBuffers } from '../../learners/index.js';
import { compileOptions, type EngineOptions, type JobOptions, type JobRanks } from '../../runs/index.js';
import {
  addTables,
  type GradientSums,
  gradientStep,
  meanStep,
  partsOfRank,
  type RowGradients,
  type SingleTask,
  treeReduce,
} from '../../tasks/index.js';
import { BatchBuffers } from '../batchBuffers.js';
import {
  type BoundStep,
  isTraced,
  ownMemory,
  type RowSpecs,
  rowBuffers,
  stepNumber,
  trainSpecs,
} from '../stepCalls.js';
import { partsBeside, type TrainMemory } from '../taskState.js';
import { agree } from './agreement.js';

/**
 * Options that rank 0 decides for all: each machine would choose by its own table, and sums by other instructions have other
 * last bits.
 */
export async function optionsOfRanks(options: JobOptions, ranks: Ranks): Promise<JobOptions> {
  const { rank, count } = ranks;
  const numbers = new Uint8Array(count);
  const own = mayBeNative(options) ? await productsOf(options, rank) : undefined;
  // 0: no choice, as without a C compiler.
  numbers[rank] = own === undefined ? 0 : 1 + BFLOAT16_PRODUCTS.indexOf(own);
  await ranks.allGather(numbers);
  const [chosen, ...others] = Array.from(numbers, (number) => BFLOAT16_PRODUCTS[number - 1]);
  return { ...options, bfloat16Products: chosen && sharedProducts(chosen, others) };
}

/** Rank 0's choice; of another rank the products that it makes where none by float32 instructions are asked for. */
async function productsOf(
  { bfloat16Products }: EngineOptions,
  rank: number,
): Promise<Bfloat16Products | undefined> {
  const tools = await nativeTools();
  if (tools === null || rank > 0) return tools === null ? undefined : productsBy(tools.kernels, 'AMX tiles');
  return productsBy(tools.kernels, bfloat16Products ?? chooseBfloat16((await kernelRates())!));
}

/** The products that all ranks make: the chosen ones, or, where another rank has no such instructions, those of float32. */
export const sharedProducts = (
  chosen: Bfloat16Products,
  others: readonly (Bfloat16Products | undefined)[],
): Bfloat16Products => (others.every((own) => own === chosen) ? chosen : 'float32 instructions');

/** Structure of tensors by name. */
type Specs = Readonly<Record<string, Tree<TensorSpec>>>;

/** Results of `gradientStep`. */
interface GradientSpecs {
  readonly sums: Specs;
  readonly rowSums: RowSpecs;
  readonly media: Specs;
}

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
  ranks: JobRanks,
): Promise<BoundStep> {
  const { rank, count } = ranks;
  const { numSubBatches, numTrainSteps, learner } = task.hp.train.hp;
  const parts = partsOfRank(numSubBatches, count);
  const buffers = new BatchBuffers(inputName, batch);
  const { prngKey: _, ...given } = trainSpecs(task, state, { specs: specsOf(batch) });
  const gradients = await compile(
    gradientStep(task, { rows: isTraced(options) }),
    { ...given, prngKeys: { shape: [parts, 2], dtype: 'int32' } },
    compileOptions(options, 'gradient_step', numTrainSteps),
  );
  const { sums: specs, rowSums, media } = gradients.outputs as unknown as GradientSpecs;
  const { dense, grads, placesOf } = sumBuffer(state.changing, specs, rowSums);
  const { rows, blocks } = rowBlocks(rowSums, count);
  const { layout, params, slots } = state;
  const means = meanStep(task);
  let updater: FlatUpdater | undefined;
  let rowGrads: Record<string, RowBuffers> = {};
  const [keys, steps] = [new Int32Array(2), new Int32Array(1)];
  const hasNoise = learner.hp.stochasticGradient?.hasNoise === true;
  type Summed = { sums: GradientSums; ofRanks: readonly RowGradients[]; prngKey?: Tensor };
  const update = await compile(
    ({ sums, ofRanks, prngKey }: Summed) => means(sums, treeReduce(ofRanks, addTables), prngKey),
    {
      ...{ sums: specs, ofRanks: blocks.map(() => rowSums) },
      ...(hasNoise && { prngKey: { shape: [2], dtype: 'int32' } }),
    } as Record<string, Tree<TensorSpec>>,
    {
      ...compileOptions(options, 'update_step', numTrainSteps),
      following: (outputs) => {
        rowGrads = rowBuffers((outputs as unknown as { rowGrads: RowSpecs }).rowGrads);
        updater = learner.createUpdater(layout, { params, grads, slots, rowGrads });
        return updater.following;
      },
    },
  );
  const prngKeys = new Int32Array(2 * parts);
  const gradientCall = gradients.bind({
    inputs: { params: state.views, batch: buffers.arrays, prngKeys, ...stepNumber(task, steps) },
    outputs: { sums: placesOf(specs), rowSums: blocks[rank]!, media: ownMemory(media) },
  });
  const [{ grads: meanGrads, updatedVars, rowGrads: _rows, ...told }] = update.outputs as unknown as [
    Record<'grads' | 'updatedVars' | 'rowGrads', Specs> & Specs,
  ];
  const updateCall = update.bind({
    inputs: [
      { sums: placesOf(specs), ofRanks: blocks, ...(hasNoise && { prngKey: keys }) },
      updater!.inputs as unknown as Tree<Float32Array>,
    ],
    outputs: [
      {
        ...ownMemory(told),
        ...placesOf({ grads: meanGrads, updatedVars }),
        rowGrads,
      },
      updater!.outputs,
    ],
  });
  const { media: ofRank } = gradientCall.outputs as Record<string, Tree<HostTensor>>;
  const [results, updated] = updateCall.outputs as unknown as [object, Tree<HostTensor>];
  const outputs = [{ ...results, media: ofRank }, updated] as Tree<HostTensor>;
  const run = async (): Promise<Tree<HostTensor>> => {
    const ofAll = splitKeyHost(keys, numSubBatches);
    prngKeys.set(ofAll.subarray(rank * prngKeys.length, (rank + 1) * prngKeys.length));
    await agree(ranks, () => gradientCall.run());
    for (const sums of dense) await ranks.allReduce(sums);
    if (rows.length > 0) await ranks.allGather(rows);
    await updateCall.run();
    return outputs;
  };
  const call = { outputs, problemOf: gradientCall.problemOf, run };
  return { executable: gradients, call, updater: updater!, buffers, keys, steps, mostSteps: 1 };
}

/** Gradients that are rows and indices in memory that ranks exchange: a block for each rank, all alike. */
function rowBlocks(
  specs: RowSpecs,
  count: number,
): { readonly rows: Uint8Array; readonly blocks: readonly Record<string, RowBuffers>[] } {
  const tables = Object.entries(specs);
  const elements = tables.reduce(
    (sum, [, { indices, rows }]) => sum + sizeOf(indices.shape) + sizeOf(rows.shape),
    0,
  );
  const { buffer } = new Float32Array(count * elements);
  let end = 0;
  const next = ({ shape }: TensorSpec): [ArrayBuffer, number, number] => {
    const begin = end;
    end += sizeOf(shape) * Float32Array.BYTES_PER_ELEMENT;
    return [buffer, begin, sizeOf(shape)];
  };
  const block = () =>
    Object.fromEntries(
      tables.map(([path, { indices, rows }]) => [
        path,
        { indices: new Int32Array(...next(indices)), rows: new Float32Array(...next(rows)) },
      ]),
    );
  return { rows: new Uint8Array(buffer), blocks: Array.from({ length: count }, block) };
}

/**
 * One buffer of all sums: gradients and replaced variables as they lie in the state's, then the others. The places of tables
 * whose gradients are rows are never touched.
 */
function sumBuffer(
  { entries, size }: FlatLayout,
  specs: Specs,
  tables: RowSpecs,
): {
  /** The parts between those places. */
  readonly dense: readonly Float32Array[];
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
  const dense = partsBeside(new Set(Object.keys(tables)), layout, sums);
  return { dense, grads: sums.subarray(0, size), placesOf };
}
