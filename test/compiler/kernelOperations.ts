/** @file Operations of random programs that are cases of the rules and decompositions: every one there is. */
import { type HostTensor, type Tensor, tf } from '../../src/compiler/index.js';
import { isTracing } from '../../src/compiler/trace/tracing.js';
import type { Case } from './cases/case.js';
import { caseTable } from './cases/index.js';
import type { Inputs } from './programOperations.js';

/** The cases by the name of their step. */
const cases = new Map(Object.entries(caseTable).map(([op, list]) => [`kernel ${op}`, list]));

/** The names of the steps: one for each operation with a rule, and for each decomposed kernel. */
export const kernelSteps: readonly string[] = [...cases.keys()];

/** 1, in a way that no pass sees through. */
const one = ({ ids }: Inputs<Tensor>): Tensor => tf.minimum(tf.add(tf.max(ids), 1), tf.scalar(1, 'int32'));

/** Smaller than the distance that cases keep from kinks. */
const SHIFT = 2 ** -8;

/** An input with the values of the case, which the program computes. */
function computed({ data, shape, dtype }: HostTensor, unit: Tensor, shift: Tensor | null): Tensor {
  const x = tf.tensor(data as Float32Array, [...shape], dtype);
  if (dtype === 'bool') return tf.logicalAnd(x, tf.cast(unit, 'bool'));
  const same = tf.mul(x, tf.cast(unit, dtype));
  return shift === null ? same : tf.add(same, shift);
}

/** A case's results: those that have a gradient, to go on with, and those that have none. */
export interface KernelResults {
  readonly smooth: Tensor[];
  readonly exact: Tensor[];
}

/** Runs a case on inputs that depend on `x` as far as they are differentiated. */
export function runKernelStep(op: string, n: number, x: Tensor, inputs: Inputs<Tensor>): KernelResults {
  const list = cases.get(op)!;
  const chosen: Case = list[n % list.length]!;
  const [unit, shift] = [one(inputs), tf.mul(tf.mean(tf.tanh(x)), SHIFT)];
  const given = chosen.inputs.map((input, i) =>
    computed(input, unit, i < chosen.differentiable ? shift : null),
  );
  const outputs = [(isTracing() ? chosen.f : (chosen.oracle ?? chosen.f))(...given)].flat();
  if (chosen.differentiable === 0) return { smooth: [], exact: outputs };
  return { smooth: outputs.map((y) => tf.mul(tf.tanh(tf.cast(y, 'float32')), 0.25)), exact: [] };
}
