/** @file Caches of the keys and values that an attention has seen in a decode. */
import { z } from 'zod';
import { operandStorage, ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import type { DecodeStateSpec } from '../core/context.js';
import type { StepArgs } from '../core/mixer.js';
import { stepsFrom } from './positions.js';
import { type Visibility, windowBias } from './visibility.js';

/** Keys and values for the queries of a step. */
export interface CachedHeads {
  /** [B, S, N, H]. */
  readonly key: Tensor;
  /** [B, S, N, H]. */
  readonly value: Tensor;
  /** Visibility of the S keys to the step's T queries. */
  readonly seen: Visibility;
  /** The same of the P prompts that rows share, for the queries of all rows of a prompt: [P, S, N, H], and P for B. */
  readonly ofPrompts?: CachedHeads | undefined;
}

/** Elements of `x` [B, S, …] at `places`, int32 [1, count] or, for each row, [B, count]. */
export function taken(x: Tensor, places: Tensor): Tensor {
  const [groups, count] = places.shape as [number, number];
  if (groups === 1) return tf.gather(x, tf.reshape(places, [count]) as Tensor, 1);
  return tf.gather(x, places, 1, 1);
}

/** [B, T, N, H] to [B, N, T, H], or back. */
const swapTimeAndHeads = (x: Tensor): Tensor => tf.transpose(x, [0, 2, 1, 3]);

const int = (value: number): Tensor => tf.scalar(value, 'int32');

/** Field of a window: the keys that a query sees. */
export const windowSizeField = z
  .int()
  .positive()
  .nullable()
  .default(null)
  .describe('How many keys a query sees: its own and those before it; null: all.');

/**
 * Base of the caches: the state of an attention between the steps of a decode. The attention hands on the step's keys and
 * values, and attends to those that it gets back.
 */
export abstract class BaseKvCache extends BaseLayer.with({
  numHeads: z.int().positive().describe('Heads of keys and values.'),
  dimPerHead: z.int().positive().describe('Depth of a head.'),
  windowSize: windowSizeField,
}) {
  static override readonly isAbstract = true;

  /**
   * Takes the next T tokens.
   *
   * @param key [B, T, N, H], rotated. @param value [B, T, N, H].
   */
  abstract extend(key: Tensor, value: Tensor, args: StepArgs): CachedHeads;

  /** Specs of keys and values of `size` positions. @param more further fields of each */
  protected specsOf(
    batchSize: number,
    size: number,
    more: Partial<DecodeStateSpec> = {},
  ): Record<string, DecodeStateSpec> {
    const roundedTo = operandStorage(this.fpropDtype);
    const spec: DecodeStateSpec = {
      // A head's tokens are contiguous, so that they are read in memory order.
      shape: [batchSize, this.hp.numHeads, size, this.hp.dimPerHead],
      dtype: 'float32',
      ...(roundedTo && { roundedTo }),
      ...more,
    };
    return { key_state: spec, value_state: spec };
  }

  /** Writes `tokens` [B, T, N, H] to a state [B, N, S, H] from `place` on; returns the whole, [B, S, N, H]. */
  protected write(name: string, tokens: Tensor, place: Tensor): Tensor {
    const extended = ops.updateSlice(this.getDecodeState(name), swapTimeAndHeads(tokens), place, 2);
    this.updateDecodeState(name, extended);
    return swapTimeAndHeads(extended);
  }
}

/** Visibility to the next `steps` tokens of a cache in which each token is at the place of its position. */
export const filledUpTo = ({ timeStep, prefix }: StepArgs, steps: number): Visibility => ({
  causal: true,
  visible: tf.add(timeStep, int(steps)) as Tensor,
  ...(prefix && { prefix }),
});

/** The largest code of 8 bits; codes are symmetric. */
const LARGEST_CODE = 127;

/** Vectors [.., H] as codes, int32, times scales [.., 1] that reach their largest elements. */
function rounded(x: Tensor): { readonly codes: Tensor; readonly scales: Tensor } {
  const scales = tf.div(tf.max(tf.abs(x), -1, true), LARGEST_CODE) as Tensor;
  // A vector of zeros has a scale of 0.
  const codes = tf.round(tf.div(x, tf.where(tf.greater(scales, 0), scales, tf.onesLike(scales))));
  return { codes: tf.cast(codes, 'int32'), scales };
}

/** Keys and values of a token, by name. */
type Part = 'key' | 'value';

/**
 * A cache of all tokens, each at the place of its position.
 *
 * Of 8 bits, it has a scale for each token and head: a token is rounded once, as it comes, whatever comes behind it, and a head
 * whose elements are small loses nothing to others. Attention multiplies the codes where they lie, and each product by its scale.
 */
export class FullCache extends BaseKvCache.with({
  precision: z
    .literal(8)
    .nullable()
    .default(null)
    .describe(
      "Bits of an element of keys and values, with a float32 scale for each token and head; null: the elements of the layer's dtype.",
    ),
}) {
  override decodeStateSpecs(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    const { precision, numHeads, dimPerHead } = this.hp;
    if (precision === null) return this.specsOf(batchSize, seqLen, { isPerToken: true });
    const shape = (depth: number) => ({ shape: [batchSize, numHeads, seqLen, depth], isPerToken: true });
    const codes: DecodeStateSpec = { ...shape(dimPerHead), dtype: 'int32', roundedTo: 'int8' };
    const scales: DecodeStateSpec = { ...shape(1), dtype: 'float32' };
    return { key_state: codes, key_scale: scales, value_state: codes, value_scale: scales };
  }

  /** Writes `tokens` [B, T, N, H] from `place` on; returns the whole, [B, S, N, H]. */
  #write(part: Part, tokens: Tensor, place: Tensor): Tensor {
    if (this.hp.precision === null) return this.write(`${part}_state`, tokens, place);
    const { codes, scales } = rounded(swapTimeAndHeads(tokens));
    const update = (name: string, x: Tensor): void =>
      this.updateDecodeState(name, ops.updateSlice(this.getDecodeState(name), x, place, 2));
    update(`${part}_state`, codes);
    update(`${part}_scale`, scales);
    return this.#read(part, (name) => this.getDecodeState(name));
  }

  /** The whole of a state, [B, S, N, H]. */
  #read(part: Part, stateOf: (name: string) => Tensor): Tensor {
    const state = stateOf(`${part}_state`);
    if (this.hp.precision === null) return swapTimeAndHeads(state);
    return swapTimeAndHeads(tf.mul(tf.cast(state, 'float32'), stateOf(`${part}_scale`)));
  }

  /**
   * The last token's position is below the state's length. Places behind the present tokens are written before they are read.
   * With prompts that rows share, places count from the tokens behind them.
   */
  extend(key: Tensor, value: Tensor, args: StepArgs): CachedHeads {
    const { windowSize } = this.hp;
    if (args.promptLength) return this.#extendBehind(key, value, args.promptLength, args.timeStep);
    return {
      key: this.#write('key', key, args.timeStep),
      value: this.#write('value', value, args.timeStep),
      seen: {
        ...filledUpTo(args, key.shape[1]!),
        ...(windowSize !== null && { window: { before: windowSize - 1 } }),
      },
    };
  }

  /** Tokens behind prompts, whose keys and values are in the prompts' state. */
  #extendBehind(key: Tensor, value: Tensor, promptLength: Tensor, timeStep: Tensor): CachedHeads {
    const [batch, steps] = key.shape as [number, number];
    const prompts = promptLength.size;
    const each = tf.tile(tf.reshape(promptLength, [prompts, 1]), [1, batch / prompts]);
    const begin = tf.reshape(each, [batch]) as Tensor;
    const place = tf.sub(timeStep, begin) as Tensor;
    const queries = tf.broadcastTo(stepsFrom(timeStep, steps), [batch, steps]);
    const range = (size: number): Tensor => tf.reshape(tf.range(0, size, 1, 'int32'), [1, size]);
    const own = {
      key: this.#write('key', key, place),
      value: this.#write('value', value, place),
    };
    const [promptKey, promptValue] = (['key', 'value'] as const).map((part) =>
      this.#read(part, (name) => this.getPromptState(name)!),
    ) as [Tensor, Tensor];
    const positions = {
      queries: tf.reshape(queries, [prompts, (batch / prompts) * steps]) as Tensor,
      keys: range(promptKey.shape[1]!),
    };
    const { windowSize } = this.hp;
    const window = windowSize === null ? undefined : { before: windowSize - 1, after: 0 };
    return {
      ...own,
      seen: {
        ...filledUpTo({ timeStep: place }, steps),
        ...(window && { window }),
        positions: { queries, keys: tf.add(tf.expandDims(begin, 1), range(own.key.shape[1]!)) as Tensor },
        part: 'own',
      },
      ofPrompts: {
        key: promptKey,
        value: promptValue,
        seen: {
          visible: promptLength,
          positions,
          ...(window && { bias: windowBias(positions, window) }),
          part: 'prompt',
        },
      },
    };
  }
}

