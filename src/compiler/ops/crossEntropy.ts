/** @file Softmax cross-entropy against integer labels. */

import { perInputElement, perOutputElement, spec } from '../rules/rule.js';
import * as tf from '../tfjs.js';
import { recordOp } from '../trace.js';
import { callComposite, defineComposite } from './composite.js';

const oneHot = (labels: tf.Tensor, like: tf.Tensor): tf.Tensor =>
  tf.oneHot(labels as tf.Tensor1D, like.shape.at(-1)!);

/** Outputs: the cross-entropy of each position, and the log-probabilities, which the gradient reads. */
defineComposite('SoftmaxCrossEntropy', {
  inputs: ['logits', 'labels'],
  infer: ([logits, labels]) => [spec(labels!.shape, 'float32'), logits!],
  flops: perInputElement(6),
  decompose: ([logits, labels]) => {
    const logProbs = tf.logSoftmax(logits!);
    return [tf.neg(tf.sum(tf.mul(logProbs, oneHot(labels!, logProbs)), -1)), logProbs];
  },
  gradient: (dy, [, labels], [, logProbs]) =>
    recordOp('SoftmaxCrossEntropyGrad', [dy, logProbs!, labels!], {}),
});

/** dy * (softmax - onehot(labels)). */
defineComposite('SoftmaxCrossEntropyGrad', {
  inputs: ['dy', 'logProbs', 'labels'],
  infer: ([, logProbs]) => [logProbs!],
  flops: perOutputElement(3),
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
