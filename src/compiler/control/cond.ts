/** @file Choices between two functions, and loops that end by a condition. */

import { type Graph, newValue } from '../program/ir.js';
import { CompilerError, formatSpec, sameShape, type Tree } from '../program/tensors.js';
import { flattenTree, type Leaf, mapTree } from '../program/tensorTrees.js';
import { taping } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';
import { isTensor } from '../trace/gradients.js';
import { isTracing, recordBodies } from '../trace/tracing.js';
import { type Body, traceBody } from './body.js';
import { differentiating, gradientsWith, isFloat, recordGradient, specOf, zerosOf } from './bodyGradients.js';
import { isUnrolling, sameCarry, scan } from './scan.js';

/** Requires a scalar bool. */
function expectsPredicate(what: string, predicate: unknown): asserts predicate is tf.Tensor {
  const got = isTensor(predicate) ? formatSpec(specOf(predicate)) : String(predicate);
  if (got !== 'bool[]') throw new CompilerError(`${what}: expected a scalar of dtype bool, got ${got}.`);
}

/** Records a choice between two bodies that take `operands` and their own outer tensors. */
function recordCond(
  predicate: tf.Tensor,
  branches: readonly [Body, Body],
  operands: readonly tf.Tensor[],
): tf.Tensor[] {
  // Between results that are all empty there is nothing to choose.
  if (branches[0].outputs.length === 0) return [];
  const outer = branches.map((branch) => branch.outer);
  const inputs = [predicate, ...operands, ...outer.flat()];
  const standIns = (of: readonly tf.Tensor[]) => of.map((tensor) => newValue(specOf(tensor)));
  const bodies = branches.map((branch, k): Graph => {
    const graph = branch.graph();
    const own = graph.inputs.slice(operands.length);
    const all = outer.flatMap((tensors, i) => (i === k ? own : standIns(tensors)));
    return { ...graph, inputs: [...graph.inputs.slice(0, operands.length), ...all] };
  });
  const outputs = recordBodies('Cond', inputs, {}, bodies);
  if (branches.every(({ tape }) => tape !== null) && taping.isTapeOn())
    recordGradient(
      'Cond',
      inputs,
      outputs,
      (dys) => [undefined, ...differentiating(() => gradients(predicate, branches, inputs.slice(1), dys))],
      branches.flatMap(({ tape }) => tape!),
    );
  return outputs;
}

/** Gradients by the operands and outer tensors: a choice between the gradients of the branches. */
function gradients(
  predicate: tf.Tensor,
  branches: readonly [Body, Body],
  inputs: readonly tf.Tensor[],
  dys: readonly (tf.Tensor | undefined)[],
): (tf.Tensor | undefined)[] {
  const present = [...dys.keys()].filter((i) => dys[i] !== undefined);
  const operands = branches[0].inputs.length;
  const floats = [...inputs.keys()].filter((i) => isFloat(inputs[i]!));
  const backward = branches.map((branch, k) =>
    branch.extended((input) => {
      const cotangents = present.map((i) => input(specOf(branch.outputs[i]!)));
      const found = gradientsWith(
        present.map((i) => branch.outputs[i]!),
        cotangents,
        [...branch.inputs, ...branch.outer],
      );
      // Of the outer tensors of the other branch, there are no gradients here.
      const skipped = k === 0 ? 0 : branches[0].outer.length;
      const at = (i: number) => (i < operands ? found[i] : found.slice(operands)[i - operands - skipped]);
      return {
        inputs: [...branch.inputs, ...cotangents],
        outputs: floats.map((i) => at(i) ?? zerosOf(inputs[i]!)),
      };
    }),
  ) as [Body, Body];
  const given = [...inputs.slice(0, operands), ...present.map((i) => dys[i]!)];
  const results = recordCond(predicate, backward, given);
  const all: (tf.Tensor | undefined)[] = inputs.map(() => undefined);
  floats.forEach((i, k) => {
    all[i] = results[k];
  });
  return all;
}

/**
 * The leaves of the second branch in the order of the first one's: names, not their order, tell which belong together.
 *
 * @throws CompilerError that names the first leaf by which the results of two branches differ
 */
