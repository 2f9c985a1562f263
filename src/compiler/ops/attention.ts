/** @file Multi-head scaled dot-product attention (Vaswani et al., 2017). */

import './attentionGradients.js';
import type { Attrs } from '../program/ir.js';
import { currentPrecision } from '../program/precision.js';
import { CompilerError, type TensorSpec } from '../program/tensors.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expectsDtypes, FLOAT, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { recordOp } from '../trace/tracing.js';
import {
  attentionFactors,
  attentionLogits,
  attrsOf,
  checkExtras,
  checkShapes,
  forward,
  headsFirst,
  keptOf,
  matmulFlops,
} from './attentionForms.js';
import { callComposite } from './composite.js';
import {
  type AttentionExtras,
  extrasOf,
  softmaxOfSeen,
  softmaxWithSinks,
  type Window,
  withHiddenKeys,
} from './hiddenKeys.js';
import { checkKeepProb } from './randomOps.js';

type LogitExtras = AttentionExtras<tf.Tensor> & Pick<AttentionOptions, 'logits'>;

/** Scaled and capped logits [B, N, T, S] with all masks, and whether they may hide all keys from a query. */
function hiddenLogits(q: tf.Tensor, k: tf.Tensor, extras: LogitExtras, attrs: Attrs) {
  const scale = attrs.scale as number;
  const own = extras.logits ? extras.logits(tf.mul(q, scale), k) : tf.mul(attentionLogits(q, k), scale);
  const cap = attrs.logitCap as number;
  const { logits, mayHideAll } = withHiddenKeys(cap > 0 ? capped(own, cap) : own, extras, attrs);
  if (!extras.mask) return { logits, mayHideAll };
  return { logits: tf.add(logits, extras.mask), mayHideAll: true };
}

/** Softmax weights [B, N, T, S]. */
function probabilities(q: tf.Tensor, k: tf.Tensor, extras: LogitExtras, attrs: Attrs): tf.Tensor {
  const { logits, mayHideAll } = hiddenLogits(q, k, extras, attrs);
  if (extras.sinks) return softmaxWithSinks(logits, extras.sinks);
  return mayHideAll ? softmaxOfSeen(logits) : tf.softmax(logits);
}

/** Logits [B, N, T, S] of an attention with these options, -Infinity where a key is hidden. */
export const maskedLogits = (q: tf.Tensor, k: tf.Tensor, options: AttentionOptions) =>
  hiddenLogits(q, k, options, attrsOfOptions(q, options));

const capped = (logits: tf.Tensor, cap: number): tf.Tensor => tf.mul(tf.tanh(tf.div(logits, cap)), cap);

/**
 * Inputs q, k, v, an optional mask, with attribute `sunk` the sinks, with `segmented` the segments of queries and of keys, with
 * `counted` the numbers of valid keys, with `prefixed` those of leading keys that all queries see, and with `keepProb` the key by which
 * weights are dropped. Outputs: the result [B, T, N, H] and the
 * weights [B, N, T, S] of which none is dropped yet, which a lowering need not keep if it recomputes them in the gradient.
 */
