/** @file Multi-head scaled dot-product attention (Vaswani et al., 2017). */

import type { Attrs } from '../ir.js';
import { currentPrecision, precisionAttr } from '../precision.js';
import { broadcastShapes } from '../rules/elementwiseRules.js';
import { expects, expectsDtypes, FLOAT, spec } from '../rules/rule.js';
import { CompilerError, formatSpec, sameShape, sizeOf, type TensorSpec } from '../tensors.js';
import * as tf from '../tfjs.js';
import { hostConstant, recordOp } from '../tracing.js';
import { callComposite, defineComposite } from './composite.js';

/** Logit of a hidden key: below anything that an additive mask produces for a visible one. */
const UNSEEN = Number.NEGATIVE_INFINITY;

const headsFirst = (x: tf.Tensor): tf.Tensor => tf.transpose(x, [0, 2, 1, 3]);

/** 0 where query t may see key s, else -Infinity; queries are at the last positions. Shape [T, S]. */
function causalMask(queries: number, keys: number): tf.Tensor {
  return hostConstant(`causalMask ${queries} ${keys}`, { shape: [queries, keys], dtype: 'float32' }, () => {
    const values = new Float32Array(queries * keys);
    for (let t = 0; t < queries; t++) values.fill(UNSEEN, t * keys + t + keys - queries + 1, (t + 1) * keys);
    return values;
  });
}

/** 0 where a query may see one of the first `visible` of S keys, else -Infinity. Shape [T, S]. */
function visibleMask(visible: tf.Tensor, queries: number, keys: number, causal: boolean): tf.Tensor {
  const key = tf.reshape(tf.range(0, keys, 1, 'int32'), [1, keys]);
  const ends = causal ? tf.range(1 - queries, 1, 1, 'int32') : tf.zeros([queries], 'int32');
  const end = tf.reshape(tf.add(ends, visible), [queries, 1]);
  return tf.where(tf.less(key, end), tf.scalar(0), tf.scalar(UNSEEN));
}

/** Names the composite's inputs after q, k and v. */
const extrasOf = (
  inputs: readonly tf.Tensor[],
  { counted }: Attrs,
): { visible?: tf.Tensor; mask?: tf.Tensor } => ({
  ...(counted ? { visible: inputs.at(-1)! } : {}),
  ...(inputs.length > (counted ? 4 : 3) ? { mask: inputs[3]! } : {}),
});

/** Softmax that gives zeros where every logit is -Infinity. */
function softmaxOfSeen(logits: tf.Tensor): tf.Tensor {
  const unseen = tf.equal(tf.max(logits, -1, true), UNSEEN);
  const zeros = tf.zerosLike(logits);
  return tf.where(unseen, zeros, tf.softmax(tf.where(unseen, zeros, logits)));
}

/** Unscaled logits q k^T per head: [B, N, T, S] from q [B, T, N, H] and k [B, S, N, H]. */
export const attentionLogits = (q: tf.Tensor, k: tf.Tensor): tf.Tensor =>
  tf.matMul(headsFirst(q), headsFirst(k), false, true);

/** Softmax weights [B, N, T, S]. */
function probabilities(
  q: tf.Tensor,
  k: tf.Tensor,
  { mask, visible, logits: ownLogits }: Pick<AttentionOptions, 'mask' | 'visible' | 'logits'>,
  attrs: Attrs,
): tf.Tensor {
  const scale = attrs.scale as number;
  let logits = ownLogits ? ownLogits(tf.mul(q, scale), k) : tf.mul(attentionLogits(q, k), scale);
  const cap = attrs.logitCap as number;
  if (cap > 0) logits = tf.mul(tf.tanh(tf.div(logits, cap)), cap);
  const [queries, keys] = [q.shape[1]!, k.shape[1]!];
  if (visible) logits = tf.add(logits, visibleMask(visible, queries, keys, attrs.causal as boolean));
  else if (attrs.causal) logits = tf.add(logits, causalMask(queries, keys));
  if (mask) logits = tf.add(logits, mask);
  // With causal masking alone, every query sees a key.
  return mask || visible ? softmaxOfSeen(logits) : tf.softmax(logits);
}

const attrsOf = (raw: any): Attrs => ({
  scale: raw.scale,
  causal: raw.causal,
  logitCap: raw.logitCap,
  ...(raw.counted ? { counted: true } : {}),
  ...precisionAttr(raw),
});

