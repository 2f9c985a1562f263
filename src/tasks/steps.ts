/** @file Step functions, which programs compile: training, evaluation, forward pass. */
import {
  type HostTensor,
  NoGradientError,
  ops,
  type Tensor,
  type Tree,
  tf,
  valueAndGrad,
} from '../compiler/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import { runInContext, type TapOutputs, type Taps } from '../layers/index.js';
import type { TensorBatch, WeightedScalar, WeightedScalars } from '../models/index.js';
import type { WeightedValues } from './metrics.js';
import type { SingleTask } from './singleTask.js';
import { overParts, type PartResult, splitRows } from './subBatches.js';

/** Inputs of a training step. */
export interface TrainInputs {
  /** Every variable by path. */
  readonly params: Readonly<Record<string, Tensor>>;
  readonly batch: TensorBatch;
  /** int32 [2], from (seed, step). */
  readonly prngKey: Tensor;
}

/** Inputs of an evaluation step. */
export type EvalInputs = Omit<TrainInputs, 'prngKey'>;

type MetricTensors = Record<string, { value: Tensor; weight: Tensor }>;

/** Outputs of a training step: scalars, but for gradients, which have the shapes of the trainable variables. */
export interface TrainOutputs {
  readonly loss: Tensor;
  readonly metrics: MetricTensors;
  /** Summaries of layers (`addSummary`). */
  readonly summaries: Record<string, Tensor>;
  /** Images of layers (`addImageSummary`). */
  readonly images: Record<string, Tensor>;
  /** Values of the non-trainable variables after the forward pass, by path. */
  readonly updatedVars: Record<string, Tensor>;
  readonly grads: Record<string, Tensor>;
  readonly [key: string]: Tree<Tensor>;
}

/** @throws ConfigError for a metric that is no scalar, of which only the first number would be read */
function metricTensors(metrics: WeightedScalars): MetricTensors {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, [value, weight]]) => {
      const [wrong] = [value, weight].filter(({ size }) => size !== 1);
      if (wrong !== undefined)
        throw new ConfigError(
          `The model's metric '${name}': expected a value and a weight that are scalars, got shape [${wrong.shape.join(', ')}]. ` +
            "Tables and pictures are metrics of whole evaluations: see the task's evalMetrics.",
        );
      return [name, { value, weight }];
    }),
  );
}

/** The weights of a batch's rows, where it has any, by the name that the context gives them. */
function rowWeightsOf({ weights }: TensorBatch): { readonly rowWeights?: Tensor } {
  // An input may nest arrays under this name.
  return weights instanceof tf.Tensor ? { rowWeights: weights } : {};
}

/**
 * The gradients of a whole batch as a pure function.
 *
 * @param taps receives activations and gradients.
 */
export function batchStep(task: SingleTask, taps?: Taps): (inputs: TrainInputs) => TrainOutputs {
  const step = gradientStep(task, ([value]) => value, taps);
  return (inputs) => {
    const { weight: _, ...outputs } = step(inputs);
    return outputs as TrainOutputs;
  };
}

/**
 * The training step of a task as a pure function: the gradients of a batch, or of its sub-batches one after the other
 * (`numSubBatches`), so that the activations of one of them are in memory at a time.
 */
export function trainStep(task: SingleTask): (inputs: TrainInputs) => TrainOutputs {
  const { numSubBatches: count } = task.hp.train.hp;
  if (count === 1) return batchStep(task);
  // The numerator of the loss, so that gradients add up as numerators do.
  const step = gradientStep(task, ([value, weight]) => weighted(value, ops.stopGradient(weight)));
  return ({ params, batch, prngKey }) => {
    const parts = { batch: splitRows(batch, count), prngKey: tf.stack(ops.splitKey(prngKey, count)) };
    const { sums, rows } = overParts((part) => numerators(step({ params, ...part })), parts, 0, count);
    const { loss, weight, metrics, summaries, updatedVars, grads } = sums as unknown as Numerators;
    const mean = (sum: Tensor): Tensor => tf.mul(sum, 1 / count);
    const overWeight = over(weight);
    return {
      loss: overWeight(loss),
      metrics: mapRecord(metrics, (each) => ({ value: over(each.weight)(each.value), weight: each.weight })),
      summaries: mapRecord(summaries, mean),
      images: rows as Record<string, Tensor>,
      updatedVars: mapRecord(updatedVars, mean),
      grads: mapRecord(grads, overWeight),
    };
  };
}

/** Sums over sub-batches: of values times weights, and of weights. */
type Numerators = Pick<TrainOutputs, 'loss' | 'metrics' | 'summaries' | 'updatedVars' | 'grads'> & {
  readonly weight: Tensor;
};

function numerators({ images, metrics, ...sums }: TrainOutputs & { readonly weight: Tensor }): PartResult {
  const products = mapRecord(metrics, ({ value, weight }) => ({
    value: weighted(tf.cast(value, 'float32'), tf.cast(weight, 'float32')),
    weight: tf.cast(weight, 'float32'),
  }));
  return { sums: { ...sums, metrics: products } as Tree<Tensor>, rows: images };
}

/** value · weight, 0 where the weight is 0, whatever the value. */
const weighted = (value: Tensor, weight: Tensor): Tensor =>
  tf.where(tf.greater(weight, 0), tf.mul(value, weight), tf.zerosLike(value));

/** Division by a sum of weights; 0 where there are none. */
function over(weight: Tensor): (sum: Tensor) => Tensor {
  const factor = tf.where(tf.greater(weight, 0), tf.reciprocal(weight), tf.zerosLike(weight));
  return (sum) => tf.mul(sum, factor);
}

