/** @file Predictions of a model as a function of its parameters and some arrays of a batch. */
import { dependences, type Tensor, type TensorSpec, type Tree, tf } from '../compiler/index.js';
import { runInContext } from '../layers/index.js';
import type { BaseModel, TensorBatch } from '../models/index.js';
import { evalKey, namedTensors } from '../tasks/index.js';

/** Tensors by path, `outer.inner`. */
type Tensors = Readonly<Record<string, Tensor>>;
/** Specs by path. */
export type Specs = Readonly<Record<string, TensorSpec>>;

/** A batch from its arrays by path. */
function nested(tensors: Tensors): TensorBatch {
  const batch: Record<string, unknown> = {};
  for (const [path, tensor] of Object.entries(tensors)) {
    const steps = path.split('.');
    let at = batch;
    for (const step of steps.slice(0, -1)) at = (at[step] ??= {}) as Record<string, unknown>;
    at[steps.at(-1)!] = tensor;
  }
  return batch as TensorBatch;
}

/** Arguments of the function: parameters and arrays of the batch, both by path. */
export interface PredictInputs {
  readonly params: Tensors;
  readonly batch: Tensors;
}

/**
 * The predictions of a model by name.
 *
 * @param absent arrays of the batch that the arguments lack; zeros stand for them.
 * @param outputs names of predictions; default: all.
 */
export function predictions(
  model: BaseModel,
  absent: Specs = {},
  outputs?: readonly string[],
): (inputs: PredictInputs) => Tree<Tensor> {
  return ({ params, batch }) => {
    const zeros = Object.entries(absent).map(([path, { shape, dtype }]) => [
      path,
      tf.zeros([...shape], dtype),
    ]);
    const whole = nested({ ...Object.fromEntries(zeros), ...batch });
    const context = { theta: params, doEval: true, prngKey: tf.tensor1d([...evalKey()], 'int32') as Tensor };
    const found = runInContext(context, () => model.computePredictions(whole));
    const named = namedTensors(found);
    return Object.fromEntries(named.filter(([name]) => outputs?.includes(name) ?? true));
  };
}

/** The arrays of a batch that each prediction is computed from. Those that no parameter goes into are left out. */
export function neededArrays(model: BaseModel, params: Specs, batch: Specs): Map<string, readonly string[]> {
  const found = dependences(predictions(model), { params, batch } as Tree<TensorSpec>);
  const arrays = Object.keys(batch);
  const learned = [...found].filter(([, paths]) => [...paths].some((path) => path.startsWith('params.')));
  return new Map(learned.map(([name, paths]) => [name, arrays.filter((path) => paths.has(`batch.${path}`))]));
}

/** Predictions that need as few arrays as any: of a model that is trained with labels, those that need none. */
export function fewest(behind: ReadonlyMap<string, readonly string[]>): string[] {
  const [first] = [...behind.values()].sort((a, b) => a.length - b.length);
  return [...behind].flatMap(([name, paths]) => (paths.every((path) => first!.includes(path)) ? [name] : []));
}