function checkShapes([q, k, v]: readonly TensorSpec[], { causal }: Attrs): void {
  const [b, , n, h] = q!.shape;
  const fits = (x: TensorSpec): boolean => x.shape.length === 4 && x.shape[0] === b && x.shape[2] === n;
  if (q!.shape.length !== 4 || !fits(k!) || !fits(v!) || k!.shape[3] !== h || k!.shape[1] !== v!.shape[1]) {
    throw new CompilerError(
      `attention: expected q [B,T,N,H], k [B,S,N,H] and v [B,S,N,H], got ${formatSpec(q!)}, ${formatSpec(k!)} and ${formatSpec(v!)}.`,
    );
  }
  if (causal && q!.shape[1]! > k!.shape[1]!) {
    throw new CompilerError(
      `attention: expected at most as many causal queries as keys, got ${q!.shape[1]} queries and ${k!.shape[1]} keys.`,
    );
  }
}

/** Checks the inputs after q, k and v: a mask that broadcasts to the logits, and the number of keys. */
function checkExtras([q, k, , ...extras]: readonly TensorSpec[], { counted }: Attrs): void {
  const masks = counted ? extras.slice(0, -1) : extras;
  const visible = counted ? extras.at(-1) : undefined;
  const logits = [q!.shape[0]!, q!.shape[2]!, q!.shape[1]!, k!.shape[1]!];
  const isMask = ({ dtype, shape }: TensorSpec): boolean =>
    dtype === 'float32' && sameShape(broadcastShapes(shape, logits), logits);
  expects(
    masks.length <= 1 && masks.every(isMask),
    `at most one mask float32 that broadcasts to [${logits}]`,
    masks,
  );
  const isCount = visible === undefined || (visible.dtype === 'int32' && visible.shape.length === 0);
  expects(isCount, 'a number of keys int32[]', visible);
}

const matmulFlops = (inputs: readonly TensorSpec[]): number =>
  2 * sizeOf(inputs[0]!.shape) * inputs[1]!.shape[1]!;

/**
 * Inputs q, k, v, an optional mask and, with attribute `counted`, the number of valid keys. Outputs: the result [B, T,
 * N, H] and the weights [B, N, T, S], which a lowering need not keep if it recomputes them in the gradient.
 */
defineComposite('Attention', {
  inputs: 'list',
  isProduct: true,
  attrs: attrsOf,
  infer: (inputs, attrs) => {
    checkShapes(inputs, attrs);
    expectsDtypes(inputs.slice(0, 3), FLOAT);
    checkExtras(inputs, attrs);
    const [q, k, v] = inputs;
    const [b, t, n] = q!.shape as [number, number, number];
    return [spec([b, t, n, v!.shape[3]!], 'float32'), spec([b, n, t, k!.shape[1]!], 'float32')];
  },
  flops: (inputs) => 2 * matmulFlops(inputs),
  decompose: (inputs, attrs) => {
    const [q, k, v] = inputs;
    const weights = probabilities(q!, k!, extrasOf(inputs, attrs), attrs);
    return [headsFirst(tf.matMul(weights, headsFirst(v!))), weights];
  },
  gradient: (dy, [q, k, v], [out, weights], attrs) => {
    if (attrs.counted)
      throw new CompilerError('attention over a number of keys that is known at run time has no gradient.');
    return recordOp('AttentionGrad', [dy, q!, k!, v!, out!, weights!], attrs);
  },
  lateGradient: (dy, mask, [, , v], [out, weights]) =>
    sumTo(logitGradients(dy, v!, out!, weights!), mask.shape),
});

/** Gradients of the logits [B, N, T, S] with scale and masks. */
function logitGradients(dy: tf.Tensor, v: tf.Tensor, out: tf.Tensor, weights: tf.Tensor): tf.Tensor {
  const dWeights = tf.matMul(headsFirst(dy), headsFirst(v), false, true);
  // Softmax's gradient needs the row sums of weights * dWeights, which equal those of out * dy.
  const rowSums = tf.transpose(tf.sum(tf.mul(dy, out), -1, true), [0, 2, 1, 3]);
  return tf.mul(weights, tf.sub(dWeights, rowSums));
}

/** Sums over the axes along which `shape` was broadcast. */
function sumTo(x: tf.Tensor, shape: number[]): tf.Tensor {
  const axes = tf.backend_util.getReductionAxes(shape, x.shape);
  return tf.reshape(axes.length === 0 ? x : tf.sum(x, axes), shape);
}