function matched(onTrue: readonly Leaf<tf.Tensor>[], onFalse: readonly Leaf<tf.Tensor>[]): Leaf<tf.Tensor>[] {
  const rule = 'Both branches return the same structure, shapes and dtypes.';
  const text = (leaf: Leaf<tf.Tensor> | undefined): string =>
    leaf === undefined ? 'nothing' : formatSpec(specOf(leaf.value));
  for (const path of new Set([...onTrue, ...onFalse].map((leaf) => leaf.path))) {
    const [a, b] = [onTrue, onFalse].map((leaves) => leaves.find((leaf) => leaf.path === path));
    const isSame = a && b && a.value.dtype === b.value.dtype && sameShape(a.value.shape, b.value.shape);
    if (isSame) continue;
    const result = path === '' ? 'its result' : `result '${path}'`;
    throw new CompilerError(`cond: onTrue returns ${text(a)} as ${result}, and onFalse ${text(b)}. ${rule}`);
  }
  return onTrue.map(({ path }) => onFalse.find((leaf) => leaf.path === path)!);
}

/**
 * Calls one of two functions, by a scalar bool: while tracing, both are traced, and a run computes one of them. Gradients
 * pass through that one, to `operands` and to whatever else the functions use.
 *
 * @param operands a structure of tensors, which both functions take.
 * @throws CompilerError where the results differ in structure, shapes or dtypes.
 */
export function cond<A extends Tree<tf.Tensor>, R extends Tree<tf.Tensor>>(
  predicate: tf.Tensor,
  onTrue: (operands: A) => R,
  onFalse: (operands: A) => R,
  operands: A,
): R {
  expectsPredicate('cond', predicate);
  if (!isTracing()) return (predicate.dataSync()[0] ? onTrue : onFalse)(operands);
  let first: R | undefined;
  // Operands are outer tensors like all others.
  const trace = (f: (operands: A) => R): Body =>
    traceBody([], () => {
      const result = f(operands);
      const leaves = first === undefined ? leavesOf(result) : matched(leavesOf(first), leavesOf(result));
      first ??= result;
      return leaves.flatMap(({ value }) => (value.size > 0 ? [value] : []));
    });
  let next = 0;
  if (isUnrolling()) {
    const [made, other] = [onTrue(operands), onFalse(operands)];
    const others = matched(leavesOf(made), leavesOf(other));
    return mapTree<tf.Tensor, tf.Tensor>(made, isTensor, (leaf) =>
      tf.where(predicate, leaf, others[next++]!.value),
    ) as R;
  }
  const branches = [trace(onTrue), trace(onFalse)] as [Body, Body];
  const outputs = recordCond(predicate, branches, []);
  return mapTree<tf.Tensor, tf.Tensor>(first!, isTensor, ({ size, shape, dtype }) =>
    size > 0 ? outputs[next++]! : tf.zeros([...shape], dtype as 'float32'),
  ) as R;
}

const leavesOf = (tree: Tree<tf.Tensor>): Leaf<tf.Tensor>[] => flattenTree<tf.Tensor>(tree, isTensor);

/** Options of a loop that ends by a condition. */
export interface WhileOptions {
  /** The most turns: afterwards the loop ends whatever the condition says. */
  readonly maxSteps: number;
}

/**
 * Repeats `body` while `condition` holds, at most `maxSteps` times: the bound gives it a gradient. A compiled program takes
 * all of its turns, most of them without computing the body.
 *
 * @param condition takes the state, and returns a scalar bool.
 * @param body returns the next state, of the same structure, shapes and dtypes.
 * @returns the last state.
 */
export function whileLoop<C extends Tree<tf.Tensor>>(
  condition: (state: C) => tf.Tensor,
  body: (state: C) => C,
  init: C,
  { maxSteps }: WhileOptions,
): C {
  if (!(Number.isInteger(maxSteps) && maxSteps >= 0))
    throw new CompilerError(`whileLoop: expected maxSteps of 0 or more, got ${maxSteps}.`);
  const holds = (state: C): tf.Tensor => {
    const predicate = condition(state);
    expectsPredicate('whileLoop: the condition', predicate);
    return predicate;
  };
  const next = (state: C): C => {
    const made = body(state);
    sameCarry('whileLoop: the body returns', state, made);
    return made;
  };
  if (!isTracing()) {
    let state = init;
    for (let i = 0; i < maxSteps && holds(state).dataSync()[0]; i++) state = next(state);
    return state;
  }
  const turn = (state: C): readonly [C, readonly []] => [
    cond(holds(state), next, (same: C) => same, state),
    [],
  ];
  return scan<C, readonly [], readonly []>(turn, init, [], { length: maxSteps })[0];
}
