/** @file Level trace of an experiment's check: settings of inputs and model, and shapes of steps, without values. */
import { checkInputSettings } from '../../analysis/index.js';
import type { ConfiguredExperiment } from '../../cli/index.js';
import { evalShape, type TensorSpec } from '../../compiler/index.js';
import { build } from '../../hparams/index.js';
import { trainedTasks, trainingDataset } from '../../programs/index.js';
import { evalStep, type SingleTask, stepNumberSpec, trainStep } from '../../tasks/index.js';

const prngKey: TensorSpec = { shape: [2], dtype: 'int32' };

const paramsOf = (task: SingleTask): Record<string, TensorSpec> =>
  Object.fromEntries(task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }] as const));

/**
 * Traces the training step of each task, the evaluation of each dataset and the decoding of each dataset to decode.
 *
 * @returns errors of evaluations and decodes, with the dataset's path. @throws errors of training
 */
export async function traceSteps(
  configured: ConfiguredExperiment,
  main: SingleTask,
): Promise<{ readonly path: string; readonly error: unknown }[]> {
  const training = build(trainingDataset(configured));
  checkInputSettings(main, training);
  for (const { task, batch } of trainedTasks(main, training))
    evalShape(trainStep(task), { params: paramsOf(task), batch, prngKey, ...stepNumberSpec(task) });
  const params = paramsOf(main);
  const seen = new Set<string>();
  const evaluated = configured.datasets.flatMap((dataset, i) => {
    if (dataset.isTraining) return [];
    try {
      const input = build(dataset);
      checkInputSettings(main, input);
      const batch = input.paddedBatchSpecs();
      const signature = JSON.stringify(batch);
      if (!seen.has(signature)) evalShape(evalStep(main), { params, batch, prngKey });
      seen.add(signature);
      return [];
    } catch (error) {
      return [{ path: `datasets[${i}]`, error }];
    }
  });
  if (configured.decodeDatasets.length === 0) return evaluated;
  const { tryDecoding } = await import('../../review/index.js');
  const decoded = configured.decodeDatasets.map(async (dataset, i) => {
    try {
      await tryDecoding(main, params, dataset);
      return [];
    } catch (error) {
      return [{ path: `decodeDatasets[${i}]`, error }];
    }
  });
  return [...evaluated, ...(await Promise.all(decoded)).flat()];
}
