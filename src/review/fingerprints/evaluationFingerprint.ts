/** @file Fingerprint of the metrics that the host computes of whole evaluations, by values that are made up. */
import {
  flattenTree,
  type HostTensor,
  isSpec,
  newHostArray,
  type Program,
  sizeOf,
  type TensorSpec,
  type Tree,
} from '../../compiler/index.js';
import type { BatchSpecs } from '../../inputs/index.js';
import type { BaseEvalMetric, SingleTask, WeightedValues } from '../../tasks/index.js';
import { digest, reasonOf } from './digests.js';

/** Batches of an evaluation. */
const BATCHES = 3;
/** Elements of a tensor that are drawn anew; those behind are the same again. */
const PERIOD = 8191;

/** Ranges of made-up numbers: shares, as probabilities and weights are, and logits. */
const RANGES = [
  [0, 1],
  [-4, 4],
] as const;

/** A number from 0 to 1 that is the same in every version; one in eight is 0. */
function madeUp(i: number, seed: number): number {
  const mixed = Math.imul(Math.imul((i % PERIOD) + 1, 0x9e3779b1) ^ (seed * 0x85ebca6b), 0xc2b2ae35) >>> 8;
  return mixed % 8 === 0 ? 0 : mixed / 2 ** 24;
}

/** Made-up values: ids below `classes`, truths, numbers of a range. */
function tensorOf(
  { shape, dtype }: TensorSpec,
  seed: number,
  classes: number,
  [low, high]: (typeof RANGES)[number],
): HostTensor {
  const data = newHostArray(dtype, sizeOf(shape));
  for (let i = 0; i < data.length; i++) {
    const share = madeUp(i, seed);
    if (dtype === 'float32') data[i] = low + share * (high - low);
    else data[i] = Math.floor(share * (dtype === 'bool' ? 2 : classes));
  }
  return { shape, dtype, data } as HostTensor;
}

/** The specs of all that an evaluation may read: the outputs of its step, and the arrays of its batches. */
function specsOf({ graph, outputPaths }: Program, batch: BatchSpecs): Map<string, TensorSpec> {
  const arrays = flattenTree(batch as Tree<TensorSpec>, isSpec).map(
    ({ path, value }) => [path, value] as const,
  );
  const outputs = graph.outputs.flatMap((output, i) => {
    const name = /^examples\.(.*)/.exec(outputPaths[i]!)?.[1];
    return name === undefined ? [] : [[name, output as TensorSpec] as const];
  });
  return new Map([...arrays, ...outputs]);
}

/** A metric of an evaluation of made-up batches. */
function resultOf(
  metric: BaseEvalMetric,
  specs: ReadonlyMap<string, TensorSpec>,
  range: (typeof RANGES)[number],
  { names, means }: { readonly names: readonly string[] | null; readonly means: WeightedValues },
): unknown {
  const read = metric.tensorNames().map((name) => [name, specs.get(name)!] as const);
  const many = 1 << 20;
  const widths = read.map(([, { shape, dtype }]) =>
    dtype === 'float32' && shape.length > 1 ? shape.at(-1)! : 0,
  );
  const classes = Math.min(...widths.filter((width) => width > 1), many);
  const accumulation = metric.accumulate(() => names);
  for (let batch = 0; batch < BATCHES; batch++) {
    const tensors = read.map(([name, spec], i) => [
      name,
      tensorOf(spec, 7 * batch + i + 1, classes === many ? 2 : classes, range),
    ]);
    accumulation.add(Object.fromEntries(tensors));
  }
  return accumulation.result(means);
}

/**
 * Digest of a task's metrics of whole evaluations.
 *
 * @throws the error of a metric that fails whatever it reads
 */
export function hostMetricsDigest(task: SingleTask, program: Program, batch: BatchSpecs): string {
  const specs = specsOf(program, batch);
  const metrics = program.outputPaths.flatMap((path) => /^metrics\.(.*)\.value$/.exec(path)?.[1] ?? []);
  const means = Object.fromEntries(metrics.map((name, i) => [name, { value: 0.7 + i, weight: 3 }]));
  return digest(
    Object.entries(task.hp.evalMetrics).map(([name, metric]) => {
      const tries = RANGES.flatMap((range) => [null, ['no', 'yes']].map((names) => ({ range, names })));
      const results = tries.map(({ range, names }) => {
        try {
          return { result: resultOf(metric, specs, range, { names, means }) };
        } catch (error) {
          return { error, reason: reasonOf(error) };
        }
      });
      const [first] = results;
      if (results.every((each) => 'error' in each)) throw first!.error;
      return [name, results.map(({ result, reason }) => reason ?? textOf(result))];
    }),
  );
}

/** A result as text, to the bit; the samples of pictures are numbers, too. */
const textOf = (result: unknown): string =>
  JSON.stringify(result, (_, value: unknown) => {
    if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
    return ArrayBuffer.isView(value) ? digest(value) : value;
  });
