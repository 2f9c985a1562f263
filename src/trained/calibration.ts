/** @file Calibration of weights in few bits: what they are multiplied by, over batches of a run's data for training. */
import {
  compileProgram,
  type FactorProduct,
  factorProducts,
  layoutSpecs,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import { arraysOf, nextBatch, openInput, withRecorded } from '../inputs/index.js';
import { type FactorSums, listLayers } from '../layers/index.js';
import { type FlatParams, recordedData, TRAIN, trainingDataset } from '../programs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { predictions } from './predictions.js';
import { RequestError } from './requestError.js';
import type { RunDocument } from './runDocument.js';

/** Factors whose products with each other are summed; those of longer sums are taken by so many. */
const BLOCK = 1024;
/** Elements of sums at a time: 384 MB with those of a batch. */
const ELEMENTS = 1 << 25;

/** What paths of a program's inputs have before those of variables. */
const PARAMS = /^params\./;

/** A network whose weights are codes, and the data that it is calibrated by. */
export interface CalibratedNetwork {
  /** Directory and record of the run that it is made of. */
  readonly directory: string;
  readonly document: RunDocument;
  readonly task: SingleTask;
  /** Codes, scales and the other variables. */
  readonly params: FlatParams;
}

/** Sums of a weight, by the number of its matrix in a stack of repetitions. */
export type WeightSums = readonly FactorSums[];

/** Paths in portions whose sums have at most `ELEMENTS`, or one path. */
function portions(paths: readonly string[], elementsOf: (path: string) => number): string[][] {
  const found: string[][] = [];
  let elements = Number.POSITIVE_INFINITY;
  for (const path of paths) {
    elements += elementsOf(path);
    if (elements > ELEMENTS) {
      found.push([]);
      elements = elementsOf(path);
    }
    found.at(-1)!.push(path);
  }
  return found;
}

/** Elements of the sums of each weight in codes, by path. */
function sumSizes(task: SingleTask): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const { codeForms, variables } of listLayers(task.model))
    for (const [name, { depth }] of codeForms) {
      const { path, repeatPrefix } = variables.get(name)!;
      sizes.set(path, sizeOf(repeatPrefix) * depth * Math.min(depth, BLOCK));
    }
  return sizes;
}

/** Sums of all products of a weight's matrices. */
function byWeight(
  products: readonly FactorProduct[],
  sums: readonly Float64Array[],
): Map<string, WeightSums> {
  const found = new Map<string, { block: number; sums: Float64Array[] }[]>();
  for (const [i, { path, part, first }] of products.entries()) {
    const parts = found.get(path) ?? [];
    found.set(path, parts);
    parts[part] ??= { block: BLOCK, sums: [] };
    const known = parts[part]!.sums[first / BLOCK];
    if (known === undefined) parts[part]!.sums[first / BLOCK] = sums[i]!;
    else addTo(known, sums[i]!);
  }
  return found;
}

function addTo(sum: Float64Array, values: Float64Array | Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i]! += values[i]!;
}

/** Sums of the weights of these paths over the first batches. */
async function sumsOver(
  { directory, document, task, params }: CalibratedNetwork,
  paths: ReadonlySet<string>,
  batches: number,
): Promise<Map<string, WeightSums>> {
  const { moduleUrl } = document;
  const dataset = withRecorded(trainingDataset(document), recordedData(directory, TRAIN) ?? {});
  const input = openInput(dataset, { modules: moduleUrl === '' ? [] : [moduleUrl] });
  try {
    input.reset();
    let batch = await nextBatch(input);
    if (batch === undefined) throw new RequestError(`${document.name}: its data for training has no batch.`);
    const specs = Object.fromEntries(
      [...arraysOf(batch)].map(([path, { shape, dtype }]) => [path, { shape, dtype }]),
    );
    const { program, products } = factorProducts(
      predictions(task.model),
      { params: layoutSpecs(params.layout), batch: specs } as Tree<TensorSpec>,
      (path) => paths.has(path.replace(PARAMS, '')),
      BLOCK,
    );
    if (products.length === 0) return new Map();
    const executable = await compileProgram(program, { name: 'calibration', frozen: ['params'] });
    const sums = products.map(({ size }) => new Float64Array(size * size));
    for (let count = 0; batch !== undefined && count < batches; count++) {
      const arrays = Object.fromEntries([...arraysOf(batch)].map(([path, { data }]) => [path, data]));
      const call = executable.bind({ inputs: { params: params.views, batch: arrays } as never });
      const results = (await call.run()) as unknown as { data: Float32Array }[];
      for (const [i, { data }] of results.entries()) addTo(sums[i]!, data);
      batch = await nextBatch(input);
    }
    await executable.dispose();
    return byWeight(
      products.map((product) => ({ ...product, path: product.path.replace(PARAMS, '') })),
      sums,
    );
  } finally {
    await input.close();
  }
}

/**
 * Runs a network in evaluation mode over the first batches of the data for training, and tells of each weight in codes what its
 * products have as their other factors. Weights come in portions, each over all batches, so that memory is bounded; codes that
 * are replaced between two portions are those that the next one runs with.
 *
 * @param batches at most so many.
 * @returns sums by path; weights that no product reads are absent.
 * @throws ConfigError for a run without data for training; RequestError where that has no batch
 */
export async function* calibrations(
  network: CalibratedNetwork,
  batches: number,
): AsyncGenerator<ReadonlyMap<string, WeightSums>> {
  const sizes = sumSizes(network.task);
  for (const portion of portions([...sizes.keys()], (path) => sizes.get(path)!))
    yield await sumsOver(network, new Set(portion), batches);
}
