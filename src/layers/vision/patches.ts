/** @file Images as sequences of patches, and position embeddings of a grid of them (praxis/layers/vits.py). */
import { type Tensor, tf } from '../../compiler/index.js';

/**
 * Images [B, H, W, C] as patches [B, H · W / P², P² · C], row by row; a patch's elements are its rows.
 *
 * @throws Error where P does not divide H and W
 */
export function imageToPatch(images: Tensor, patchSize: number): Tensor {
  const [batch, height, width, channels] = images.shape as [number, number, number, number];
  const [rows, columns] = grid(images.shape, patchSize);
  const cells = tf.reshape(images, [batch, rows, patchSize, columns, patchSize, channels]);
  const patches = tf.transpose(cells, [0, 1, 3, 2, 4, 5]);
  return tf.reshape(patches, [batch, rows * columns, (height * width * channels) / (rows * columns)]);
}

/** Rows and columns of patches of images [B, H, W, C]. @throws Error where patches do not fit */
export function grid(shape: readonly number[], patchSize: number): [number, number] {
  const [, height, width] = shape as [number, number, number];
  if (height % patchSize !== 0 || width % patchSize !== 0)
    throw new Error(`images of ${height}x${width} are no multiple of the patchSize ${patchSize}.`);
  return [height / patchSize, width / patchSize];
}

/**
 * Embeddings [H1 · W1, D] of a grid for another one, [H2 · W2, D], by bilinear interpolation; where the target is smaller,
 * cells are means over what they cover (as jax.image.resize does).
 */
export function resizeGrid(
  embeddings: Tensor,
  from: readonly [number, number],
  to: readonly [number, number],
): Tensor {
  if (from.join() === to.join()) return embeddings;
  const depth = embeddings.shape[1]!;
  const [down, across] = [0, 1].map((axis) => weightsOf(from[axis]!, to[axis]!)) as [Tensor, Tensor];
  const rows = tf.matMul(down, tf.reshape(embeddings, [from[0], from[1] * depth]));
  const columns = tf.reshape(rows, [to[0], from[1], depth]);
  const resized = tf.matMul(tf.tile(tf.expandDims(across, 0), [to[0], 1, 1]), columns);
  return tf.reshape(resized, [to[0] * to[1], depth]);
}

/** Shares [to, from] of the source's cells in each of the target's: a triangle around the cell's middle. */
function weightsOf(from: number, to: number): Tensor {
  const width = Math.max(from / to, 1);
  const rows = Array.from({ length: to }, (_, i) => {
    const middle = ((i + 0.5) * from) / to - 0.5;
    const row = Array.from({ length: from }, (_, j) => Math.max(0, 1 - Math.abs(j - middle) / width));
    const total = row.reduce((a, b) => a + b, 0);
    return row.map((share) => share / total);
  });
  return tf.tensor2d(rows, [to, from], 'float32');
}