defineOperation('Attention', {
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
  factors: (inputs, outputs, attrs) => {
    const { heads, weights, extras } = attentionFactors(inputs.slice(3), attrs);
    return lettered([heads, heads, heads, ...extras], [heads, weights], { inputs, outputs });
  },
  flops: (inputs) => 2 * matmulFlops(inputs),
  device: forward,
  decompose: (inputs, attrs) => {
    const [q, k, v] = inputs;
    const extras = extrasOf(inputs.slice(3), attrs);
    const weights = probabilities(q!, k!, extras, attrs);
    return [headsFirst(tf.matMul(keptOf(weights, extras.dropKey, attrs), headsFirst(v!))), weights];
  },
  gradient: (dy, [q, k, v, ...rest], [out, weights], attrs) =>
    recordOp('AttentionGrad', [dy, q!, k!, v!, out!, weights!, ...rest], attrs),
  lateGradient: (dy, index, inputs, [out, weights], attrs) => {
    const [q, k, v, ...rest] = inputs;
    const operands = [dy, q!, k!, v!, out!, weights!, ...rest];
    const isMask = index === 3 && extrasOf(rest, attrs).mask !== undefined;
    if (!isMask) return recordOp('AttentionSinkGrad', operands, attrs)[0]!;
    return recordOp('AttentionMaskGrad', operands, { ...attrs, shape: inputs[index]!.shape })[0]!;
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
   * float32 [N]: a logit for each head beside those of the keys, whose weight is for no value (Xiao et al., 2023). Neither
   * cap nor mask nor dropout concerns it. It may be trained.
   */
  readonly sinks?: tf.Tensor;
  /**
   * int32 scalar or, for each batch item, [B]: only this many leading keys are valid, as in a cache that is partly filled;
   * queries are at the last of these.
   */
  readonly visible?: tf.Tensor;
  /**
   * int32 scalar or [B]: this many leading keys are seen by causal queries before them too, as far as `window` allows
   * (prefix language models).
   */
  readonly prefix?: tf.Tensor;
  /** Computes logits [B, N, T, S] from scaled q and k, in place of q k^T. */
  readonly logits?: (q: tf.Tensor, k: tf.Tensor) => tf.Tensor;
  /**
   * Drops softmax weights [B, N, T, S] as `dropout` does, tile by tile in a kernel; or a function that transforms them all,
   * which takes memory for all.
   */
  readonly dropout?: WeightDropout | ((weights: tf.Tensor) => tf.Tensor);
}

/** Weights are kept with a probability in (0, 1], by the numbers of a key int32 [2], and divided by it. */
export interface WeightDropout {
  readonly key: tf.Tensor;
  readonly keepProb: number;
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
  const { mask, sinks, segments, visible, prefix, logits, dropout } = options;
  const { key: dropKey, keepProb } = typeof dropout === 'object' ? dropout : {};
  if (keepProb !== undefined) checkKeepProb(keepProb);
  const attrs = { ...attrsOfOptions(q, options), ...(keepProb !== undefined && { keepProb }) };
  if (logits || typeof dropout === 'function') {
    // The composite supports no functions; tfjs differentiates the decomposition.
    checkShapes([q, k, v] as unknown as TensorSpec[], attrs);
    const weights = probabilities(q, k, options, attrs);
    const kept = typeof dropout === 'function' ? dropout(weights) : keptOf(weights, dropKey, attrs);
    return headsFirst(tf.matMul(kept, headsFirst(v)));
  }
  const extras = [mask, sinks, segments?.queries, segments?.keys, visible, prefix, dropKey].filter(
    (tensor) => tensor !== undefined,
  );
  return callComposite('Attention', [q, k, v, ...extras], attrs, 3, (mask ? 1 : 0) + (sinks ? 1 : 0));
}

const attrsOfOptions = (q: tf.Tensor, options: AttentionOptions) => ({
  scale: options.scale ?? 1 / Math.sqrt(q.shape.at(-1)!),
  causal: options.causal ?? false,
  logitCap: options.logitCap ?? 0,
  ...windowAttrs(options.window),
  sunk: options.sinks !== undefined,
  segmented: options.segments !== undefined,
  counted: options.visible !== undefined,
  prefixed: options.prefix !== undefined,
  // Set here, so that the gradient has it too.
  precision: currentPrecision(),
});

/** @throws CompilerError for a bound that counts no keys */
function windowAttrs(window: Partial<Window> = {}): Partial<Window> {
  const bounds = Object.entries(window).filter(([, bound]) => bound !== undefined && bound !== Infinity);
  for (const [side, bound] of bounds)
    if (!Number.isSafeInteger(bound) || bound < 0)
      throw new CompilerError(`attention: window.${side} is ${bound}: expected a number of keys, 0 or more.`);
  return Object.fromEntries(bounds);
}
