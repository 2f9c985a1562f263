/** @file Loops and choices of random programs: their bodies are the steps that follow. */
import { ops, type Tensor, tf } from '../../src/compiler/index.js';
import { sameShape } from '../../src/compiler/program/tensors.js';

/** What steps make: values to go on with, and special or exact ones. */
export interface Made {
  readonly values: Tensor[];
  readonly special: Tensor[];
}

/** Runs the steps of a body, which may use `x` and every value made before. */
export type BodySteps = (x: Tensor) => Made;

/** The last value that can be the next carry, made small: no turn is far from the one before. */
const nextOf = (x: Tensor, values: readonly Tensor[]): Tensor =>
  tf.tanh(values.findLast(({ shape }) => sameShape(shape, x.shape)) ?? x);

/** A few of what a turn makes. */
const some = ({ values, special }: Made): Made => ({ values: values.slice(-2), special });

/** A first carry of these dimensions that depends on nothing: all of one number, or of as many as there are elements. */
const constantOf = ({ shape, size }: Tensor, n: number): Tensor =>
  n % 3 === 0
    ? tf.fill(shape, n / 12)
    : tf.cos(
        tf.tensor(
          Float32Array.from({ length: size }, (_, i) => (n + i) / 8),
          shape,
        ),
      );

function scan(x: Tensor, start: Tensor, steps: BodySteps, n: number): Made {
  const slices = tf.mul(tf.tensor1d([1, -0.5, 0.25].slice(n % 3)), tf.mean(x));
  const turn = (carry: Tensor, slice: Tensor): [Tensor, Made] => {
    const made = steps(tf.add(carry, slice));
    return [nextOf(x, made.values), some(made)];
  };
  const [last, ys] = ops.scan(turn as any, start, slices, { reverse: n % 2 === 1 }) as unknown as [
    Tensor,
    Made,
  ];
  return { values: [...ys.values, last], special: ys.special };
}

function whileLoop(start: Tensor, steps: BodySteps, n: number): Made {
  const limit = 0.7 * start.size;
  const last = ops.whileLoop(
    ({ carry, turn }) =>
      tf.logicalAnd(tf.less(turn, tf.scalar(3, 'int32')), tf.less(tf.sum(tf.abs(carry)), limit)),
    ({ carry, turn }) => ({
      carry: nextOf(start, steps(carry).values),
      turn: tf.add(turn, tf.scalar(1, 'int32')) as Tensor,
    }),
    { carry: start, turn: tf.scalar(0, 'int32') as Tensor },
    { maxSteps: n % 5 },
  );
  return { values: [last.carry], special: [last.turn] };
}

/** Loops and choices by name; what `n` says is theirs to choose. None takes an empty tensor. */
export const loops: Readonly<Record<string, (x: Tensor, steps: BodySteps, n: number) => Made>> = {
  scan: (x, steps, n) => scan(x, x, steps, n),
  scanFromConstant: (x, steps, n) => scan(x, constantOf(x, n), steps, n),
  cond: (x, steps) =>
    ops.cond(
      tf.greater(tf.sum(x), 0.1),
      (given: Tensor) => some(steps(given)) as any,
      (given) => some(steps(tf.mul(given, -0.5))) as any,
      x,
    ) as unknown as Made,
  whileLoop: (x, steps, n) => whileLoop(x, steps, n),
  whileLoopFromConstant: (x, steps, n) => whileLoop(constantOf(x, n), steps, n),
};
