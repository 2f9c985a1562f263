/** @file Step functions of evaluation, of inference, of the forward pass alone, and metrics of steps. */
import { foldIn, type HostTensor, type PrngKey, prngKey, type Tensor } from '../compiler/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import { runInContext } from '../layers/index.js';
import type { BaseModel } from '../models/index.js';
import { forwardMetrics, type MetricTensors, metricTensors, type TrainInputs } from './batchGradients.js';
import { type BaseInferenceRunner, EXAMPLE_ID, rowsOf } from './inference.js';
import type { WeightedValues } from './metrics.js';
import type { SingleTask } from './singleTask.js';
import { lossOf } from './sumOfLosses.js';

/**
 * Key of the numbers that an evaluation draws for a batch, such as those of masks: of the task's seed (`evaluate`), and the
 * number of the batch in the evaluation, from 0. Pax has one key for all batches of a step.
 */
export const evalKey = (batch = 0, seed = 1234): PrngKey => foldIn(prngKey(seed), batch);

/**
 * The evaluation step of a task as a pure function, without dropout: the model's metrics, those of its per-example
 * tensors that the task's `evalMetrics` and `exampleOutputs` read, with `scores` where examples have numbers, and `media`, the
 * summaries of layers that are no scalars. Its key is `evalKey`,
 * so that evaluations of one checkpoint are equal, whatever a model draws in them.
 *
 * @throws ConfigError for a tensor that neither the model nor the batch has.
 */
export function evalStep(
  task: SingleTask,
): (
  inputs: TrainInputs,
) => Record<'examples' | 'media', Record<string, Tensor>> & { metrics: MetricTensors } {
  return ({ params, batch, prngKey }) => {
    const media: Record<string, Tensor> = {};
    const { summaryVerbosity } = task.hp;
    const context = { theta: params, doEval: true, media, prngKey, summaryVerbosity };
    const [metrics, perExample] = runInContext(context, () => task.model.fprop(batch));
    const examples: Record<string, Tensor> = {};
    if (batch.exampleIds !== undefined && perExample.scores !== undefined)
      examples.scores = perExample.scores;
    for (const [path, names] of readTensors(task))
      for (const name of names) {
        const tensor = perExample[name];
        if (tensor !== undefined) examples[name] = tensor;
        else if (batch[name] === undefined) throw unknownTensor(path, name, perExample, batch);
      }
    return { metrics: metricTensors(metrics), examples, media };
  };
}

/** Names of the tensors of examples that evaluations read, by the setting that names them. */
const readTensors = ({ hp }: SingleTask): readonly (readonly [path: string, names: readonly string[]])[] => [
  ...Object.entries(hp.evalMetrics).map(
    ([metric, config]) => [`task.evalMetrics.${metric}`, config.tensorNames()] as const,
  ),
  ['task.evaluate.exampleOutputs', hp.evaluate.hp.exampleOutputs],
];

function unknownTensor(path: string, name: string, perExample: object, batch: object): ConfigError {
  const [outputs, inputs] = [Object.keys(perExample), Object.keys(batch)];
  return new ConfigError(
    `${path} reads '${name}', which neither the model gives for each example nor the batch has.` +
      `${didYouMean(name, [...outputs, ...inputs])} The model gives: ${outputs.join(', ') || 'nothing'}; ` +
      `the batch has: ${inputs.join(', ')}.`,
    { path },
  );
}

/**
 * The outputs of a task's inference runner for a batch as a pure function. Its key is that of the batch.
 *
 * @throws ConfigError for outputs without the batch's rows in front, and for the name of the example's number.
 */
export function inferStep(
  model: BaseModel,
  runner: BaseInferenceRunner,
): (inputs: TrainInputs) => Record<string, Tensor> {
  return ({ params, batch, prngKey }) => {
    const outputs = runInContext({ theta: params, doEval: true, prngKey }, () => runner.infer(model, batch));
    const rows = rowsOf(batch);
    const who = runner.constructor.name;
    for (const [name, { shape }] of Object.entries(outputs)) {
      if (name === EXAMPLE_ID)
        throw new ConfigError(`${who} gives '${name}', the name of an example's number in its record.`);
      if (shape[0] !== rows)
        throw new ConfigError(
          `${who} gives '${name}' of shape [${shape.join(', ')}]: expected the ${rows} rows of the batch in front.`,
        );
    }
    if (Object.keys(outputs).length === 0)
      throw new ConfigError(`${who} gives no output for the ${rows} rows of a batch.`);
    return outputs;
  };
}

/** The forward pass of a training step without its gradient, for counting FLOPs. */
export function forwardStep(task: SingleTask): (inputs: TrainInputs) => Tensor {
  return (inputs) => lossOf(task, forwardMetrics(task, inputs))[0];
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
