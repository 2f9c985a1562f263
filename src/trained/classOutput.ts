/** @file Classifiers among models: the prediction that is logits, and the names of its classes. */
import { evalShape, type TensorSpec, type Tree } from '../compiler/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { BaseModel } from '../models/index.js';
import { predictions, type Specs } from './predictions.js';

/** A prediction that is logits of classes. */
export interface ClassOutput {
  /** Name of the prediction. */
  readonly output: string;
  /** Names of the classes by id; null where they have none. */
  readonly names: readonly string[] | null;
}

/** Array of the labels in batches of most inputs. */
const LABELS = 'labels';

/**
 * The prediction that is logits of classes: float32 [rows, classes], where the batch has labels, int32 [rows], that it
 * does not need and that have names of as many classes, or are called `labels`. Of several such predictions it is the
 * one called `logits`; undefined if there is none.
 *
 * @param behind arrays that each prediction needs.
 */
export function classOutputOf(
  model: BaseModel,
  params: Specs,
  specs: Specs,
  behind: ReadonlyMap<string, readonly string[]>,
  input: Pick<BaseInput, 'classNamesFor'>,
): ClassOutput | undefined {
  const labels = Object.entries(specs)
    .filter(([, { shape, dtype }]) => dtype === 'int32' && shape.length === 1)
    .map(([path]) => ({ path, names: input.classNamesFor(path) }))
    .filter(({ path, names }) => names !== null || path === LABELS);
  if (labels.length === 0) return undefined;
  const found = evalShape(predictions(model), { params, batch: specs } as Tree<TensorSpec>) as Specs;
  const logits = Object.entries(found).filter(
    ([output, { shape, dtype }]) => behind.has(output) && dtype === 'float32' && shape.length === 2,
  );
  const fitting = logits.flatMap(([output, { shape }]) => {
    const named = labels.filter(
      ({ path, names }) =>
        !behind.get(output)!.includes(path) && (names === null || names.length === shape[1]),
    );
    return named.length === 1 && shape[1]! > 1 ? [{ output, names: named[0]!.names }] : [];
  });
  return fitting.length === 1 ? fitting[0] : fitting.find(({ output }) => output === 'logits');
}
