/** @file The form of a case: a function of tensors that uses an operation, and values to run it on. */
import type { HostTensor, Tensor } from '../../../src/compiler/index.js';
import type { Tolerance } from '../support.js';
import { withGradient } from '../values.js';

export type CaseFunction = (...tensors: any[]) => Tensor | Tensor[];

export interface Case {
  readonly inputs: readonly HostTensor[];
  readonly f: CaseFunction;
  /** How many of the inputs, from the first, are differentiated; 0 where the operation has no gradient. */
  readonly differentiable: number;
  /** What the eager engine runs, where tfjs's cpu backend has no kernel of that name. */
  readonly oracle?: CaseFunction;
  readonly tolerance?: Tolerance;
}

/** Cases by the operation that they are about; one case may hold others besides. */
export type CaseTable = Readonly<Record<string, readonly Case[]>>;

/** The same function over several lists of inputs; `rest` says what differs from "all inputs are differentiable". */
export const over = (
  f: CaseFunction,
  inputLists: readonly (readonly HostTensor[])[],
  rest: Partial<Case> = {},
): Case[] => inputLists.map((inputs) => ({ f, inputs, differentiable: inputs.length, ...rest }));

/** For operations, or element types, without a gradient. */
export const constant = { differentiable: 0 } as const;

/** The case as a program: its outputs, and its gradients where it has any. */
export const program =
  ({ differentiable }: Case, f: CaseFunction) =>
  (inputs: any[]) =>
    differentiable > 0 ? withGradient(f, differentiable)(inputs) : [f(...inputs)].flat();