/** Gradients of q, k and v. */
defineComposite('AttentionGrad', {
  inputs: ['dy', 'q', 'k', 'v', 'out', 'weights'],
  isProduct: true,
  attrs: attrsOf,
  infer: (inputs, attrs) => {
    const [dy, q, k, v, out, weights] = inputs;
    expectsDtypes(inputs, FLOAT);
    checkShapes([q!, k!, v!], attrs);
    const [b, t, n] = q!.shape as [number, number, number];
    const [result, logits] = [
      [b, t, n, v!.shape[3]!],
      [b, n, t, k!.shape[1]!],
    ];
    const fit =
      sameShape(dy!.shape, result) && sameShape(out!.shape, result) && sameShape(weights!.shape, logits);
    expects(fit, `dy and out [${result}], and weights [${logits}]`, [dy, out, weights]);
    return [q!, k!, v!].map(({ shape }) => spec(shape, 'float32'));
  },
  flops: ([, q, k]) => 4 * matmulFlops([q!, k!]),
  decompose: ([dy, q, k, v, out, weights], attrs) => {
    const scale = attrs.scale as number;
    const dLogits = logitGradients(dy!, v!, out!, weights!);
    return [
      headsFirst(tf.mul(tf.matMul(dLogits, headsFirst(k!)), scale)),
      headsFirst(tf.mul(tf.matMul(dLogits, headsFirst(q!), true, false), scale)),
      headsFirst(tf.matMul(weights!, headsFirst(dy!), true, false)),
    ];
  },
});

/** Options of attention. */
export interface AttentionOptions {
  /** Factor of the logits; 1 / sqrt(H) by default. */
  readonly scale?: number;
  /** Query t sees keys up to its own position; with fewer queries than keys, queries are at the last positions. */
  readonly causal?: boolean;
  /** Logits become cap * tanh(logits / cap); 0 for none (Pax's atten_logit_cap). */
  readonly logitCap?: number;
  /** Added to the logits; broadcasts to [B, N, T, S]; -Infinity hides a key. Where it has a gradient, such as a trained bias, the weights of all
   * pairs are kept for it. */
  readonly mask?: tf.Tensor;
  /**
   * int32 scalar: only this many leading keys are valid, as in a cache that is partly filled; causal queries are the
   * last of these. Excludes gradients.
   */
  readonly visible?: tf.Tensor;
  /** Computes logits [B, N, T, S] from scaled q and k, in place of q k^T. */
  readonly logits?: (q: tf.Tensor, k: tf.Tensor) => tf.Tensor;
  /** Transforms the softmax weights [B, N, T, S] before they are applied to the values, such as by dropout. */
  readonly dropout?: (weights: tf.Tensor) => tf.Tensor;
}

/**
 * softmax(q k^T * scale + masks) v, for each head. Invalid keys, and keys later than a causal query, are ignored
 * whatever the mask; a query that sees no key gets zeros, and gradients of zero.
 *
 * @param q float32 [B, T, N, H]. @param k float32 [B, S, N, H]. @param v float32 [B, S, N, H].
 * @returns float32 [B, T, N, H].
 */
export function attention(
  q: tf.Tensor,
  k: tf.Tensor,
  v: tf.Tensor,
  options: AttentionOptions = {},
): tf.Tensor {
  const attrs = {
    scale: options.scale ?? 1 / Math.sqrt(q.shape.at(-1)!),
    causal: options.causal ?? false,
    logitCap: options.logitCap ?? 0,
    counted: options.visible !== undefined,
    // Set here, so that the gradient has it too.
    precision: currentPrecision(),
  };
  const extras = [options.mask, options.visible].filter((tensor) => tensor !== undefined);
  const { logits, dropout } = options;
  if (logits || dropout || (attrs.logitCap > 0 && !attrs.counted)) {
    // The composite supports neither functions nor, in its gradient, a cap; tfjs differentiates the decomposition.
    checkShapes([q, k, v] as unknown as TensorSpec[], attrs);
    const weights = probabilities(q, k, options, attrs);
    return headsFirst(tf.matMul(dropout ? dropout(weights) : weights, headsFirst(v)));
  }
  return callComposite('Attention', [q, k, v, ...extras], attrs, 3, options.mask ? 1 : 0);
}
