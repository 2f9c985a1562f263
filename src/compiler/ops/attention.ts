/** @file Multi-head scaled dot-product attention (Vaswani et al., 2017). */

import { type Attrs, ints } from '../ir.js';
import { currentPrecision, precisionAttr } from '../precision.js';
import { broadcastShapes } from '../rules/elementwiseRules.js';
import { expects, expectsDtypes, FLOAT, spec } from '../rules/rule.js';
import { CompilerError, formatSpec, sameShape, sizeOf, type TensorSpec } from '../tensors.js';
import * as tf from '../tfjs.js';
import { recordOp } from '../tracing.js';
import { callComposite, defineComposite } from './composite.js';
import { type AttentionExtras, extrasOf, softmaxOfSeen, type Window, withHiddenKeys } from './hiddenKeys.js';

const headsFirst = (x: tf.Tensor): tf.Tensor => tf.transpose(x, [0, 2, 1, 3]);

/** Unscaled logits q k^T per head: [B, N, T, S] from q [B, T, N, H] and k [B, S, N, H]. */
export const attentionLogits = (q: tf.Tensor, k: tf.Tensor): tf.Tensor =>
  tf.matMul(headsFirst(q), headsFirst(k), false, true);

/** Softmax weights [B, N, T, S]. */
function probabilities(
  q: tf.Tensor,
  k: tf.Tensor,
  extras: AttentionExtras<tf.Tensor> & Pick<AttentionOptions, 'logits'>,
  attrs: Attrs,
): tf.Tensor {
  const scale = attrs.scale as number;
  const own = extras.logits ? extras.logits(tf.mul(q, scale), k) : tf.mul(attentionLogits(q, k), scale);
  const cap = attrs.logitCap as number;
  const { logits, mayHideAll } = withHiddenKeys(cap > 0 ? capped(own, cap) : own, extras, attrs);
  if (extras.mask) return softmaxOfSeen(tf.add(logits, extras.mask));
  return mayHideAll ? softmaxOfSeen(logits) : tf.softmax(logits);
}

const capped = (logits: tf.Tensor, cap: number): tf.Tensor => tf.mul(tf.tanh(tf.div(logits, cap)), cap);

