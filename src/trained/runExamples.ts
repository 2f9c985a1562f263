/** @file Examples of a run: the dataset that preprocesses them, its shapes, and the predictor for them. */
import { layoutSpecs } from '../compiler/index.js';
import { build, type Config, classOf, copyWith } from '../hparams/index.js';
import {
  type BaseInput,
  type BatchSpecs,
  type DataIdentity,
  InputError,
  withRecorded,
} from '../inputs/index.js';
import type { BaseModel } from '../models/index.js';
import { checkRecorded, type FlatParams, recordedData, TRAIN, trainingDataset } from '../programs/index.js';
import { classOutputOf } from './classOutput.js';
import { ExamplePredictor } from './examplePredictor.js';
import { fewest, neededArrays, type Specs } from './predictions.js';
import type { Predictor } from './predictor.js';
import { RequestError } from './requestError.js';
import type { RunDocument } from './runDocument.js';

/** Shapes and dtypes of a dataset's arrays by path; undefined if the input does not declare them. */
export function specsByPath(dataset: Config<BaseInput>): Specs | undefined {
  const flat = (specs: BatchSpecs, prefix: string): [string, Specs[string]][] =>
    Object.entries(specs).flatMap(([name, spec]) =>
      'dtype' in spec && typeof spec.dtype === 'string'
        ? [[prefix + name, spec as Specs[string]]]
        : flat(spec as BatchSpecs, `${prefix}${name}.`),
    );
  try {
    return Object.fromEntries(flat(build(dataset).batchSpecs(), ''));
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

/** A run, restored. */
interface RunParts {
  readonly document: RunDocument;
  readonly directory: string;
  readonly model: BaseModel;
  readonly params: FlatParams;
  readonly predictor: Predictor;
  /** Examples that are predicted together; default: the rows of the dataset. */
  readonly rows: number | undefined;
}

/**
 * The first dataset that is not for training, or training's in evaluation mode, with the data that training recorded.
 */
export function exampleDataset(
  { document }: Pick<RunParts, 'document'>,
  recorded: DataIdentity,
): Config<BaseInput> {
  const found =
    document.datasets.find(({ isTraining }) => !isTraining) ??
    copyWith(trainingDataset(document), { isTraining: false });
  return withRecorded(found, recorded);
}

/**
 * The example predictor of a run. @throws RequestError if its dataset declares no shapes, or no prediction is learned
 */
export function newExamplePredictor(run: RunParts): ExamplePredictor {
  const { model, predictor, rows } = run;
  const { name } = run.document;
  const recorded = recordedData(run.directory, TRAIN) ?? {};
  const dataset = exampleDataset(run, recorded);
  const specs = specsByPath(dataset);
  if (specs === undefined) {
    throw new RequestError(
      `${name}: ${classOf(dataset).name} doesn't declare the shapes of its batches: give its class a batchSpecs() method.`,
    );
  }
  const params = layoutSpecs(run.params.layout);
  const behind = neededArrays(model, params, specs);
  if (behind.size === 0) throw new RequestError(`${name}: no prediction depends on the parameters.`);
  const input = build(dataset);
  checkRecorded(run.directory, recorded, input.recordedParts());
  const outputs = fewest(behind);
  return new ExamplePredictor({
    ...{ input, predictor, specs, outputs, rows: rows ?? input.batchSize },
    paths: [...new Set(outputs.flatMap((output) => behind.get(output)!))],
    classOutput: classOutputOf(model, params, specs, behind, input),
  });
}
