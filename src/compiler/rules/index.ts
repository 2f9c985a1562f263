/** @file The table of all operations that a program may hold. Composites add themselves through `defineOp`. */
import { CompilerError } from '../types.js';
import { convolutionRules } from './convolution.js';
import { elementwiseRules } from './elementwise.js';
import { indexingRules } from './indexing.js';
import { matmulRules } from './matmul.js';
import { reduceRules } from './reduce.js';
import type { OpRule } from './rule.js';
import { shapeRules } from './shape.js';

/** The rules of tfjs's own kernels. */
export const kernelRules: Readonly<Record<string, OpRule>> = {
  ...elementwiseRules,
  ...shapeRules,
  ...reduceRules,
  ...matmulRules,
  ...indexingRules,
  ...convolutionRules,
};

const rules = new Map<string, OpRule>(Object.entries(kernelRules));

/** Adds an operation of our own. */
export function defineOp(name: string, rule: OpRule): void {
  if (rules.has(name)) throw new CompilerError(`Operation '${name}' is defined twice.`);
  rules.set(name, rule);
}

/** The names of all operations. */
export const opNames = (): string[] => [...rules.keys()];

/** The rule of `op`. */
export function ruleOf(op: string): OpRule {
  const rule = rules.get(op);
  if (rule === undefined) throw new CompilerError(`Operation '${op}' has no rule.`);
  return rule;
}
