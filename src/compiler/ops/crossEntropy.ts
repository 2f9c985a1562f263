/** @file Softmax cross-entropy against integer labels. */

import { crossEntropy, crossEntropyGrad } from '../onnx/indexingLowerings.js';
import { sameShape, type TensorSpec } from '../program/tensors.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { classesOf, expects, perInputElement, perOutputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';
import { callComposite } from './composite.js';

/** One-hot rows. A program checks its labels separately; in eager execution, a gather rejects labels out of range. */
function oneHot(labels: tf.Tensor, like: tf.Tensor): tf.Tensor {
  const classes = like.shape.at(-1)!;
  const checked = isTracing() ? labels : tf.gather(tf.range(0, classes, 1, 'int32'), labels as tf.Tensor1D);
  return tf.oneHot(checked as tf.Tensor1D, classes);
}

function expectsLabels(logits: TensorSpec, labels: TensorSpec): void {
  const fit = logits.shape.length > 0 && sameShape(labels.shape, logits.shape.slice(0, -1));
  expects(
    fit &&
      (logits.shape.at(-1) !== 0 || labels.shape.includes(0)) &&
      logits.dtype === 'float32' &&
      labels.dtype === 'int32',
    'logits float32[...,V] of V classes, 1 or more, and labels int32[...]',
    [logits, labels],
  );
}

const placesOf = ({ shape }: TensorSpec): string[] => shape.map((_, axis) => `${axis}`);

/** Outputs: the cross-entropy of each position, and the log-probabilities, which the gradient reads. */
defineOperation('SoftmaxCrossEntropy', {
  inputs: ['logits', 'labels'],
  indices: { operand: 1, address: ([logits]) => classesOf(logits!) },
  infer: ([logits, labels]) => {
    expectsLabels(logits!, labels!);
    return [spec(labels!.shape, 'float32'), spec(logits!.shape, 'float32')];
  },
  flops: perInputElement(6),
  factors: (inputs, outputs) => {
    const places = placesOf(inputs[1]!);
    return lettered([[...places, '.'], places], [places, [...places, '.']], { inputs, outputs });
  },
  onnx: crossEntropy,
  decompose: ([logits, labels]) => {
    const logProbs = tf.logSoftmax(logits!);
    return [tf.neg(tf.sum(tf.mul(logProbs, oneHot(labels!, logProbs)), -1)), logProbs];
  },
  gradient: (dy, [, labels], [, logProbs]) =>
    recordOp('SoftmaxCrossEntropyGrad', [dy, logProbs!, labels!], {}),
});

/** dy * (softmax - onehot(labels)). */
defineOperation('SoftmaxCrossEntropyGrad', {
  inputs: ['dy', 'logProbs', 'labels'],
  indices: { operand: 2, address: ([, logProbs]) => classesOf(logProbs!) },
  infer: ([dy, logProbs, labels]) => {
    expectsLabels(logProbs!, labels!);
    expects(dy!.dtype === 'float32' && sameShape(dy!.shape, labels!.shape), 'a gradient for each label', [
      dy,
      labels,
    ]);
    return [spec(logProbs!.shape, 'float32')];
  },
  flops: perOutputElement(3),
  factors: (inputs, outputs) => {
    const places = placesOf(inputs[2]!);
    return lettered([places, [...places, '.'], places], [[...places, '.']], { inputs, outputs });
  },
  onnx: crossEntropyGrad,
  decompose: ([dy, logProbs, labels]) => [
    tf.mul(tf.sub(tf.exp(logProbs!), oneHot(labels!, logProbs!)), tf.expandDims(dy!, -1)),
  ],
});

/**
 * -log softmax(logits)[label] of each position.
 *
 * @param logits float32 [..., V].
 * @param labels int32 [...], each in [0, V).
 * @returns float32 [...], in nats.
 */
export function softmaxCrossEntropy(logits: tf.Tensor, labels: tf.Tensor): tf.Tensor {
  return callComposite('SoftmaxCrossEntropy', [logits, labels], {}, 1);
}
