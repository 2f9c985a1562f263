/** @file Summaries of layers: their names, and the tensors of those that are no scalars. */
import { type Tensor, tf } from '../../compiler/index.js';

/** Most images, sounds or texts of one summary, as in Pax. */
export const MOST_ENTRIES = 64;

/** Kind of a summary that is no scalar: what its tensor holds. */
export type MediaKind = keyof typeof MEDIA;

/** A kind of summary: its tensor from a layer's, the first `most` entries of it, or the reason why it is none. */
type Entries = (value: Tensor, most: number) => Tensor | string;

const first = (value: Tensor, most: number): Tensor => {
  const [n = 0, ...rest] = value.shape;
  return tf.slice(value, [0, ...rest.map(() => 0)], [Math.min(n, most), ...rest]);
};
const shapeOf = ({ shape }: Tensor): string => `[${shape.join(', ')}]`;

/** Kinds by the end of their names, which is Pax's (SummaryType in praxis/base_layer.py). */
const MEDIA = {
  image: (value, most) =>
    value.rank === 4 && [1, 3, 4].includes(value.shape[3]!)
      ? tf.cast(first(value, most), 'float32')
      : `expected [n, height, width, channels] with 1, 3 or 4 channels, got ${shapeOf(value)}.`,
  audio: (value, most) =>
    value.rank === 2 || value.rank === 3
      ? tf.cast(first(value.rank === 2 ? tf.expandDims(value, 2) : value, most), 'float32')
      : `expected [n, samples] or [n, samples, channels], got ${shapeOf(value)}.`,
  text: (value, most) =>
    value.rank === 2 && value.dtype === 'int32'
      ? first(value, most)
      : `expected int32 [n, length], got ${value.dtype} ${shapeOf(value)}.`,
  // All of them: buckets depend on the least and the largest.
  histogram: (value) => tf.cast(tf.reshape(value, [-1]), 'float32'),
} satisfies Record<string, Entries>;

/** The tensor of a summary of this kind. @throws what `error` makes of the reason, for another shape */
export function mediaTensor(
  kind: MediaKind,
  value: Tensor,
  most: number,
  error: (reason: string) => Error,
): Tensor {
  const entries: Entries = MEDIA[kind];
  const found = entries(value, most);
  if (typeof found === 'string') throw error(found);
  return found;
}

/** A name that no summary has yet: `<path>_<type>`, then `<path>1_<type>`. */
export function summaryKey(summaries: object, path: string, type: string): string {
  let key = `${path}_${type}`;
  for (let i = 1; key in summaries; i++) key = `${path}${i}_${type}`;
  return key;
}

/**
 * Summaries of repetitions of a layer, each by a name of its own.
 *
 * @param stacks [repetitions, …], by names that those of the layer open with its `path`.
 */
export const repetitionsApart = (
  stacks: Readonly<Record<string, Tensor>>,
  path: string,
): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(stacks).flatMap(([name, stack]) =>
      tf
        .unstack(stack)
        .map((value, i) => [
          name.startsWith(path) ? `${path}_${i}${name.slice(path.length)}` : repeatedKey(name, i),
          value,
        ]),
    ),
  );

/** The name of a repetition's summary, by that of all: `<path>_<i>_<type>`. */
const repeatedKey = (key: string, repetition: number): string =>
  key.replace(/_[a-z]+\d*$/, (type) => `_${repetition}${type}`);

/** Kind of a summary by its name, and for sounds their samples per second: `<path>_audio16000`. */
export function mediaType(key: string): { readonly kind: MediaKind; readonly sampleRate: number } {
  const [, kind, rate] = /_([a-z]+)(\d*)$/.exec(key)!;
  return { kind: kind as MediaKind, sampleRate: Number(rate) };
}
