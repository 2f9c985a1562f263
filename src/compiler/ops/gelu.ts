/** @file Gaussian error linear unit (Hendrycks and Gimpel, 2016). */

import { gelu as onnxGelu } from '../onnx/arithmetic.js';
import { sameShape } from '../program/tensors.js';
import { MAP } from '../rules/deviceForm.js';
import { elementwise } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, perInputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { recordOp } from '../trace/tracing.js';
import { callComposite } from './composite.js';

/** sqrt(2 / pi) and the cubic coefficient of the tanh approximation. */
const TANH_SCALE = Math.sqrt(2 / Math.PI);
const TANH_CUBIC = 0.044715;

const tanhPart = (x: tf.Tensor): tf.Tensor =>
  tf.tanh(tf.mul(x, tf.add(tf.mul(tf.square(x), TANH_SCALE * TANH_CUBIC), TANH_SCALE)));

defineOperation('Gelu', {
  inputs: ['x'],
  attrs: (raw) => ({ approximate: raw.approximate }),
  infer: ([x]) => {
    expectsDtypes([x!], FLOAT);
    return [spec(x!.shape, 'float32')];
  },
  factors: elementwise,
  flops: perInputElement(8),
  decompose: ([x], { approximate }) => {
    const twiceCdf = tf.add(approximate ? tanhPart(x!) : tf.erf(tf.mul(x!, Math.SQRT1_2)), 1);
    return [tf.mul(tf.mul(x!, 0.5), twiceCdf)];
  },
  gradient: (dy, [x], _, attrs) => recordOp('GeluGrad', [dy, x!], attrs),
  onnx: onnxGelu,
});

/** dy * gelu'(x), in few passes over memory. */
defineOperation('GeluGrad', {
  inputs: ['dy', 'x'],
  attrs: (raw) => ({ approximate: raw.approximate }),
  infer: ([dy, x]) => {
    expectsDtypes([dy!, x!], FLOAT);
    expects(sameShape(dy!.shape, x!.shape), 'two tensors of one shape', [dy, x]);
    return [spec(x!.shape, 'float32')];
  },
  factors: elementwise,
  flops: perInputElement(12),
  device: { ...MAP, keeps: ({ attrs }) => !attrs.approximate },
  decompose: ([dy, x], { approximate }) => {
    if (approximate) {
      const t = tanhPart(x!);
      const slope = tf.add(tf.mul(tf.square(x!), 3 * TANH_SCALE * TANH_CUBIC), TANH_SCALE);
      const curve = tf.mul(tf.mul(tf.sub(1, tf.square(t)), slope), x!);
      return [tf.mul(tf.mul(dy!, 0.5), tf.add(tf.add(t, 1), curve))];
    }
    // With s = x / sqrt(2): gelu'(x) = (1 + erf(s) + s exp(-s^2) 2 / sqrt(pi)) / 2. The factor 1/2 is applied to dy,
    // where it merges into the matrix product behind dy.
    const s = tf.mul(x!, Math.SQRT1_2);
    const bell = tf.mul(tf.exp(tf.mul(tf.mul(s, -1), s)), tf.mul(s, 2 / Math.sqrt(Math.PI)));
    return [tf.mul(tf.mul(dy!, 0.5), tf.add(tf.add(tf.erf(s), 1), bell))];
  },
});

/**
 * x * Phi(x), elementwise.
 *
 * @param x float32 of any shape.
 * @param options.approximate the tanh approximation (BERT's and GPT-2's) instead of the error function.
 */
export function gelu(x: tf.Tensor, options: { readonly approximate?: boolean } = {}): tf.Tensor {
  return callComposite('Gelu', [x], { approximate: options.approximate ?? false });
}