const attrsOf = (raw: any): Attrs => ({
  scale: raw.scale,
  causal: raw.causal,
  logitCap: raw.logitCap,
  ...(raw.before !== undefined && { before: raw.before }),
  ...(raw.after !== undefined && { after: raw.after }),
  ...(raw.segmented && { segmented: true }),
  ...(raw.counted && { counted: true }),
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

/** Checks the inputs after q, k and v: a mask that broadcasts to the logits, segments, and the number of keys. */
function checkExtras([q, k, , ...extras]: readonly TensorSpec[], attrs: Attrs): void {
  const { mask, segments, visible } = extrasOf(extras, attrs);
  const [batch, queries, heads, keys] = [q!.shape[0]!, q!.shape[1]!, q!.shape[2]!, k!.shape[1]!];
  const logits = [batch, heads, queries, keys];
  const isMask =
    mask === undefined ||
    (mask.dtype === 'float32' && sameShape(broadcastShapes(mask.shape, logits), logits));
  expects(isMask, `a mask float32 that broadcasts to [${logits}]`, mask);
  const isIds = ({ dtype, shape: [rows, ...rest] }: TensorSpec, length: number): boolean =>
    dtype === 'int32' && (rows === 1 || rows === batch) && sameShape(rest, [length]);
  if (segments) {
    const fit = isIds(segments.queries, queries) && isIds(segments.keys, keys);
    const given = [segments.queries, segments.keys];
    expects(fit, `segments int32 [${batch},${queries}] of queries and [${batch},${keys}] of keys`, given);
  }
  const isCount = visible === undefined || (visible.dtype === 'int32' && visible.shape.length === 0);
  expects(isCount, 'a number of keys int32[]', visible);
}

const matmulFlops = (inputs: readonly TensorSpec[]): number =>
  2 * sizeOf(inputs[0]!.shape) * inputs[1]!.shape[1]!;

/**
 * Inputs q, k, v, an optional mask, with attribute `segmented` the segments of queries and of keys, and, with `counted`,
 * the number of valid keys. Outputs: the result [B, T, N, H] and the weights [B, N, T, S], which a lowering need not keep if it recomputes them in the gradient.
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
    const weights = probabilities(q!, k!, extrasOf(inputs.slice(3), attrs), attrs);
    return [headsFirst(tf.matMul(weights, headsFirst(v!))), weights];
  },
  gradient: (dy, [q, k, v], [out, weights], attrs) => {
    if (attrs.counted)
      throw new CompilerError('attention over a number of keys that is known at run time has no gradient.');
    return recordOp('AttentionGrad', [dy, q!, k!, v!, out!, weights!], attrs);
  },
  lateGradient: (dy, mask, [q, k, v], [out, weights], attrs) =>
    recordOp('AttentionMaskGrad', [dy, q!, k!, v!, out!, weights!], { ...attrs, shape: mask.shape })[0]!,
});

/** Gradients of the logits [B, N, T, S] with scale, cap and masks. */
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

/** Inputs of gradients. */
const gradientInputs = ['dy', 'q', 'k', 'v', 'out', 'weights'];

function checkGradientInputs(inputs: readonly TensorSpec[], attrs: Attrs): void {
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
}

/** The gradient of the mask, of the shape that is an attribute. */
defineComposite('AttentionMaskGrad', {
  inputs: gradientInputs,
  isProduct: true,
  attrs: (raw) => ({ ...attrsOf(raw), shape: [...raw.shape] }),
  infer: (inputs, attrs) => {
    checkGradientInputs(inputs, attrs);
    return [spec(ints(attrs.shape), 'float32')];
  },
  flops: ([, q, k]) => 2 * matmulFlops([q!, k!]),
  decompose: ([dy, , , v, out, weights], attrs) => [
    sumTo(logitGradients(dy!, v!, out!, weights!), [...ints(attrs.shape)]),
  ],
});

/** Gradients of q, k and v. */
defineComposite('AttentionGrad', {
  inputs: gradientInputs,
  isProduct: true,
  attrs: attrsOf,
  infer: (inputs, attrs) => {
    checkGradientInputs(inputs, attrs);
    return inputs.slice(1, 4).map(({ shape }) => spec(shape, 'float32'));
  },
  flops: ([, q, k]) => 4 * matmulFlops([q!, k!]),
  decompose: ([dy, q, k, v, out, weights], attrs) => {
    const scale = attrs.scale as number;
    const cap = attrs.logitCap as number;
    const slopes = (): tf.Tensor => {
      const logits = tf.mul(attentionLogits(q!, k!), scale);
      return tf.sub(1, tf.square(tf.tanh(tf.div(logits, cap))));
    };
    const ofSeen = logitGradients(dy!, v!, out!, weights!);
    const dLogits = cap > 0 ? tf.mul(ofSeen, slopes()) : ofSeen;
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
  /** How many keys a query sees before and after its own position, where that is bounded; `causal` allows none after it. */
  readonly window?: Partial<Window>;
  /** int32 [B, T] and [B, S], B may be 1: a query sees the keys of its own segment. */
  readonly segments?: { readonly queries: tf.Tensor; readonly keys: tf.Tensor };
  /** Logits become cap * tanh(logits / cap); 0 for none (Pax's atten_logit_cap). */
  readonly logitCap?: number;
  /** Added to the logits; broadcasts to [B, N, T, S]; -Infinity hides a key. It may be trained. */
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
 * softmax(q k^T * scale + masks) v, for each head. Invalid keys, and keys outside a query's window or segment, are
 * ignored whatever the mask; a query that sees no key gets zeros, and gradients of zero.
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
  const { mask, segments, visible, logits, dropout } = options;
  const attrs = {
    scale: options.scale ?? 1 / Math.sqrt(q.shape.at(-1)!),
    causal: options.causal ?? false,
    logitCap: options.logitCap ?? 0,
    ...windowAttrs(options.window),
    segmented: segments !== undefined,
    counted: visible !== undefined,
    // Set here, so that the gradient has it too.
    precision: currentPrecision(),
  };
  if (logits || dropout) {
    // The composite supports no functions; tfjs differentiates the decomposition.
    checkShapes([q, k, v] as unknown as TensorSpec[], attrs);
    const weights = probabilities(q, k, options, attrs);
    return headsFirst(tf.matMul(dropout ? dropout(weights) : weights, headsFirst(v)));
  }
  const extras = [mask, segments?.queries, segments?.keys, visible].filter((tensor) => tensor !== undefined);
  return callComposite('Attention', [q, k, v, ...extras], attrs, 3, mask ? 1 : 0);
}

/** @throws CompilerError for a bound that counts no keys */
function windowAttrs(window: Partial<Window> = {}): Partial<Window> {
  const bounds = Object.entries(window).filter(([, bound]) => bound !== undefined && bound !== Infinity);
  for (const [side, bound] of bounds)
    if (!Number.isInteger(bound) || bound < 0)
      throw new CompilerError(`attention: window.${side} is ${bound}: expected a number of keys, 0 or more.`);
  return Object.fromEntries(bounds);
}