/**
 * A cache of the last `windowSize` tokens, whatever the length of the sequence: a ring, in which position p has place p
 * mod windowSize.
 */
export class WindowCache extends BaseKvCache {
  protected override setup(): void {
    if (this.hp.windowSize === null)
      throw this.error('keeps the tokens of a window: set windowSize of the attention.');
  }

  /** Places: no more than a sequence has tokens. In float32, since a block replaces the ring rather than parts of it. */
  override decodeStateSpecs(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    const specs = Object.entries(this.specsOf(batchSize, Math.min(this.hp.windowSize!, seqLen)));
    return Object.fromEntries(specs.map(([name, { shape, dtype }]) => [name, { shape, dtype }]));
  }

  extend(key: Tensor, value: Tensor, args: StepArgs): CachedHeads {
    const isOne = key.shape[1] === 1 && args.length === undefined;
    return isOne ? this.#extendByOne(key, value, args) : this.#extendByBlock(key, value, args);
  }

  get #size(): number {
    return this.getDecodeState('key_state').shape[2]!;
  }

  /** One token takes the place of the oldest. All keys that are there are in the window. */
  #extendByOne(key: Tensor, value: Tensor, { timeStep }: StepArgs): CachedHeads {
    const size = this.#size;
    const place = tf.mod(timeStep, int(size)) as Tensor;
    return {
      key: this.write('key_state', key, place),
      value: this.write('value_state', value, place),
      seen: {
        visible: tf.minimum(tf.add(timeStep, int(1)), int(size)) as Tensor,
        positions: { queries: stepsFrom(timeStep, 1), keys: this.#positionsUpTo(timeStep) },
      },
    };
  }

  /** A block sees the tokens of the ring in their order, and its own behind them; the ring then takes the last ones. */
  #extendByBlock(key: Tensor, value: Tensor, { timeStep, length, prefix }: StepArgs): CachedHeads {
    const [size, steps] = [this.#size, key.shape[1]!];
    const end = tf.add(timeStep, length ?? int(steps)) as Tensor;
    const first = stepsFrom(tf.sub(timeStep, int(size)) as Tensor, 1);
    const inOrder = tf.mod(
      tf.add(stepsFrom(timeStep, 1), tf.range(0, size, 1, 'int32')),
      int(size),
    ) as Tensor;
    // Of the ring and the block, the last token of each place.
    const kept = tf.sub(this.#positionsUpTo(tf.sub(end, int(1)) as Tensor), first) as Tensor;
    const extended = (name: string, tokens: Tensor): Tensor => {
      const ring = swapTimeAndHeads(this.getDecodeState(name));
      const all = tf.concat([taken(ring, inOrder), tokens], 1) as Tensor;
      this.updateDecodeState(name, swapTimeAndHeads(taken(all, kept)));
      return all;
    };
    const keys = tf.add(first, tf.range(0, size + steps, 1, 'int32')) as Tensor;
    return {
      key: extended('key_state', key),
      value: extended('value_state', value),
      seen: {
        causal: true,
        window: { before: this.hp.windowSize! - 1 },
        // Places of the ring that no token has yet are before the sequence.
        segments: {
          queries: tf.zeros([1, steps], 'int32'),
          keys: tf.where(tf.less(keys, int(0)), tf.onesLike(keys), tf.zerosLike(keys)),
        },
        positions: { queries: stepsFrom(timeStep, steps), keys },
        ...(prefix && { prefix: tf.add(prefix, int(size)) as Tensor }),
      },
    };
  }

  /** The newest position up to `last` of each place, [B or 1, size]; below 0 where there is none. */
  #positionsUpTo(last: Tensor): Tensor {
    const size = this.#size;
    const rows = stepsFrom(last, 1);
    const age = tf.mod(tf.sub(rows, tf.range(0, size, 1, 'int32')), int(size));
    return tf.sub(rows, age) as Tensor;
  }
}

/** Keys and values of a memory, such as an encoder's states, which a decode computes once. */
export class MemoryCache extends BaseKvCache {
  override decodeStateSpecs(
    batchSize: number,
    _seqLen: number,
    memoryLen: number,
  ): Record<string, DecodeStateSpec> {
    if (memoryLen > 0) return this.specsOf(batchSize, memoryLen);
    throw this.error(
      'keeps keys and values of a memory: give its length, decodeStateSpecs(layer, rows, seqLen, memoryLen).',
    );
  }

  /** Fills the cache. @param key [B, M, N, H]. @param value [B, M, N, H]. */
  begin(key: Tensor, value: Tensor): void {
    this.updateDecodeState('key_state', swapTimeAndHeads(key));
    this.updateDecodeState('value_state', swapTimeAndHeads(value));
  }

  /** The memory's keys and values; those of the tokens are not read. */
  extend(_key: Tensor, _value: Tensor, { memorySeen = {} }: StepArgs): CachedHeads {
    const [key, value] = ['key_state', 'value_state'].map((name) =>
      swapTimeAndHeads(this.getDecodeState(name)),
    );
    return { key: key!, value: value!, seen: memorySeen };
  }
}