const mapRecord = <T, U>(record: Readonly<Record<string, T>>, f: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value)]));

/**
 * Gradients of a batch.
 *
 * @param minimized what the gradients are of, by the value and the weight of the loss.
 */
function gradientStep(
  task: SingleTask,
  minimized: (loss: WeightedScalar) => Tensor,
  taps?: Taps,
): (inputs: TrainInputs) => TrainOutputs & { readonly weight: Tensor } {
  const [trainable, nonTrainable] = [task.trainablePaths(), task.nonTrainablePaths()];
  return ({ params, batch, prngKey }) => {
    const moved = Object.fromEntries(trainable.map((path) => [path, params[path]!]));
    const forward = (moving: Record<string, Tensor>) => {
      const summaries: Record<string, Tensor> = {};
      const images: Record<string, Tensor> = {};
      const updatedVars = Object.fromEntries(nonTrainable.map((path) => [path, params[path]!]));
      const theta = { ...params, ...moving };
      const context = { theta, prngKey, ...rowWeightsOf(batch), summaries, images, updatedVars, taps };
      const [metrics] = runInContext(context, () => task.model.fprop(batch));
      const loss = task.lossOf(metrics);
      const aux = { metrics: metricTensors(metrics), summaries, images, updatedVars, weight: loss[1] };
      return { value: minimized(loss), aux };
    };
    try {
      const { value, aux, grads } = valueAndGrad(forward, moved);
      return { loss: value, ...aux, grads };
    } catch (error) {
      throw error instanceof NoGradientError ? unusedError(task, error) : error;
    }
  };
}

/** What taps read in a training step, of the whole batch. @param newTaps makes the taps of a pass */
export function tapStep(
  task: SingleTask,
  newTaps: () => Taps,
): (inputs: TrainInputs) => Record<string, TapOutputs> {
  return (inputs) => {
    const taps = newTaps();
    batchStep(task, taps)(inputs);
    return taps.outputs();
  };
}

/** The error of trainable variables that the loss does not depend on. */
function unusedError({ hp }: SingleTask, cause: NoGradientError): ConfigError {
  const { lossName } = hp.train.hp.learner.hp;
  const path = 'task.train.learner.bpropVariableExclusion';
  const names = cause.paths.slice(0, 3).map((path) => `'${path}'`);
  const more = cause.paths.length - names.length;
  const list = new Intl.ListFormat('en').format(more > 0 ? [...names, `${more} more`] : names);
  const [noun, them] = cause.paths.length === 1 ? ['variable', 'it'] : ['variables', 'them'];
  return new ConfigError(
    `The loss '${lossName}' does not depend on the ${noun} ${list}: use ${them} in the model's loss, or leave ${them} ` +
      `out of training with ${path}.`,
    { path, cause },
  );
}

/**
 * The evaluation step of a task as a pure function, without dropout: the model's metrics, those of its per-example
 * tensors that the task's `evalMetrics` read, with `scores` where examples have numbers, and images of layers.
 *
 * @throws ConfigError for a tensor that neither the model nor the batch has.
 */
export function evalStep(
  task: SingleTask,
): (
  inputs: EvalInputs,
) => Record<'examples' | 'images', Record<string, Tensor>> & { metrics: MetricTensors } {
  return ({ params, batch }) => {
    const images: Record<string, Tensor> = {};
    const [metrics, perExample] = runInContext({ theta: params, doEval: true, images }, () =>
      task.model.fprop(batch),
    );
    const examples: Record<string, Tensor> = {};
    if (batch.exampleIds !== undefined && perExample.scores !== undefined)
      examples.scores = perExample.scores;
    for (const [metric, config] of Object.entries(task.hp.evalMetrics)) {
      for (const name of config.tensorNames()) {
        const tensor = perExample[name];
        if (tensor !== undefined) examples[name] = tensor;
        else if (batch[name] === undefined) throw unknownTensor(metric, name, perExample, batch);
      }
    }
    return { metrics: metricTensors(metrics), examples, images };
  };
}

function unknownTensor(metric: string, name: string, perExample: object, batch: object): ConfigError {
  const [outputs, inputs] = [Object.keys(perExample), Object.keys(batch)];
  const path = `task.evalMetrics.${metric}`;
  return new ConfigError(
    `${path} reads '${name}', which neither the model gives for each example nor the batch has.` +
      `${didYouMean(name, [...outputs, ...inputs])} The model gives: ${outputs.join(', ') || 'nothing'}; ` +
      `the batch has: ${inputs.join(', ')}.`,
    { path },
  );
}

/** The forward pass of a training step without its gradient, for counting FLOPs. */
export function forwardStep(task: SingleTask): (inputs: TrainInputs) => Tensor {
  return ({ params, batch, prngKey }) => {
    const [metrics] = runInContext({ theta: params, prngKey, ...rowWeightsOf(batch) }, () =>
      task.model.fprop(batch),
    );
    return task.lossOf(metrics)[0];
  };
}

/** Metrics of a compiled step, on the host. */
export type StepMetrics = Readonly<Record<string, { value: HostTensor; weight: HostTensor }>>;

/** Values of a step's metrics. @param run number of the step, where a call took several */
export function metricValues(metrics: StepMetrics, run = 0): WeightedValues {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, { value, weight }]) => [
      name,
      { value: value.data[run]!, weight: weight.data[run]! },
    ]),
  );
}
