/** @file Checkpoints: functions whose gradient computes again what it needs, instead of keeping it. */
import { barrier } from '../onnx/shapes.js';
import { CompilerError } from '../program/tensors.js';
import { MOVE } from '../rules/deviceForm.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, spec } from '../rules/operation.js';
import type * as tf from '../tfjs/tfjs.js';
import { type CheckpointPolicy, currentMark, withMark } from '../trace/regions.js';
import { nameTensor } from '../trace/tracing.js';

export type { CheckpointPolicy } from '../trace/regions.js';

/**
 * All inputs but the last, unchanged, once the last one exists. Common subexpressions are not found across it, so that
 * what is computed from its outputs is computed again.
 */
defineOperation('Barrier', {
  inputs: 'list',
  infer: (inputs) => {
    expects(inputs.length > 0, 'tensors and the one that they wait for', inputs);
    return inputs.slice(0, -1).map(({ shape, dtype }) => spec(shape, dtype));
  },
  isView: true,
  factors: (inputs, outputs) => {
    const names = inputs.map(({ shape }, i) => shape.map((_, axis) => `${i} ${axis}`));
    // Nothing is computed of the last one.
    const reductions = Object.fromEntries(names.at(-1)!.map((name) => [name, 'none' as const]));
    return lettered(names, names.slice(0, -1), { inputs, outputs }, { reductions });
  },
  onnx: barrier,
  device: MOVE,
});

const POLICIES: readonly string[] = [
  'nothing',
  'everything',
  'dots',
  'dotsWithNoBatchDims',
] satisfies CheckpointPolicy[];

/**
 * The same function with another gradient: what `f` computes is not kept for it, but computed again in the backward
 * pass, from the arguments and from whatever else `f` reads. Values and gradients stay the same, in machine code but for
 * the last digit; the native engine's peak of memory falls, and each run takes up to a third longer. Calls may be nested. As
 * jax.checkpoint.
 *
 * In eager execution and under `lazy` it is `f`.
 *
 * @param f is called once for each call; every tensor that it reads has a gradient, those of outer functions too.
 * @param policy what is kept nevertheless.
 * @throws CompilerError for a policy that there is not.
 */
export function checkpoint<Args extends readonly unknown[], R>(
  f: (...args: Args) => R,
  policy: CheckpointPolicy = 'nothing',
): (...args: Args) => R {
  if (typeof policy === 'string' && !POLICIES.includes(policy)) {
    const known = POLICIES.map((name) => `'${name}'`).join(', ');
    throw new CompilerError(
      `ops.checkpoint: expected ${known} or a list of names as policy, got ${JSON.stringify(policy)}.`,
    );
  }
  return (...args) => {
    const region = { policy, parent: currentMark()?.region ?? null };
    return withMark({ region, isGradient: false }, () => f(...args));
  };
}

/** `tensor`, with a name by which the policies of checkpoints keep it. */
export function checkpointName<T extends tf.Tensor>(tensor: T, name: string): T {
  nameTensor(tensor, name);
  return tensor;
}
