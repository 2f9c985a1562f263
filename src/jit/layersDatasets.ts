/**
 * @file Layers models over datasets of tf.data. tfjs's own loops run, and ask for the losses of a batch in a call that can't
 * wait: the compiled step runs before, in a callback of the batch or where the loop waits for the batch itself.
 */
import { type HostTensor, type Tensor, tf } from '../compiler/index.js';
import { hostsOf, listOf } from './batches.js';
import { type ModelPrograms, type TrainableModel, withMethods } from './layersPrograms.js';

/** Members of tf.data's iterators in use here. */
interface Batches {
  next(): Promise<{ readonly value: any; readonly done: boolean }>;
}

/** Members of tf.data's datasets in use here. */
export interface BatchDataset {
  readonly size?: number;
  iterator(): Promise<Batches>;
}

/** Tensors of a dataset in the order of the model's names; undefined for values that tfjs's loop refuses. */
function inOrder(names: readonly string[], values: unknown): Tensor[] | undefined {
  if (values instanceof tf.Tensor) return [values];
  if (typeof values !== 'object' || values === null) return undefined;
  const found = Array.isArray(values)
    ? values
    : names.map((name) => (values as Record<string, unknown>)[name]);
  return found.every((value) => value instanceof tf.Tensor) ? found : undefined;
}

/** The inputs and targets of a batch. */
function tensorsOf(
  { inputNames, outputNames }: TrainableModel,
  value: any,
): [Tensor[], Tensor[]] | undefined {
  const [xs, ys] = [inOrder(inputNames, value?.xs), inOrder(outputNames, value?.ys)];
  return xs && ys && [xs, ys];
}

/** The dataset, with `see` called on each batch before the loop has it. */
function observed(dataset: BatchDataset | Batches, see: (value: any) => void | Promise<void>): object {
  const observe = (batches: Batches): Batches => ({
    next: async () => {
      const result = await batches.next();
      await see(result.value);
      return result;
    },
  });
  if ('next' in dataset) return observe(dataset);
  return { size: dataset.size, iterator: async () => observe(await dataset.iterator()) };
}

const scalars = (losses: readonly HostTensor[]): Tensor[] => losses.map(({ data }) => tf.scalar(data[0]!));

/** As `model.evaluateDataset`. */
export function evaluateDataset(
  core: TrainableModel,
  programs: ModelPrograms,
  dataset: BatchDataset | Batches,
  args: object = {},
): Promise<Tensor | Tensor[]> {
  let losses: readonly HostTensor[] = [];
  const test = async (value: any): Promise<void> => {
    const tensors = tensorsOf(core, value);
    if (tensors !== undefined) losses = await (await programs.test())(await hostsOf(tensors.flat()));
  };
  const { evaluateDataset: original } = Object.getPrototypeOf(core) as TrainableModel;
  const methods = { makeTestFunction: () => {}, testFunction: () => scalars(losses) };
  return withMethods(core, methods, () => original.call(core, observed(dataset, test), args));
}

const DEFAULT_VALIDATION_BATCH = 32;

/** A callback of tfjs's loops that does nothing; they take any object with its methods. */
export const IDLE = Object.fromEntries(
  ['TrainBegin', 'TrainEnd', 'EpochBegin', 'EpochEnd', 'BatchBegin', 'BatchEnd']
    .map((name) => `on${name}`)
    .concat('setParams', 'setModel')
    .map((name) => [name, async () => {}]),
);

/** A user's callbacks, and after them `step`, which runs a batch. tfjs takes instances or plain objects, and no mixture. */
function withStep(callbacks: unknown, step: { onBatchBegin(batch: number): Promise<void> }): unknown[] {
  const given = callbacks === undefined || callbacks === null ? [] : listOf(callbacks as object);
  const [first] = given as readonly { setParams?: unknown; setModel?: unknown }[];
  if (first?.setParams === undefined || first.setModel === undefined)
    return [...given, { ...step, nextFrameFunc: async () => {} }];
  return [...given, { ...IDLE, ...step }];
}

/**
 * As `model.fitDataset`.
 *
 * @param evaluate computes losses of arrays.
 */
export function fitDataset(
  core: TrainableModel,
  programs: ModelPrograms,
  evaluate: (x: unknown, y: unknown, args: { batchSize: number }) => Promise<Tensor | Tensor[]>,
  dataset: BatchDataset,
  args: any,
): Promise<any> {
  const { callbacks, classWeight, validationData, validationBatchSize, ...rest } = args ?? {};
  let value: unknown;
  let losses: readonly HostTensor[] = [];
  const onBatchBegin = async (): Promise<void> => {
    const [xs, ys] = tensorsOf(core, value)!;
    // Targets as they are: tfjs's loop over arrays would give them another rank.
    const asGiven = { outputNames: core.outputNames, standardizeUserDataXY: () => [xs, ys] };
    const [, , weights] = await core.standardizeUserData.call(asGiven, xs, ys, null, classWeight);
    const arrays = await hostsOf([...xs, ...ys, ...(weights ?? [])]);
    tf.dispose((weights ?? []) as Tensor[]);
    losses = await (await programs.train())(arrays);
  };
  const isDataset = typeof validationData?.iterator === 'function';
  const hasArrays = Array.isArray(validationData) && validationData.length === 2;
  /** A placeholder for arrays, which the loop would read without waiting. */
  const arrays = { iterator: () => {} };
  const evaluated = (data: unknown, options: object): Promise<Tensor | Tensor[]> =>
    data === arrays
      ? evaluate(validationData[0], validationData[1], {
          batchSize: validationBatchSize ?? DEFAULT_VALIDATION_BATCH,
        })
      : evaluateDataset(core, programs, data as BatchDataset, options);
  const keep = (next: unknown): void => {
    value = next;
  };
  const { fitDataset: original } = Object.getPrototypeOf(core) as TrainableModel;
  const methods = { makeTrainFunction: () => () => scalars(losses), evaluateDataset: evaluated };
  const { validationBatches, ...others } = rest;
  return withMethods(core, methods, () =>
    original.call(core, observed(dataset, keep), {
      ...others,
      ...(isDataset && { validationBatches }),
      validationData: hasArrays ? arrays : validationData,
      callbacks: withStep(callbacks, { onBatchBegin }),
    }),
  );
}
