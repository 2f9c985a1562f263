/** @file Attributes, checks of shapes and forms of calls that attention and its gradients share. */
import type { Attrs, Node } from '../program/ir.js';
import { precisionAttr } from '../program/precision.js';
import { CompilerError, formatSpec, sameShape, sizeOf, type TensorSpec } from '../program/tensors.js';
import { broadcastShapes } from '../rules/broadcasting.js';
import type { CallForm, Shaped } from '../rules/deviceForm.js';
import { expects } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { extrasOf, windowOf } from './hiddenKeys.js';
import { dropout, expectsKey } from './randomOps.js';

export const headsFirst = (x: tf.Tensor): tf.Tensor => tf.transpose(x, [0, 2, 1, 3]);

/** Unscaled logits q k^T per head: [B, N, T, S] from q [B, T, N, H] and k [B, S, N, H]. */
export const attentionLogits = (q: tf.Tensor, k: tf.Tensor): tf.Tensor =>
  tf.matMul(headsFirst(q), headsFirst(k), false, true);

export const attrsOf = (raw: any): Attrs => ({
  scale: raw.scale,
  causal: raw.causal,
  logitCap: raw.logitCap,
  ...(raw.before !== undefined && { before: raw.before }),
  ...(raw.after !== undefined && { after: raw.after }),
  ...(raw.sunk && { sunk: true }),
  ...(raw.segmented && { segmented: true }),
  ...(raw.counted && { counted: true }),
  ...(raw.prefixed && { prefixed: true }),
  ...(raw.keepProb !== undefined && { keepProb: raw.keepProb }),
  ...precisionAttr(raw),
});

