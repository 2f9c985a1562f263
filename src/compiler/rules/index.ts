/** @file Records of all operations of a program, by name. */
import type { Attrs, Graph } from '../program/ir.js';
import { CompilerError, type TensorSpec } from '../program/tensors.js';
import { collectiveRules } from './collectiveRules.js';
import { controlRules } from './controlRules.js';
import { elementwiseRules } from './elementwiseRules.js';
import { indexingRules } from './indexingRules.js';
import { joinRules } from './joinRules.js';
import { matmulRules } from './matmulRules.js';
import { type Composite, Misfit, type Operation, type OperationTable } from './operation.js';
import { reduceRules } from './reduceRules.js';
import { shapeRules } from './shapeRules.js';

/** Operations that no function of tfjs stands for: loops and choices, which have bodies, and what ranks do together. */
const structural: OperationTable = { ...controlRules, ...collectiveRules };
const operations = new Map<string, Operation>(Object.entries(structural));
const kernels = new Set<string>();

/** Operations that programs define. */
const foreign = new Set<string>();

/** Registers an operation, of Luthier's own or of a program that uses it. */
export function defineOperation(
  name: string,
  operation: Operation,
  by: 'luthier' | 'program' = 'luthier',
): void {
  if (operations.has(name)) throw new CompilerError(`Operation '${name}' is defined twice.`);
  operations.set(name, operation);
  if (by === 'program') foreign.add(name);
}

/** Whether an operation is Luthier's own: what it computes follows from the compiler's files. */
export const isOwn = (op: string): boolean => !foreign.has(op);

/** Registers operations that are kernels of tfjs. */
export function defineKernels(table: OperationTable): void {
  for (const [name, operation] of Object.entries(table)) {
    defineOperation(name, operation);
    kernels.add(name);
  }
}

defineKernels({
  ...elementwiseRules,
  ...shapeRules,
  ...joinRules,
  ...reduceRules,
  ...matmulRules,
  ...indexingRules,
});

/** The names of tfjs's kernels that are operations of their own. */
export const kernelNames = (): readonly string[] => [...kernels];

/** The names of Luthier's operations but those of the structure of programs. */
export const opNames = (): string[] =>
  [...operations.keys()].filter((name) => !(name in structural) && isOwn(name));

/** The record of `op`. */
export function ruleOf(op: string): Operation {
  const operation = operations.get(op);
  if (operation === undefined) throw new CompilerError(`Operation '${op}' has no rule.`);
  return operation;
}

/** The record of an operation that lowerings may expand; undefined for others. */
export function compositeOf(op: string): Composite | undefined {
  const operation = operations.get(op);
  return operation?.decompose && operation;
}

/** Name of an operation's call in messages: 'concat'. */
const callOf = (op: string): string => operations.get(op)?.call ?? `${op[0]!.toLowerCase()}${op.slice(1)}`;

/** Runs a function of an operation's rule. @throws CompilerError that names the operation where a call does not fit. */
export function withinRule<T>(op: string, f: () => T): T {
  try {
    return f();
  } catch (error) {
    if (!(error instanceof Misfit)) throw error;
    throw new CompilerError(`${callOf(op)}: ${error.message}.`);
  }
}

/**
 * Infers shapes and dtypes of outputs. @throws CompilerError where inputs or attributes don't fit the operation.
 */
export const inferOutputs = (
  op: string,
  inputs: readonly TensorSpec[],
  attrs: Attrs,
  bodies: readonly Graph[] = [],
): readonly TensorSpec[] => withinRule(op, () => ruleOf(op).infer(inputs, attrs, bodies));
