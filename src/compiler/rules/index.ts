/** @file Rule table of all operations of a program. Composites register through `defineOp`. */
import type { Attrs, Graph } from '../ir.js';
import { CompilerError, type TensorSpec } from '../tensors.js';
import { controlRules } from './controlRules.js';
import { convolutionRules } from './convolutionRules.js';
import { elementwiseRules } from './elementwiseRules.js';
import { indexingRules } from './indexingRules.js';
import { joinRules } from './joinRules.js';
import { matmulRules } from './matmulRules.js';
import { reduceRules } from './reduceRules.js';
import { Misfit, type OpRule } from './rule.js';
import { shapeRules } from './shapeRules.js';

/** Rules of tfjs's own kernels. */
export const kernelRules: Readonly<Record<string, OpRule>> = {
  ...elementwiseRules,
  ...shapeRules,
  ...joinRules,
  ...reduceRules,
  ...matmulRules,
  ...indexingRules,
  ...convolutionRules,
};

const rules = new Map<string, OpRule>(Object.entries({ ...kernelRules, ...controlRules }));

/** Registers a Luthier operation. */
export function defineOp(name: string, rule: OpRule): void {
  if (rules.has(name)) throw new CompilerError(`Operation '${name}' is defined twice.`);
  rules.set(name, rule);
}

/** The names of all operations but loops and choices, which have bodies. */
export const opNames = (): string[] => [...rules.keys()].filter((name) => !(name in controlRules));

/** The rule of `op`. */
export function ruleOf(op: string): OpRule {
  const rule = rules.get(op);
  if (rule === undefined) throw new CompilerError(`Operation '${op}' has no rule.`);
  return rule;
}

/** tfjs functions named differently from their kernels. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  Multiply: 'mul',
  RealDiv: 'div',
  Select: 'where',
  Pack: 'stack',
  Unpack: 'unstack',
  SplitV: 'split',
  PadV2: 'pad',
  GatherV2: 'gather',
  BatchMatMul: 'matMul',
  DepthwiseConv2dNative: 'depthwiseConv2d',
};

/** Name of an operation's call in messages: 'concat'. */
const callOf = (op: string): string => FUNCTIONS[op] ?? `${op[0]!.toLowerCase()}${op.slice(1)}`;

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
 * Infers shapes and dtypes of outputs. @throws CompilerError where inputs or attributes violate the operation's rule.
 */
export const inferOutputs = (
  op: string,
  inputs: readonly TensorSpec[],
  attrs: Attrs,
  bodies: readonly Graph[] = [],
): readonly TensorSpec[] => withinRule(op, () => ruleOf(op).infer(inputs, attrs, bodies));
