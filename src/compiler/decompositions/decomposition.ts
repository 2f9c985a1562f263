/** @file Decompositions of tfjs kernels without a rule: what a trace records in place of a kernel. */
import { opNames } from '../rules/index.js';
import type { RawAttrs } from '../rules/rule.js';
import { CompilerError } from '../tensors.js';
import type * as tf from '../tfjs.js';

/**
 * Computes a kernel's results by other tf operations, which have rules or decompositions of their own. The gradient is
 * the kernel's, as tfjs registers it.
 *
 * @param inputs by tfjs's names. @param attrs as tfjs passes them to the kernel.
 * @throws Misfit for inputs or attributes that do not fit.
 */
export type Decomposition = (
  inputs: Readonly<Record<string, tf.Tensor>>,
  attrs: RawAttrs,
) => tf.Tensor | tf.Tensor[];

/** Decompositions by kernel. */
export type DecompositionTable = Readonly<Record<string, Decomposition>>;

const decompositions = new Map<string, Decomposition>();

/** Registers decompositions, before anything is traced. */
export function defineDecompositions(table: DecompositionTable): void {
  const defined = new Set([...opNames(), ...decompositions.keys()]);
  for (const [kernel, decompose] of Object.entries(table)) {
    if (defined.has(kernel)) throw new CompilerError(`Operation '${kernel}' is defined twice.`);
    decompositions.set(kernel, decompose);
  }
}

/** All decompositions, by kernel. */
export const allDecompositions = (): ReadonlyMap<string, Decomposition> => decompositions;
