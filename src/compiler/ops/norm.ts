/** @file Layer norm and RMS norm over the last axis. */

import { layerNorm as onnxLayerNorm } from '../onnx/alongAxis.js';
import type { Attrs } from '../program/ir.js';
import type { TensorSpec } from '../program/tensors.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, type Facts, FLOAT, perInputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

const epsilonOf = (attrs: Attrs): number => attrs.epsilon as number;

/** All axes but the last; gradients of scale and bias are summed over them. */
const leadingAxes = (x: tf.Tensor): number[] => Array.from({ length: x.rank - 1 }, (_, i) => i);

const statistics = (x: TensorSpec): TensorSpec => spec([...x.shape.slice(0, -1), 1], 'float32');

/** Names the inputs [x, scale?, bias?]; attributes say which are present. */
const optional = (inputs: readonly tf.Tensor[], attrs: Attrs) => ({
  x: inputs[0]!,
  scale: attrs.hasScale ? inputs[1]! : null,
  bias: attrs.hasBias ? inputs.at(-1)! : null,
});

const common: Pick<Facts, 'inputs' | 'attrs' | 'factors'> = {
  inputs: 'list',
  factors: (inputs, outputs) => {
    const rows = inputs[0]!.shape.slice(1).map((_, axis) => `${axis}`);
    const weights = inputs.slice(1).map(() => '.');
    const line = [...rows, '.'];
    return lettered(
      [line, ...weights],
      outputs.map(() => line),
      { inputs, outputs },
    );
  },
  attrs: (raw) => ({ epsilon: raw.epsilon, hasScale: raw.hasScale, hasBias: raw.hasBias }),
};

/** Infers outputs like x, and `statistics` values per row; checks [x, scale?, bias?]. */
const infer =
  (count: number): Facts['infer'] =>
  (inputs, attrs) => {
    const [x, ...weights] = inputs;
    expectsDtypes(inputs, FLOAT);
    const wanted = Number(attrs.hasScale) + Number(attrs.hasBias);
    const width = x!.shape.at(-1);
    const fits = ({ shape }: TensorSpec): boolean => shape.length === 1 && shape[0] === width;
    expects(
      width !== undefined && weights.length === wanted && weights.every(fits),
      `x of rank 1 or more, and ${wanted} weights of the size of its last axis`,
      inputs,
    );
    return [spec(x!.shape, 'float32'), ...new Array<TensorSpec>(count).fill(statistics(x!))];
  };

/** Gradients of y = n * scale + bias; the gradient through the normalized n is given as a function. */
function affineGradients(
  dy: tf.Tensor,
  normalized: tf.Tensor,
  { scale, bias }: { scale: tf.Tensor | null; bias: tf.Tensor | null },
  dx: (dn: tf.Tensor) => tf.Tensor,
): tf.Tensor[] {
  const axes = leadingAxes(dy);
  return [
    dx(scale === null ? dy : tf.mul(dy, scale)),
    ...(scale === null ? [] : [tf.sum(tf.mul(dy, normalized), axes)]),
    ...(bias === null ? [] : [tf.sum(dy, axes)]),
  ];
}

function affine(
  normalized: tf.Tensor,
  { scale, bias }: { scale: tf.Tensor | null; bias: tf.Tensor | null },
): tf.Tensor {
  const scaled = scale === null ? normalized : tf.mul(normalized, scale);
  return bias === null ? scaled : tf.add(scaled, bias);
}

/** Outputs: y, and the mean and reciprocal standard deviation of each row. */
defineOperation('LayerNorm', {
  ...common,
  infer: infer(2),
  flops: perInputElement(8),
  onnx: onnxLayerNorm,
  decompose: (inputs, attrs) => {
    const { x, ...weights } = optional(inputs, attrs);
    const mean = tf.mean(x, -1, true);
    const centered = tf.sub(x, mean);
    const rstd = tf.rsqrt(tf.add(tf.mean(tf.square(centered), -1, true), epsilonOf(attrs)));
    return [affine(tf.mul(centered, rstd), weights), mean, rstd];
  },
  gradient: (dy, inputs, [, mean, rstd], attrs) => {
    const { x, ...weights } = optional(inputs, attrs);
    const normalized = tf.mul(tf.sub(x, mean!), rstd!);
    return affineGradients(dy, normalized, weights, (dn) => {
      const parallel = tf.mul(normalized, tf.mean(tf.mul(dn, normalized), -1, true));
      return tf.mul(tf.sub(tf.sub(dn, parallel), tf.mean(dn, -1, true)), rstd!);
    });
  },
});

/** Outputs: y, and the reciprocal root mean square of each row. */
defineOperation('RmsNorm', {
  ...common,
  infer: infer(1),
  flops: perInputElement(5),
  decompose: (inputs, attrs) => {
    const { x, ...weights } = optional(inputs, attrs);
    const rstd = tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), epsilonOf(attrs)));
    return [affine(tf.mul(x, rstd), weights), rstd];
  },
  gradient: (dy, inputs, [, rstd], attrs) => {
    const { x, ...weights } = optional(inputs, attrs);
    const normalized = tf.mul(x, rstd!);
    return affineGradients(dy, normalized, weights, (dn) => {
      const parallel = tf.mul(normalized, tf.mean(tf.mul(dn, normalized), -1, true));
      return tf.mul(tf.sub(dn, parallel), rstd!);
    });
  },
});

/** Options of the norms. */
export interface NormOptions {
  /** Added to the variance (layer norm) or mean square (RMS norm) under the root. */
  readonly epsilon: number;
}

const call = (
  name: string,
  x: tf.Tensor,
  scale: tf.Tensor | null,
  bias: tf.Tensor | null,
  { epsilon }: NormOptions,
): tf.Tensor =>
  callComposite(name, [x, ...(scale ? [scale] : []), ...(bias ? [bias] : [])], {
    epsilon,
    hasScale: scale !== null,
    hasBias: bias !== null,
  });

/**
 * (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis (Ba et al., 2016).
 *
 * @param x float32 [..., D].
 * @param scale [D], used as given, or null for 1.
 * @param bias [D], or null for 0.
 */
export function layerNorm(
  x: tf.Tensor,
  scale: tf.Tensor | null,
  bias: tf.Tensor | null,
  options: NormOptions,
): tf.Tensor {
  return call('LayerNorm', x, scale, bias, options);
}

/**
 * x / sqrt(mean(x^2) + epsilon) * scale over the last axis (Zhang and Sennrich, 2019).
 *
 * @param x float32 [..., D].
 * @param scale [D], used as given, or null for 1.
 */
export function rmsNorm(x: tf.Tensor, scale: tf.Tensor | null, options: NormOptions): tf.Tensor {
  return call('RmsNorm', x, scale, null, options);
}
