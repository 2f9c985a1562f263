/** @file Step functions of evaluation, of the forward pass alone, and metrics of steps. */
import { type HostTensor, prngKey, type Tensor, tf } from '../compiler/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import { runInContext } from '../layers/index.js';
import type { WeightedValues } from './metrics.js';
import type { SingleTask } from './singleTask.js';
import { type MetricTensors, metricTensors, rowWeightsOf, type TrainInputs } from './trainStep.js';

/** Inputs of an evaluation step. */
export type EvalInputs = Omit<TrainInputs, 'prngKey'>;

/** Key of the numbers that evaluations draw, such as those of masks: int32 [2], of the seed that Pax's Evaluate has. */
export const evalKey = (): Tensor => tf.tensor1d([...prngKey(1234)], 'int32') as Tensor;

/**
 * The evaluation step of a task as a pure function, without dropout: the model's metrics, those of its per-example
 * tensors that the task's `evalMetrics` read, with `scores` where examples have numbers, and images of layers. Models that draw
 * numbers in evaluation too draw the same ones for each batch, so that evaluations of one checkpoint are equal.
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
    const context = { theta: params, doEval: true, images, prngKey: evalKey() };
    const [metrics, perExample] = runInContext(context, () => task.model.fprop(batch));
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
