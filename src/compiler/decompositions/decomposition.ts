/** @file Decompositions of tfjs kernels without a rule: operations that a trace records in place of a kernel. */

import { CompilerError } from '../program/tensors.js';
import { opNames } from '../rules/index.js';
import { Misfit, type RawAttrs } from '../rules/operation.js';
import { gradientsBy } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';

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

/**
 * Computes some calls of a kernel that has a rule by calls that the rule takes; null for the others, which are recorded
 * as they are.
 */
export type Variant = (...call: Parameters<Decomposition>) => ReturnType<Decomposition> | null;

const variants = new Map<string, Variant>();

/** Registers the variants of kernels with a rule, before anything is traced. */
export function defineVariants(table: Readonly<Record<string, Variant>>): void {
  for (const [kernel, vary] of Object.entries(table)) {
    if (variants.has(kernel)) throw new CompilerError(`Operation '${kernel}' has its variants twice.`);
    variants.set(kernel, vary);
  }
}

/** All variants, by kernel. */
export const allVariants = (): ReadonlyMap<string, Variant> => variants;

export const isComplex = ({ dtype }: { readonly dtype: string }): boolean => dtype === 'complex64';

/** Kernels that make complex numbers, take them apart, or take no others. */
export const COMPLEX_KERNELS: readonly string[] = ['Complex', 'Real', 'Imag', 'ComplexAbs', 'FFT', 'IFFT'];

let complexKernels: DecompositionTable = {};

/** Registers the decompositions of kernels on complex numbers, before anything is traced. */
export function defineComplexKernels(table: DecompositionTable): void {
  complexKernels = table;
}

/** The kernels that take complex numbers. */
export const complexKernelNames = (): string[] => Object.keys(complexKernels);

/** Decomposition of a call with complex numbers; undefined for calls without. @throws Misfit where it takes none. */
export function complexCall(
  kernel: string,
  inputs: Readonly<Record<string, { readonly dtype: string } | undefined>>,
  attrs: RawAttrs,
): Decomposition | undefined {
  if (attrs.dtype !== 'complex64' && !Object.values(inputs).some((x) => x && isComplex(x))) return undefined;
  const decompose = complexKernels[kernel];
  if (decompose === undefined)
    throw new Misfit('expected real numbers, got complex64: tf.real(x) and tf.imag(x) are its parts');
  return decompose;
}

/** All decompositions, by kernel. */
export const allDecompositions = (): ReadonlyMap<string, Decomposition> => decompositions;

/** Runs another kernel within a decomposition. */
export const runKernel = (kernel: string, inputs: tf.NamedTensorMap, attrs: RawAttrs = {}): tf.Tensor =>
  tf.engine().runKernel(kernel, inputs, attrs) as tf.Tensor;

/**
 * Registers a kernel's gradient, for every backend, as that of its decomposition: where tfjs has none, or a wrong one.
 *
 * @param inputs the inputs with a gradient, then those without; 'list' where tfjs passes a list of inputs.
 * @param differentiable how many of them have one.
 */
export function differentiate(
  kernelName: string,
  decompose: Decomposition,
  inputs: readonly string[] | 'list',
  differentiable = inputs === 'list' ? Number.POSITIVE_INFINITY : inputs.length,
): void {
  const nameOf = (i: number): string => (inputs === 'list' ? String(i) : inputs[i]!);
  tf.registerGradient({
    kernelName,
    ...(inputs === 'list' ? { saveAllInputs: true } : { inputsToSave: [...inputs] }),
    gradFunc: (dys, saved, attrs) => {
      const rest = saved.slice(differentiable);
      const value = (...xs: tf.Tensor[]): tf.Tensor => {
        const given = Object.fromEntries([...xs, ...rest].map((x, i) => [nameOf(i), x]));
        return [decompose(given, attrs as RawAttrs)].flat()[0]!;
      };
      // Here and not in the functions below: tfjs disposes of all that one of them makes but its result.
      const xs = saved.slice(0, differentiable);
      const gradients = gradientsBy(value, xs, [dys].flat()[0]!);
      return Object.fromEntries(gradients.map((gradient, i) => [nameOf(i), () => gradient.clone()]));
    },
  });
}
