/** @file Variables, as far as learners need them; those of layers are such. */
import type { Group, NarrowType } from '../compiler/index.js';
import { check } from './checkFields.js';

export interface LearnableVariable {
  /** Path in the model: `lm/softmax/w`. */
  readonly path: string;
  readonly shape: readonly number[];
  /** The first axes of its shape, along which it stacks variables that are updated each for itself. */
  readonly repeatPrefix?: readonly number[];
  /** Collections of the variable: `NON_TRAINABLE`, `FROZEN`, `SKIP_LP_REGULARIZATION`. */
  readonly collections?: readonly string[];
  /** How memory holds it; absent: as float32. */
  readonly storage?: NarrowType;
  /** Its initial values; `scaleUpdateByVarNorm` alone needs them. */
  readonly init?: InitialScale;
  /**
   * Of a part of a variable: the ranks that hold it together, and the shape of the whole; of a stack that ranks share, those that
   * hold one of its variables together; and the axes of the mesh that split each dimension.
   */
  readonly part?: {
    readonly ranks: Group;
    readonly sliceRanks?: Group;
    readonly whole: readonly number[];
    readonly axes: readonly (readonly number[])[];
  };
}

/** The variable that a part is of. */
export function wholeOf({ part, ...variable }: LearnableVariable): LearnableVariable {
  if (part === undefined) return variable;
  const { repeatPrefix = [] } = variable;
  return { ...variable, shape: part.whole, repeatPrefix: part.whole.slice(0, repeatPrefix.length) };
}

/** Initial values of variables. */
interface InitialScale {
  /** The standard deviation, before truncation, or the limit of a variable's initial values; null where these have none. */
  scaleOf(variable: LearnableVariable): number | null;
}

/**
 * The factor of a variable's steps by the scale of its initial values; none for scalars and vectors.
 *
 * @param owner the learner, whose class opens the message.
 * @throws ConfigError for initial values without a scale
 */
export function updateScaleOf(owner: object, variable: LearnableVariable): { readonly updateScale?: number } {
  const { path, shape: held, part, repeatPrefix = [], init } = variable;
  const shape = part?.whole ?? held;
  const one = { ...variable, shape: shape.slice(repeatPrefix.length), repeatPrefix: [] };
  if (one.shape.length <= 1) return {};
  const updateScale = init?.scaleOf(one) ?? null;
  check(
    owner,
    updateScale !== null,
    `scaleUpdateByVarNorm: the initial values of '${path}' have no scale; give it a Gaussian, truncated or uniform init.`,
  );
  return { updateScale: updateScale! };
}
