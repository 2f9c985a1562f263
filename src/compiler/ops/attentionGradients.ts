/** @file Gradients of attention by queries, keys and values, by its mask, and by its sinks. */
import { type Attrs, ints } from '../program/ir.js';
import { sameShape, sizeOf, type TensorSpec } from '../program/tensors.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import {
  attentionFactors,
  attentionLogits,
  attrsOf,
  backward,
  checkExtras,
  checkShapes,
  GRADIENT_WEIGHTS,
  headsFirst,
  keptOf,
  maskBackward,
  matmulFlops,
  sinkBackward,
} from './attentionForms.js';
import { extrasOf } from './hiddenKeys.js';

/** Gradients of the logits [B, N, T, S] with scale, cap and masks. */
function logitGradients(operands: readonly tf.Tensor[], attrs: Attrs): tf.Tensor {
  const [dy, , , v, out, weights] = operands;
  const { dropKey } = extrasOf(operands.slice(GRADIENT_WEIGHTS + 1), attrs);
  const dWeights = keptOf(tf.matMul(headsFirst(dy!), headsFirst(v!), false, true), dropKey, attrs);
  return tf.mul(weights!, tf.sub(dWeights, rowSumsOf(dy!, out!)));
}

/** The row sums of weights * dWeights that softmax's gradient needs, which equal those of out * dy: [B, N, T, 1]. */
const rowSumsOf = (dy: tf.Tensor, out: tf.Tensor): tf.Tensor =>
  tf.transpose(tf.sum(tf.mul(dy, out), -1, true), [0, 2, 1, 3]);

/** Sums over the axes along which `shape` was broadcast. */
function sumTo(x: tf.Tensor, shape: number[]): tf.Tensor {
  const axes = tf.backend_util.getReductionAxes(shape, x.shape);
  return tf.reshape(axes.length === 0 ? x : tf.sum(x, axes), shape);
}

function checkGradientInputs(inputs: readonly TensorSpec[], attrs: Attrs): void {
  const [dy, q, k, v, out, weights, ...extras] = inputs;
  expectsDtypes(inputs.slice(0, 6), FLOAT);
  checkShapes([q!, k!, v!], attrs);
  checkExtras([q!, k!, v!, ...extras], attrs);
  const [b, t, n] = q!.shape as [number, number, number];
  const [result, logits] = [
    [b, t, n, v!.shape[3]!],
    [b, n, t, k!.shape[1]!],
  ];
  const fit =
    sameShape(dy!.shape, result) && sameShape(out!.shape, result) && sameShape(weights!.shape, logits);
  expects(fit, `dy and out [${result}], and weights [${logits}]`, [dy, out, weights]);
}

/** Factors of dy, q, k, v, out, weights and the operands behind v. */
function gradientLetters(inputs: readonly TensorSpec[], attrs: Attrs) {
  const { heads, weights, extras } = attentionFactors(inputs.slice(6), attrs);
  const own = weights.slice(0, inputs[5]!.shape.length);
  return { heads, weights, inputs: [heads, heads, heads, heads, heads, own, ...extras] };
}

/** The gradient of the mask by dy, q, k, v, out, weights and the operands behind v, of the shape that is an attribute. */
defineOperation('AttentionMaskGrad', {
  inputs: 'list',
  isProduct: true,
  attrs: (raw) => ({ ...attrsOf(raw), shape: [...raw.shape] }),
  infer: (inputs, attrs) => {
    checkGradientInputs(inputs, attrs);
    return [spec(ints(attrs.shape), 'float32')];
  },
  factors: (inputs, outputs, attrs) => {
    const mask = gradientLetters(inputs, attrs);
    const [out] = outputs as [TensorSpec];
    return lettered(
      mask.inputs,
      [mask.weights.slice(4 - out.shape.length)],
      { inputs, outputs },
      {
        localAttrs: (shape) => ({ shape }),
      },
    );
  },
  flops: ([, q, k]) => 2 * matmulFlops([q!, k!]),
  device: maskBackward,
  decompose: (inputs, attrs) => [sumTo(logitGradients(inputs, attrs), [...ints(attrs.shape)])],
});

/** The gradient of the sinks [N] by the same operands: a sink's weight is what those of the keys leave of 1. */
defineOperation('AttentionSinkGrad', {
  inputs: 'list',
  attrs: attrsOf,
  infer: (inputs, attrs) => {
    checkGradientInputs(inputs, attrs);
    return [spec([inputs[1]!.shape[2]!], 'float32')];
  },
  factors: (inputs, outputs, attrs) => {
    const { inputs: letters, weights } = gradientLetters(inputs, attrs);
    return lettered(letters, [weights[1]!], { inputs, outputs });
  },
  flops: ([dy]) => 2 * sizeOf(dy!.shape),
  device: sinkBackward,
  decompose: ([dy, , , , out, weights]) => {
    const ofSink = tf.sub(1, tf.sum(weights!, -1, true));
    return [tf.neg(tf.sum(tf.mul(ofSink, rowSumsOf(dy!, out!)), [0, 2, 3]))];
  },
});

/** Gradients of q, k and v by dy, q, k, v, out, weights and the operands behind v. */
defineOperation('AttentionGrad', {
  inputs: 'list',
  isProduct: true,
  attrs: attrsOf,
  infer: (inputs, attrs) => {
    checkGradientInputs(inputs, attrs);
    return inputs.slice(1, 4).map(({ shape }) => spec(shape, 'float32'));
  },
  factors: (inputs, outputs, attrs) => {
    const { inputs: letters, heads } = gradientLetters(inputs, attrs);
    return lettered(letters, [heads, heads, heads], { inputs, outputs });
  },
  flops: ([, q, k]) => 4 * matmulFlops([q!, k!]),
  device: backward,
  decompose: (inputs, attrs) => {
    const [dy, q, k, , , weights, ...extras] = inputs;
    const { dropKey } = extrasOf(extras, attrs);
    const scale = attrs.scale as number;
    const cap = attrs.logitCap as number;
    const slopes = (): tf.Tensor => {
      const logits = tf.mul(attentionLogits(q!, k!), scale);
      return tf.sub(1, tf.square(tf.tanh(tf.div(logits, cap))));
    };
    const ofSeen = logitGradients(inputs, attrs);
    const dLogits = cap > 0 ? tf.mul(ofSeen, slopes()) : ofSeen;
    return [
      headsFirst(tf.mul(tf.matMul(dLogits, headsFirst(k!)), scale)),
      headsFirst(tf.mul(tf.matMul(dLogits, headsFirst(q!), true, false), scale)),
      headsFirst(tf.matMul(keptOf(weights!, dropKey, attrs), headsFirst(dy!), true, false)),
    ];
  },
});
