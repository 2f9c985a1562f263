/** @file Visibility of keys to queries: one value that models make, attention takes and kernels skip by. */
import { type ops, type Tensor, tf } from '../compiler/index.js';
import { stepsFrom } from './positions.js';

/** A tensor for queries, [B, T], and one for keys, [B, S]; B may be 1. */
interface OfBoth {
  readonly queries: Tensor;
  readonly keys: Tensor;
}

/** The keys that each query sees: those that all fields allow. Without any, all. */
export interface Visibility {
  /** Whether a query sees no key behind its own place; the places of queries are the last ones of the keys. */
  readonly causal?: boolean | undefined;
  /** How many keys before and after its own place a query sees, where that is bounded. */
  readonly window?: Partial<ops.Window> | undefined;
  /** int32, 0 or more: a query sees the keys of its own segment, as in packed rows. */
  readonly segments?: OfBoth | undefined;
  /** float32 [B, S], 1 for keys that are padding. */
  readonly paddings?: Tensor | undefined;
  /** int32 [B]: a causal query also sees so many leading keys (prefix language models). */
  readonly prefix?: Tensor | undefined;
  /** Added to the logits: float32, broadcastable to [B, N, T, S], -Infinity where a key is hidden. It may be trained. */
  readonly bias?: Tensor | undefined;
  /** int32: positions within sequences, for embeddings and biases; {@link positionsOf} has those that are not given. */
  readonly positions?: OfBoth | undefined;
  /** int32 scalar: only so many leading keys are valid, as in a cache that is partly filled. */
  readonly visible?: Tensor | undefined;
}

/**
 * Positions of `queries` queries and `keys` keys, int32 [B, T] and [B, S] (B may be 1): those of a packed row or of a decode,
 * else their places.
 */
export function positionsOf({ positions, visible }: Visibility, queries: number, keys: number): OfBoth {
  if (positions) return positions;
  const end = visible ?? tf.scalar(keys, 'int32');
  const first = tf.sub(end, tf.scalar(queries, 'int32')) as Tensor;
  return {
    queries: tf.reshape(stepsFrom(first, queries), [1, queries]),
    keys: tf.reshape(tf.range(0, keys, 1, 'int32'), [1, keys]),
  };
}

/** The key segment of no query: ids of sequences are 0 or more. */
const PADDING = -1;

/** Segments with padding, in which no query is. */
function paddedSegments(paddings: Tensor, segments: OfBoth | undefined, queries: number): OfBoth {
  const ids = segments?.keys ?? tf.zerosLike(tf.cast(paddings, 'int32'));
  return {
    queries: segments?.queries ?? tf.zeros([1, queries], 'int32'),
    keys: tf.where(tf.less(paddings, 0.5), ids, tf.fill(ids.shape, PADDING, 'int32')),
  };
}

/** 0 where a causal query sees a key or the key is of the prefix, else -Infinity: [B, 1, T, S]. */
function prefixBias(prefix: Tensor, seen: Visibility, queries: number, keys: number): Tensor {
  const places = positionsOf({ visible: seen.visible }, queries, keys);
  const key = tf.reshape(places.keys, [1, 1, 1, keys]);
  const isBefore = tf.lessEqual(key, tf.reshape(places.queries, [1, 1, queries, 1]));
  const isSeen = tf.logicalOr(isBefore, tf.less(key, tf.reshape(prefix, [-1, 1, 1, 1])));
  return tf.where(isSeen, tf.scalar(0), tf.scalar(Number.NEGATIVE_INFINITY)) as Tensor;
}

/** Options of `ops.attention` for `queries` queries and `keys` keys. */
export function attentionOptions(seen: Visibility, queries: number, keys: number): ops.AttentionOptions {
  const { causal = false, window, paddings, prefix, bias, visible } = seen;
  const segments = paddings ? paddedSegments(paddings, seen.segments, queries) : seen.segments;
  const ofPrefix = causal && prefix ? prefixBias(prefix, seen, queries, keys) : undefined;
  const mask = bias && ofPrefix ? (tf.add(bias, ofPrefix) as Tensor) : (bias ?? ofPrefix);
  return {
    causal: causal && !ofPrefix,
    ...(window && { window }),
    ...(segments && { segments }),
    ...(mask && { mask }),
    ...(visible && { visible }),
  };
}
