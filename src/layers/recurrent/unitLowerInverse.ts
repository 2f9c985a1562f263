/** @file Inverses of many small lower triangular matrices, by products alone. */
import { type Tensor, tf } from '../../compiler/index.js';

/** Matrices up to this size are inverted by a series. */
const SMALL = 8;

/** I + x for x [..., n, n]. */
const plusIdentity = (x: Tensor): Tensor => tf.add(x, tf.eye(x.shape.at(-1)!));

/** The inverse of I + x for strictly lower triangular x [..., SMALL, SMALL]: (I - x)(I + x²)(I + x⁴), for x⁸ is 0. */
function bySeries(x: Tensor): Tensor {
  const square = tf.matMul(x, x);
  const first = tf.matMul(plusIdentity(tf.neg(x)), plusIdentity(square));
  return tf.matMul(first, plusIdentity(tf.matMul(square, square)));
}

/** The same for a size that is SMALL times a power of 2: the inverses of the blocks on the diagonal give that of both. */
function byHalves(x: Tensor): Tensor {
  const size = x.shape.at(-1)!;
  if (size === SMALL) return bySeries(x);
  const batch = x.shape.slice(0, -2);
  const half = size / 2;
  const block = (row: number, col: number): Tensor =>
    tf.slice(x, [...batch.map(() => 0), row * half, col * half], [...batch, half, half]);
  const both = byHalves(tf.stack([block(0, 0), block(1, 1)]) as Tensor);
  const [first, second] = tf.unstack(both, 0) as [Tensor, Tensor];
  const below = tf.neg(tf.matMul(second, tf.matMul(block(1, 0), first)));
  const above = tf.zeros([...batch, half, half]);
  return tf.concat([tf.concat([first, above], -1), tf.concat([below, second], -1)], -2);
}

/** Powers of 2 times SMALL, the least that is no less than `size`. */
const fitting = (size: number): number => SMALL * 2 ** Math.ceil(Math.log2(Math.max(size / SMALL, 1)));

/**
 * The inverse of I + x for strictly lower triangular x [..., n, n]. Blocks of 8 are inverted by a series of powers, larger
 * ones by halves, which is as accurate as forward substitution; longer series would cancel.
 */
export function unitLowerInverse(x: Tensor): Tensor {
  const batch = x.shape.slice(0, -2);
  const size = x.shape.at(-1)!;
  const extra = fitting(size) - size;
  const inverseOf = (given: Tensor): Tensor => {
    if (extra === 0) return byHalves(given);
    const padded = tf.pad(
      given,
      [...batch, 0, 0].map((_, i): [number, number] => [0, i < batch.length ? 0 : extra]),
    );
    return tf.slice(byHalves(padded), [...x.shape.map(() => 0)], x.shape);
  };
  const call = tf.customGrad(((given: Tensor, save: (saved: Tensor[]) => void) => {
    const inverse = inverseOf(given);
    save([inverse]);
    const gradFunc = (dy: Tensor, [solved]: Tensor[]): Tensor =>
      tf.neg(tf.matMul(tf.matMul(solved!, dy, true), solved!, false, true));
    return { value: inverse, gradFunc };
  }) as never);
  return call(x) as Tensor;
}
