/** @file Kernels of complex numbers that a tfjs backend lacks or has wrong, part by part. */

import { complexCall, complexKernelNames } from '../decompositions/decomposition.js';
import { sameShape } from '../program/tensors.js';
import { withinRule } from '../rules/index.js';
import type { RawAttrs } from '../rules/operation.js';
import { reveal } from '../tfjs/complexGradients.js';
import * as tf from '../tfjs/tfjs.js';

/** Kernels whose complex numbers tfjs's cpu backend computes itself. */
const OWN = [
  ...['Cast', 'ComplexAbs', 'Concat', 'ExpandDims', 'FFT', 'IFFT', 'Identity', 'OnesLike', 'Pack', 'Reshape'],
  'ZerosLike',
];

/** It also adds and multiplies complex numbers, but wrongly where it broadcasts. */
const isOwn = (name: string, { a, b }: tf.NamedTensorInfoMap): boolean =>
  ['Add', 'Sub', 'Multiply'].includes(name) && sameShape(a!.shape, b!.shape);

const prepared = new Set<string>();

/** Has the kernels of a backend take complex numbers wherever those of programs do. */
export function answerForComplex(backendName: string): void {
  if (prepared.has(backendName)) return;
  prepared.add(backendName);
  for (const name of complexKernelNames()) {
    const kernel = tf.getKernel(name, backendName);
    if (kernel === undefined || OWN.includes(name)) continue;
    tf.unregisterKernel(name, backendName);
    const kernelFunc: tf.KernelFunc = (args) => {
      // tfjs's tape adds gradients.
      if (name === 'Add') reveal(Object.values(args.inputs));
      const attrs = (args.attrs ?? {}) as RawAttrs;
      const byParts = withinRule(name, () => complexCall(name, args.inputs, attrs));
      if (byParts === undefined || isOwn(name, args.inputs)) return kernel.kernelFunc(args);
      return byParts(args.inputs as Record<string, tf.Tensor>, attrs);
    };
    tf.registerKernel({ ...kernel, kernelFunc });
  }
}
