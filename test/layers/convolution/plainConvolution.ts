/** @file Convolutions over any number of axes, one multiplication after the other. */
import type { tf } from '../../../src/compiler/index.js';

export interface Shape {
  readonly stride: readonly number[];
  readonly dilations: readonly number[];
  /** Cells of padding in front. */
  readonly before: readonly number[];
  readonly outputs: readonly number[];
}

/** All index tuples below `sizes`, the last index fastest. */
const tuples = (sizes: readonly number[]): number[][] =>
  sizes.reduce<number[][]>(
    (rest, size) => rest.flatMap((head) => Array.from({ length: size }, (_, i) => [...head, i])),
    [[]],
  );

const at = (index: readonly number[], shape: readonly number[]): number =>
  index.reduce((sum, i, axis) => sum * shape[axis]! + i, 0);

/** x [B, ...cells, D] by w [...window, I, O], in D / I groups of channels: [B, ...outputs, O], row-major. */
export function convolve(
  x: tf.Tensor,
  w: tf.Tensor,
  { stride, dilations, before, outputs }: Shape,
): number[] {
  const window = w.shape.slice(0, -2);
  const [I, O] = w.shape.slice(-2) as [number, number];
  const groups = x.shape.at(-1)! / I;
  const [values, weights] = [x.dataSync(), w.dataSync()];
  return tuples([x.shape[0]!, ...outputs, O]).map((place) => {
    const [batch, out] = [place[0]!, place.at(-1)!];
    const first = Math.floor(out / (O / groups)) * I;
    let sum = 0;
    for (const tap of tuples(window)) {
      const cell = tap.map(
        (t, axis) => place[axis + 1]! * stride[axis]! + t * dilations[axis]! - before[axis]!,
      );
      if (cell.some((c, axis) => c < 0 || c >= x.shape[axis + 1]!)) continue;
      for (let c = 0; c < I; c++)
        sum += values[at([batch, ...cell, first + c], x.shape)]! * weights[at([...tap, c, out], w.shape)]!;
    }
    return sum;
  });
}
