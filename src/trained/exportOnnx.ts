/** @file A trained run as an ONNX file. */
import {
  computedDtype,
  exportOnnx as exportFunction,
  floatsOf,
  layoutSpecs,
  type OpenSpec,
} from '../compiler/index.js';
import { didYouMean } from '../hparams/index.js';
import { versions } from '../runs/index.js';
import { fewest, neededArrays, predictions } from './predictions.js';
import { withRows } from './predictor.js';
import { RequestError } from './requestError.js';
import type { TrainedRun } from './trainedRun.js';

/** An ONNX file, with its inputs and outputs. */
export interface ExportedOnnx {
  readonly bytes: Uint8Array;
  /** Arrays of a batch. */
  readonly inputs: readonly string[];
  /** Predictions. */
  readonly outputs: readonly string[];
  /** Names of the classes by id, of a classifier whose classes have any; metadata `classes` of the file, as JSON. */
  readonly classes: readonly string[] | null;
  /** Predictions that the file leaves out, with the arrays that they need. */
  readonly others: ReadonlyMap<string, readonly string[]>;
}

/**
 * The forward pass of a run as an ONNX file, for batches of any number of rows. Other dimensions are those of
 * training's batches.
 *
 * @param outputs names of predictions; default: those that need the fewest arrays.
 * @throws RequestError for unknown outputs, and for a training input that does not declare its shapes; CompilerError
 * for operations without an ONNX operator.
 */
export function exportOnnx(run: TrainedRun, outputs?: readonly string[]): ExportedOnnx {
  const { batchSpecs, params, task, name, step, document } = run;
  if (batchSpecs === undefined) {
    throw new RequestError(
      `${name}: its training input doesn't declare the shapes of its batches, which an ONNX file holds: give its class a batchSpecs() method.`,
    );
  }
  const behind = neededArrays(task.model, layoutSpecs(params.layout), batchSpecs);
  if (behind.size === 0) throw new RequestError(`${name}: no prediction depends on the parameters.`);
  const unknown = outputs?.find((output) => !behind.has(output));
  if (unknown !== undefined) {
    const names = [...behind.keys()];
    throw new RequestError(
      `--outputs: ${name} predicts no '${unknown}'.${didYouMean(unknown, names)} It predicts: ${names.join(', ')}.`,
    );
  }
  const chosen = outputs ?? fewest(behind);
  const inputs = Object.keys(batchSpecs).filter((path) =>
    chosen.some((output) => behind.get(output)!.includes(path)),
  );
  const batch = Object.fromEntries(
    inputs.map((path): [string, OpenSpec] => {
      const { shape, dtype } = batchSpecs[path]!;
      return [path, { shape: ['batch', ...shape.slice(1)], dtype }];
    }),
  );
  const absent = Object.fromEntries(Object.entries(batchSpecs).filter(([path]) => !inputs.includes(path)));
  // A file has float32 weights, whatever memory holds, and codes as integers.
  const weights = Object.entries(floatsOf(params.layout, params.views));
  const specs = Object.fromEntries(
    params.layout.entries.map(({ name, shape, storage }) => [name, { shape, dtype: computedDtype(storage) }]),
  );
  const { luthier } = versions();
  const { classOutput } = run;
  const classes = classOutput && chosen.includes(classOutput.output) ? classOutput.names : null;
  // Placeholders of absent arrays do not reach the chosen outputs: they are traced, and then removed.
  const bytes = exportFunction(
    (inputs) => predictions(task.model, withRows(absent, rowsOf(inputs)), chosen)(inputs),
    { params: specs, batch },
    {
      inputNames: Object.fromEntries([
        ...weights.map(([path]) => [`params.${path}`, path]),
        ...inputs.map((path) => [`batch.${path}`, path]),
      ]),
      constants: Object.fromEntries(weights.map(([path, values]) => [`params.${path}`, values])),
      name,
      producer: { name: 'luthier', version: luthier! },
      metadata: {
        experiment: name,
        step: String(step),
        ...(document.gitRevision && { commit: document.gitRevision }),
        luthier: luthier!,
        ...(classes && { classes: JSON.stringify(classes), class_output: classOutput!.output }),
      },
    },
  );
  const others = new Map([...behind].filter(([output]) => !chosen.includes(output)));
  return { bytes, inputs, outputs: chosen, others, classes };
}

/** Rows of a traced batch. */
const rowsOf = ({
  batch,
}: {
  readonly batch: Readonly<Record<string, { readonly shape: readonly number[] }>>;
}): number => Object.values(batch)[0]!.shape[0]!;
