/** @file Summaries of layers: their names, images among them. */
import { type Tensor, tf } from '../../compiler/index.js';

/** A name that no summary has yet: `<path>_<type>`, then `<path>1_<type>`. */
export function summaryKey(summaries: object, path: string, type: 'scalar' | 'image'): string {
  let key = `${path}_${type}`;
  for (let i = 1; key in summaries; i++) key = `${path}${i}_${type}`;
  return key;
}

/**
 * The first images of [n, height, width, channels], as float32.
 *
 * @throws what `error` makes of the reason, for another shape.
 */
export function firstImages(images: Tensor, most: number, error: (detail: string) => Error): Tensor {
  const [n = 0, height, width, channels = 0] = images.shape;
  if (images.rank !== 4 || ![1, 3, 4].includes(channels))
    throw error(
      `expected [n, height, width, channels] with 1, 3 or 4 channels, got [${images.shape.join(', ')}].`,
    );
  const some = tf.slice(images, [0, 0, 0, 0], [Math.min(n, most), height!, width!, channels]);
  return tf.cast(some, 'float32');
}