export function checkShapes([q, k, v]: readonly TensorSpec[], { causal }: Attrs): void {
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

/** Checks the inputs after q, k and v: a mask that broadcasts to the logits, sinks, segments, and numbers of keys. */
export function checkExtras([q, k, , ...extras]: readonly TensorSpec[], attrs: Attrs): void {
  const { mask, sinks, segments, visible, prefix, dropKey } = extrasOf(extras, attrs);
  const [batch, queries, heads, keys] = [q!.shape[0]!, q!.shape[1]!, q!.shape[2]!, k!.shape[1]!];
  const logits = [batch, heads, queries, keys];
  const isMask =
    mask === undefined ||
    (mask.dtype === 'float32' && sameShape(broadcastShapes(mask.shape, logits), logits));
  expects(isMask, `a mask float32 that broadcasts to [${logits}]`, mask);
  const areSinks = sinks === undefined || (sinks.dtype === 'float32' && sameShape(sinks.shape, [heads]));
  expects(areSinks, `sinks float32 [${heads}]`, sinks);
  const isIds = ({ dtype, shape: [rows, ...rest] }: TensorSpec, length: number): boolean =>
    dtype === 'int32' && (rows === 1 || rows === batch) && sameShape(rest, [length]);
  if (segments) {
    const fit = isIds(segments.queries, queries) && isIds(segments.keys, keys);
    const given = [segments.queries, segments.keys];
    expects(fit, `segments int32 [${batch},${queries}] of queries and [${batch},${keys}] of keys`, given);
  }
  const isCount = ({ dtype, shape }: TensorSpec): boolean =>
    dtype === 'int32' && (shape.length === 0 || sameShape(shape, [1]) || sameShape(shape, [batch]));
  for (const count of [visible, prefix])
    expects(count === undefined || isCount(count), `a number of keys int32[] or int32[${batch}]`, count);
  if (dropKey) expectsKey(dropKey);
}

/** The weights that are left of all when some are dropped, as `ops.dropout` draws them. */
export const keptOf = (weights: tf.Tensor, dropKey: tf.Tensor | undefined, { keepProb }: Attrs): tf.Tensor =>
  dropKey === undefined ? weights : dropout(weights, dropKey, keepProb as number);

/**
 * Factors of an attention: of its heads [B, T, N, H], of the weights, and of the operands behind the values. Weights are dropped by
 * their places among those of all heads.
 */
export function attentionFactors(
  operands: readonly TensorSpec[],
  attrs: Attrs,
): { readonly heads: string; readonly weights: string; readonly extras: readonly string[] } {
  const { mask, sinks, segments, visible, prefix, dropKey } = extrasOf(operands, attrs);
  const letters = dropKey === undefined ? 'bn..' : '....';
  const [batch, head] = [letters[0]!, letters[1]!];
  const lettersOf = (operand: TensorSpec): string => {
    if (operand === mask) return letters.slice(4 - operand.shape.length);
    if (operand === sinks) return head;
    if (operand === segments?.queries || operand === segments?.keys) return `${batch}.`;
    if (operand === visible || operand === prefix) return batch.slice(0, operand.shape.length);
    return '.';
  };
  return { heads: `${batch}.${head}.`, weights: letters, extras: operands.map(lettersOf) };
}

/** FLOPs of one product of queries and keys, or of weights and values. */
export const matmulFlops = (inputs: readonly TensorSpec[]): number =>
  2 * sizeOf(inputs[0]!.shape) * inputs[1]!.shape[1]!;

/** FLOPs of `products` matrix products over the pairs of queries and keys that a window leaves. */
const visibleFlops =
  (products: number, first: number) =>
  (inputs: Shaped, attrs: Attrs): number => {
    const [batch, queries, heads, dims] = inputs[first]!.shape as [number, number, number, number];
    const keys = inputs[first + 1]!.shape[1]!;
    const { before, after } = windowOf(attrs);
    let pairs = 0;
    for (let t = keys - queries; t < keys; t++)
      pairs += Math.max(0, Math.min(keys, t + after + 1) - Math.max(0, t - before));
    return 2 * products * batch * heads * pairs * dims;
  };

/** The operations that may read the weights of an attention that stays whole. */
export const GRADIENTS: readonly string[] = ['AttentionGrad', 'AttentionMaskGrad', 'AttentionSinkGrad'];

/** The weights' place among the operands of gradients; those of the attention behind its values follow. */
export const GRADIENT_WEIGHTS = 5;

/** Whether logarithms of sums [B, N, T] stand for weights, which then never reach memory. */
const isOfSums = ({ shape }: TensorSpec): boolean => shape.length === 3;

/** LT_FEW of attention.h: up to this many queries, threads divide the heads of all batch items. */
const FEW_QUERIES = 4;

/** Heads have a contiguous last axis. */
const common = { kind: 'call', contiguousInts: true, part: 'attention' } as const;

/** An attention; keys and values of few queries are shared by batch and head. */
export const forward: CallForm = {
  ...common,
  name: 'attention',
  inRows: 3,
  writesRows: true,
  rounds: { operands: 3, results: 1 },
  keeps: ({ outputs }) => isOfSums(outputs[1]!),
  shares: ([q]) => (q!.shape[1]! > FEW_QUERIES ? {} : { read: [1, 2].map((i) => [i, [0, 2]] as const) }),
  work: visibleFlops(2, 0),
};

/** Its gradients, from the results and the operands behind them. */
const gradient = {
  ...common,
  inRows: 5,
  keeps: ({ inputs }: Node) => isOfSums(inputs[GRADIENT_WEIGHTS]!),
} as const;

export const backward: CallForm = {
  ...gradient,
  name: 'attentionGrad',
  writesRows: true,
  rounds: { operands: 5, results: 3 },
  work: visibleFlops(4, 1),
};

export const maskBackward: CallForm = {
  ...gradient,
  name: 'attentionMaskGrad',
  rounds: { operands: 5, results: 0 },
  work: visibleFlops(2, 1),
};

export const sinkBackward: CallForm = {
  ...gradient,
  name: 'attentionSinkGrad',
  rounds: { operands: 5, results: 0 },
  work: ([dy]) => 2 * sizeOf(dy!.shape),
};
