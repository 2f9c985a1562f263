/** @file Changes of a model's predictions by weights in few bits, over a run's data for evaluations. */
import { compile, layoutSpecs, type Tensor, type TensorSpec, type Tree, tf } from '../compiler/index.js';
import { arraysOf, type Batch, nextBatch, openInput } from '../inputs/index.js';
import { recordedData, TRAIN } from '../programs/index.js';
import { predictions } from './predictions.js';
import { exampleDataset } from './runExamples.js';
import type { TrainedRun } from './trainedRun.js';

/** Means over tokens, or examples. */
export interface QuantizedQuality {
  /** Labels that were predicted. */
  readonly labels: number;
  /** Kullback-Leibler divergence of the probabilities of the second model from those of the first, in nats. */
  readonly divergence: number;
  /** exp of the mean cross entropy of the labels. */
  readonly perplexity: readonly [before: number, after: number];
  /** Share of the likeliest classes that are the same. */
  readonly agreement: number;
  /** Root of the mean squared difference of logits, and of the logits from their mean in each row. */
  readonly error: number;
  readonly spread: number;
}

const sum = (x: Tensor): Tensor => tf.sum(x) as Tensor;

/** Sums over the labels of a batch that count. */
function comparison(before: Tensor, after: Tensor, labels: Tensor, weights: Tensor): Record<string, Tensor> {
  const counts = tf.greater(weights, 0);
  const counted = (x: Tensor): Tensor => sum(tf.where(counts, x, tf.zerosLike(x)));
  const [p, q] = [tf.logSoftmax(before), tf.logSoftmax(after)] as [Tensor, Tensor];
  const chosen = tf.oneHot(labels as tf.Tensor1D, before.shape.at(-1)!, 1, 0, 'float32');
  const ofLabel = (logs: Tensor): Tensor => tf.neg(tf.sum(tf.mul(logs, chosen), -1));
  const isSame = tf.equal(tf.argMax(before, -1), tf.argMax(after, -1));
  const centred = tf.sub(before, tf.mean(before, -1, true));
  return {
    labels: sum(tf.cast(counts, 'float32')),
    divergence: counted(tf.sum(tf.mul(tf.exp(p), tf.sub(p, q)), -1)),
    before: counted(ofLabel(p)),
    after: counted(ofLabel(q)),
    agreement: counted(tf.cast(isSame, 'float32')),
    error: counted(tf.mean(tf.squaredDifference(before, after), -1)),
    spread: counted(tf.mean(tf.square(centred), -1)),
  };
}

/** Whether a batch has what a comparison needs. */
const fits = (specs: Readonly<Record<string, TensorSpec>>): boolean => specs.labels?.dtype === 'int32';

/**
 * Compares the logits of two runs of the same model over the first batches of the data that its evaluations read.
 *
 * @param directory of the first run. @param batches at most so many.
 * @returns null for models without logits of labels.
 */
export async function quantizedQuality(
  directory: string,
  [before, after]: readonly [TrainedRun, TrainedRun],
  batches: number,
): Promise<QuantizedQuality | null> {
  const recorded = recordedData(directory, TRAIN) ?? {};
  if (before.document.datasets.length === 0) return null;
  const { moduleUrl } = before.document;
  const input = openInput(exampleDataset({ document: before.document }, recorded), {
    modules: moduleUrl === '' ? [] : [moduleUrl],
  });
  try {
    input.reset();
    const first = await nextBatch(input);
    if (first === undefined) return null;
    const specs = specsIn(first);
    if (!fits(specs)) return null;
    const f = ({ params, batch }: { params: Record<string, Tensor>[]; batch: Record<string, Tensor> }) => {
      const logits = [before, after].map(({ task }, i) => {
        const found = predictions(task.model, {}, ['logits'])({ params: params[i]!, batch });
        return (found as Record<string, Tensor>).logits;
      });
      const { labels, weights = tf.onesLike(tf.cast(labels!, 'float32')) } = batch;
      const isMatch = logits.every((each) => each !== undefined && each.rank === labels!.rank + 1);
      return isMatch ? comparison(logits[0]!, logits[1]!, labels!, weights as Tensor) : {};
    };
    const executable = await compile(
      f as (inputs: any) => Tree<Tensor>,
      {
        params: [before, after].map(({ params }) => layoutSpecs(params.layout)),
        batch: specs,
      } as Tree<TensorSpec>,
      { frozen: ['params'] },
    );
    const sums: Record<string, number> = {};
    let count = 0;
    for (let batch: Batch | undefined = first; batch && count < batches; count++) {
      const arrays = Object.fromEntries([...arraysOf(batch)].map(([path, { data }]) => [path, data]));
      const call = executable.bind({
        inputs: { params: [before.params.views, after.params.views], batch: arrays } as never,
      });
      const results = (await call.run()) as Record<string, { data: ArrayLike<number> }>;
      for (const [name, { data }] of Object.entries(results)) sums[name] = (sums[name] ?? 0) + data[0]!;
      batch = await nextBatch(input);
    }
    await executable.dispose();
    if (sums.labels === undefined || sums.labels === 0) return null;
    return means(sums as Record<string, number> & { labels: number });
  } finally {
    await input.close();
  }
}

function means(sums: Readonly<Record<string, number>>): QuantizedQuality {
  const labels = sums.labels!;
  const mean = (name: string): number => sums[name]! / labels;
  return {
    labels,
    divergence: mean('divergence'),
    perplexity: [Math.exp(mean('before')), Math.exp(mean('after'))],
    agreement: mean('agreement'),
    error: Math.sqrt(mean('error')),
    spread: Math.sqrt(mean('spread')),
  };
}

const specsIn = (batch: Batch): Record<string, TensorSpec> =>
  Object.fromEntries([...arraysOf(batch)].map(([path, { shape, dtype }]) => [path, { shape, dtype }]));
