/** @file Empty tensors on tfjs backends, whose kernels return uninitialised memory or NaN for them, or never return. */

import { newHostArray, sizeOf, type TensorSpec } from '../program/tensors.js';
import { inferOutputs, kernelNames, ruleOf, withinRule } from '../rules/index.js';
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';

const prepared = new Set<string>();

const isEmpty = (spec: { readonly shape: readonly number[] } | null | undefined): boolean =>
  spec?.shape.includes(0) === true;

/** Makes the kernels of a backend treat empty operands as compiled programs do. */
export function answerForEmpties(backendName: string): void {
  if (prepared.has(backendName)) return;
  prepared.add(backendName);
  for (const name of kernelNames()) {
    const kernel = tf.getKernel(name, backendName);
    if (kernel === undefined) continue;
    tf.unregisterKernel(name, backendName);
    tf.registerKernel({ ...kernel, kernelFunc: answering(name, kernel.kernelFunc) });
  }
}

/** Wraps a kernel: empty operands never reach it where the operation's rule defines the result. */
function answering(op: string, kernelFunc: tf.KernelFunc): tf.KernelFunc {
  const { inputs: names, attrs: attrsOf, listOfOutputs, ofEmpty } = ruleOf(op);
  return (args) => {
    const all = Object.values(args.inputs);
    const isOther = (x: tf.TensorInfo | undefined): boolean =>
      x?.dtype === 'string' || x?.dtype === 'complex64';
    if (!all.some(isEmpty) || all.some(isOther) || args.attrs?.dtype === 'complex64') return kernelFunc(args);
    const inputs = (names === 'list'
      ? all
      : names.map((name) => args.inputs[name])) as unknown as TensorSpec[];
    const attrs = withinRule(op, () => attrsOf?.((args.attrs ?? {}) as RawAttrs, inputs)) ?? {};
    const outputs = inferOutputs(op, inputs, attrs);
    const fills = outputs.map((out) => (isEmpty(out) ? 0 : ofEmpty?.(out.dtype, attrs)));
    if (fills.includes(undefined)) return kernelFunc(args);
    const backend = args.backend as tf.KernelBackend;
    const infos = outputs.map(({ shape, dtype }, i): tf.TensorInfo => {
      const values = newHostArray(dtype, sizeOf(shape)).fill(fills[i]!);
      return { dataId: backend.write(values, [...shape], dtype), shape: [...shape], dtype };
    });
    return infos.length === 1 && !listOfOutputs ? infos[0]! : infos;
  };
}
