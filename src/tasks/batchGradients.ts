/** @file Gradients of a batch: of a task's loss by its trainable variables, with metrics, summaries and taps. */
import {
  NoGradientError,
  type RowGradient,
  rowsOfGradient,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  valueAndGrad,
} from '../compiler/index.js';
import { ConfigError } from '../hparams/index.js';
import { runInContext, type TapOutputs, type Taps } from '../layers/index.js';
import type { TensorBatch, WeightedScalar, WeightedScalars } from '../models/index.js';
import type { SingleTask } from './singleTask.js';
import type { RowGradients } from './subBatches.js';
import { lossOf } from './sumOfLosses.js';

/** Inputs of a training step. */
export interface TrainInputs {
  /** Every variable by path. */
  readonly params: Readonly<Record<string, Tensor>>;
  readonly batch: TensorBatch;
  /** int32 [2], from (seed, step). */
  readonly prngKey: Tensor;
  /** int32 [], finished steps, where `stepNumberSpec` has it. */
  readonly step?: Tensor | undefined;
}

/** Spec of the number of finished steps, for those training steps alone that read it. */
export const stepNumberSpec = ({ hp }: SingleTask): { readonly step?: TensorSpec } =>
  hp.vn.beginsLater ? { step: { shape: [], dtype: 'int32' } } : {};

/** Metrics by name, scalars. */
export type MetricTensors = Record<string, { value: Tensor; weight: Tensor }>;

/** Outputs of a training step: scalars, but for gradients, which have the shapes of the trainable variables. */
export interface TrainOutputs {
  readonly loss: Tensor;
  readonly metrics: MetricTensors;
  /** Summaries of layers (`addSummary`). */
  readonly summaries: Record<string, Tensor>;
  /** Summaries of layers that are no scalars (`addImageSummary` and the like), by name. */
  readonly media: Record<string, Tensor>;
  /** Values of the non-trainable variables after the forward pass, by path. */
  readonly updatedVars: Record<string, Tensor>;
  readonly grads: Record<string, Tensor>;
  /** Gradients that are rows and indices, by path; `grads` has those of the other variables. */
  readonly rowGrads: RowGradients;
  readonly [key: string]: Tree<Tensor>;
}

/** @throws ConfigError for a metric that is no scalar, of which only the first number would be read */
export function metricTensors(metrics: WeightedScalars): MetricTensors {
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

/** Form of a step's results. */
export interface StepForm {
  /** Whether gradients of tables are rows and indices where the learner and the trace let them; no engine that runs op by op does. */
  readonly rows?: boolean;
}

/** The model's metrics in training, without summaries. */
export function forwardMetrics(task: SingleTask, { params, batch, prngKey }: TrainInputs): WeightedScalars {
  const [metrics] = runInContext({ theta: params, prngKey, ...rowWeightsOf(batch) }, () =>
    task.model.fprop(batch),
  );
  return metrics;
}

/**
 * The gradients of a whole batch as a pure function.
 *
 * @param taps receives activations and gradients.
 */
export function batchStep(
  task: SingleTask,
  { taps, ...form }: StepForm & { taps?: Taps } = {},
): (inputs: TrainInputs) => TrainOutputs {
  const step = gradientsOf(task, (metrics) => lossOf(task, metrics), form, taps);
  return (inputs) => {
    const { weight: _, ...outputs } = step(inputs);
    return outputs as TrainOutputs;
  };
}

/**
 * Gradients of a batch.
 *
 * @param minimized what the gradients are of, by the model's metrics, and its weight.
 */
export function gradientsOf(
  task: SingleTask,
  minimized: (metrics: WeightedScalars) => WeightedScalar,
  { rows = false }: StepForm,
  taps?: Taps,
): (inputs: TrainInputs) => TrainOutputs & { readonly weight: Tensor } {
  const [trainable, nonTrainable] = [task.trainablePaths(), task.nonTrainablePaths()];
  const [{ vn }, noisy] = [task.hp, task.noisyPaths()];
  return ({ params, batch, prngKey, step }) => {
    const moved = Object.fromEntries(trainable.map((path) => [path, params[path]!]));
    const forward = (moving: Record<string, Tensor>) => {
      const summaries: Record<string, Tensor> = {};
      const media: Record<string, Tensor> = {};
      const updatedVars = Object.fromEntries(nonTrainable.map((path) => [path, params[path]!]));
      const theta = { ...params, ...moving };
      for (const path of noisy) theta[path] = vn.noisy(path, theta[path]!, prngKey, step);
      const { summaryVerbosity } = task.hp;
      const seen = { summaries, media, summaryVerbosity, updatedVars, taps };
      const context = { theta, prngKey, ...rowWeightsOf(batch), ...seen };
      const [metrics] = runInContext(context, () => task.model.fprop(batch));
      const [value, weight] = minimized(metrics);
      const aux = { metrics: metricTensors(metrics), summaries, media, updatedVars, weight };
      return { value, aux };
    };
    try {
      const { value, aux, grads } = valueAndGrad(forward, moved);
      return { loss: value, ...aux, ...(rows ? apart(task, grads) : { grads, rowGrads: {} }) };
    } catch (error) {
      throw error instanceof NoGradientError ? unusedError(task, error) : error;
    }
  };
}

/**
 * Gradients, those apart that are rows and indices: of tables that their rule lets be so, and that have more rows than a
 * step looks up.
 */
function apart(
  task: SingleTask,
  grads: Readonly<Record<string, Tensor>>,
): Pick<TrainOutputs, 'grads' | 'rowGrads'> {
  const { numSubBatches } = task.hp.train.hp;
  const dense: Record<string, Tensor> = {};
  const rowGrads: Record<string, RowGradient> = {};
  const tables = new Set(task.tablePaths());
  for (const [path, grad] of Object.entries(grads)) {
    const found = tables.has(path) ? rowsOfGradient(grad) : undefined;
    const isFew = found !== undefined && SPARSE * numSubBatches * found.indices.size <= grad.shape[0]!;
    if (isFew) rowGrads[path] = found;
    else dense[path] = grad;
  }
  return { grads: dense, rowGrads };
}

/** Rows of a table for each that a step looks up, from which on rows and indices take less time than all rows. */
const SPARSE = 2;

/** Taps of a training step, of the whole batch. @param newTaps makes the taps of a pass */
export function tapStep(
  task: SingleTask,
  newTaps: () => Taps,
): (inputs: TrainInputs) => Record<string, TapOutputs> {
  return (inputs) => {
    const taps = newTaps();
    batchStep(task, { taps })(inputs);
    return taps.outputs();
  };
}

/** The error of trainable variables that the loss does not depend on. */
function unusedError(task: SingleTask, cause: NoGradientError): ConfigError {
  const path = 'task.train.learner.bpropVariableExclusion';
  const names = cause.paths.slice(0, 3).map((path) => `'${path}'`);
  const more = cause.paths.length - names.length;
  const list = new Intl.ListFormat('en').format(more > 0 ? [...names, `${more} more`] : names);
  const [noun, them] = cause.paths.length === 1 ? ['variable', 'it'] : ['variables', 'them'];
  return new ConfigError(
    `The ${task.lossLabel} ${task.isSumOfLosses ? 'do' : 'does'} not depend on the ${noun} ${list}: use ${them} in the model's loss, or leave ${them} ` +
      `out of training with ${path}.`,
    { path, cause },
  );
}
