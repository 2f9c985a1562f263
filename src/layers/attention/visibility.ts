/** @file Visibility of keys to queries: one value that models make, attention takes and kernels skip by. */
import { type ops, type Tensor, tf } from '../../compiler/index.js';
import { stepsFrom } from './positions.js';

/** A tensor for queries, [B, T], and one for keys, [B, S]; B may be 1. */
export interface OfBoth {
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
  /** int32 [B]: a causal query also sees so many leading keys, as far as the window allows (prefix language models). */
  readonly prefix?: Tensor | undefined;
  /** Added to the logits: float32, broadcastable to [B, N, T, S], -Infinity where a key is hidden. It may be trained. */
  readonly bias?: Tensor | undefined;
  /** int32: positions within sequences, for embeddings and biases; {@link positionsOf} has those that are not given. */
  readonly positions?: OfBoth | undefined;
  /** int32 scalar, or [B]: only so many leading keys are valid, as in a cache that is partly filled. */
  readonly visible?: Tensor | undefined;
  /** Whether these keys are the rows' own or those of a prompt that rows share, of keys in two parts. */
  readonly part?: 'own' | 'prompt' | undefined;
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
    queries: stepsFrom(first, queries),
    keys: tf.reshape(tf.range(0, keys, 1, 'int32'), [1, keys]),
  };
}

/** The smaller of two bounds, of which either may be absent. */
const least = (a = Number.POSITIVE_INFINITY, b = Number.POSITIVE_INFINITY): number => Math.min(a, b);

/** `seen` without the keys outside `window`. */
export function narrowed(seen: Visibility, { before, after }: Partial<ops.Window>): Visibility {
  const { window = {} } = seen;
  return { ...seen, window: { before: least(window.before, before), after: least(window.after, after) } };
}

/** The key segment of no query: ids of sequences are 0 or more. */
const HIDDEN = -1;

/** Segments in which no query sees the keys that are hidden, bool [B, S]. */
function hidingSegments(isHidden: Tensor, segments: OfBoth | undefined, queries: number): OfBoth {
  const ids = segments?.keys ?? tf.zerosLike(tf.cast(isHidden, 'int32'));
  return {
    queries: segments?.queries ?? tf.zeros([1, queries], 'int32'),
    keys: tf.where(isHidden, tf.scalar(HIDDEN, 'int32'), ids) as Tensor,
  };
}

/** Options of `ops.attention` for `queries` queries. */
export function attentionOptions(seen: Visibility, queries: number): ops.AttentionOptions {
  const { causal = false, window, paddings, prefix, bias, visible } = seen;
  const segments = paddings
    ? hidingSegments(tf.greaterEqual(paddings, 0.5) as Tensor, seen.segments, queries)
    : seen.segments;
  return {
    causal,
    ...(window && { window }),
    ...(segments && { segments }),
    ...(bias && { mask: bias }),
    ...(visible && { visible }),
    ...(prefix && { prefix }),
  };
}

/** `x` [.., S] with zeros for `count` keys in front: [.., count + S]. */
export const withLeadingZeros = (x: Tensor, count: number): Tensor =>
  tf.pad(
    x,
    x.shape.map((_, axis): [number, number] => [axis === x.rank - 1 ? count : 0, 0]),
  );

/** A bias [B, 1, T, S] that hides keys. @param isHidden bool [B, T, S] */
const hidingBias = (isHidden: Tensor): Tensor =>
  tf.where(tf.expandDims(isHidden, 1), tf.scalar(Number.NEGATIVE_INFINITY), tf.scalar(0));

/** A window by positions as a bias, for keys whose places are not those before the queries': [B, 1, T, S]. */
export function windowBias({ queries, keys }: OfBoth, { before }: ops.Window): Tensor {
  const distance = tf.sub(tf.expandDims(queries, 2), tf.expandDims(keys, 1));
  return hidingBias(tf.greater(distance, tf.scalar(before, 'int32')));
}

/** What window and segments hide of `keys` keys, as a bias [B or 1, 1, T, S]. */
function hiddenBy(seen: Visibility, queries: number, keys: number): Tensor | undefined {
  const { window, segments, visible } = seen;
  const places = positionsOf({ visible }, queries, keys);
  const pairs = (of: OfBoth): [Tensor, Tensor] => [tf.expandDims(of.queries, 2), tf.expandDims(of.keys, 1)];
  const distance = tf.sub(...pairs(places));
  const rules = [
    segments && tf.notEqual(...pairs(segments)),
    window?.before !== undefined && tf.greater(distance, tf.scalar(window.before, 'int32')),
    window?.after !== undefined && tf.less(distance, tf.scalar(-window.after, 'int32')),
  ].filter((x) => typeof x === 'object');
  if (rules.length === 0) return undefined;
  return hidingBias(rules.reduce((a, b) => tf.logicalOr(a, b)));
}

/**
 * Visibility of `count` further keys in front, which all queries see, and of the `keys` present ones as before. Positions stay
 * those of the present ones.
 */
export function withLeadingKeys(
  seen: Visibility,
  count: number,
  { queries, keys }: Readonly<Record<'queries' | 'keys', number>>,
): Visibility {
  const { causal, paddings, prefix, visible, positions } = seen;
  // A causal query sees all that is in front of its own place. Windows and segments have no key that is for all.
  const biases = [seen.bias, hiddenBy(seen, queries, keys)].filter((x) => x !== undefined);
  const more = (x: Tensor): Tensor => tf.add(x, tf.scalar(count, 'int32'));
  return {
    ...{ causal, positions },
    paddings: paddings && withLeadingZeros(paddings, count),
    prefix: prefix && more(prefix),
    visible: visible && more(visible),
    bias: biases.length
      ? withLeadingZeros(
          biases.reduce((a, b) => tf.add(a, b)),
          count,
        )
      : undefined,
  };
}
