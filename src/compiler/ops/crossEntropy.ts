/** @file Softmax cross-entropy against integer labels. */

import { perInputElement, perOutputElement, spec } from '../rules/rule.js';
import * as tf from '../tfjs.js';
import { isTracing, recordOp } from '../trace.js';
import { callComposite, defineComposite } from './composite.js';

/** Rows with a 1 at the label. A program's labels are checked apart; eagerly a gather refuses those that are no class. */
function oneHot(labels: tf.Tensor, like: tf.Tensor): tf.Tensor {
  const classes = like.shape.at(-1)!;
  const checked = isTracing() ? labels : tf.gather(tf.range(0, classes, 1, 'int32'), labels as tf.Tensor1D);
  return tf.oneHot(checked as tf.Tensor1D, classes);
}

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
