/**
 * @file Calls of tfjs's random operations, caught while they draw on the host. Modules that have imported an operation hold
 * it for good, so that the call itself cannot be replaced; but all of them draw what is offset + scale * x, and two draws
 * from a known seed tell both numbers.
 */
import { CompilerError } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';

/** tfjs's operations by the distribution that they draw from, in its standard form where they are given a shape alone. */
const OPERATIONS = {
  randomUniform: tf.randomUniform,
  randomNormal: tf.randomNormal,
  truncatedNormal: tf.truncatedNormal,
};

export type Distribution = keyof typeof OPERATIONS;

export const isDistribution = (op: string): op is Distribution => Object.hasOwn(OPERATIONS, op);

/** Draws standard numbers of a distribution within a program. */
export type Drawer = (distribution: Distribution, shape: readonly number[]) => tf.Tensor;

/** tfjs's engine, whose method makes the results of draws. */
type Maker = { makeTensor: (values: unknown, shape: number[], dtype?: tf.DataType) => tf.Tensor };

/** The words of `Math.random`, of which operations without a seed make theirs. */
const SEED = 0.5;

/** Stops catching, if it goes on. */
let release: (() => void) | null = null;

export const releaseDraw = (): void => release?.();

/**
 * Has the operation that begins draw two numbers, whatever its shape, and `made` give its result.
 *
 * @param made gets the two numbers, or null where they are not of the known seed.
 */
function catching(
  made: (two: ArrayLike<number> | null, shape: number[], dtype: tf.DataType) => tf.Tensor,
): void {
  const engine = tf.engine() as unknown as Maker;
  const { makeTensor } = engine;
  const { random } = Math;
  const two = new Float64Array(2);
  let isUnseeded = false;
  Math.random = () => {
    isUnseeded = true;
    return SEED;
  };
  // The constructor assigns the elements.
  Object.defineProperty(tf.TensorBuffer.prototype, 'values', {
    configurable: true,
    set(this: object) {
      Object.defineProperty(this, 'values', { value: two });
    },
  });
  engine.makeTensor = (values, shape, dtype) => {
    release!();
    return made(values === two && isUnseeded ? two : null, shape, dtype ?? 'float32');
  };
  release = () => {
    Math.random = random;
    engine.makeTensor = makeTensor;
    delete (tf.TensorBuffer.prototype as { values?: unknown }).values;
    release = null;
  };
}

/** The draws of the standard distributions from the known seed. */
const standards = new Map<Distribution, ArrayLike<number>>();

let isMeasuring = false;

/** Two standard draws from the known seed. */
function standardOf(distribution: Distribution): ArrayLike<number> {
  const known = standards.get(distribution);
  if (known !== undefined) return known;
  isMeasuring = true;
  try {
    tf.tidy(() => OPERATIONS[distribution]([2]));
  } finally {
    isMeasuring = false;
  }
  return standards.get(distribution)!;
}

/**
 * Has the random operation that begins give numbers that `draw` makes, with its own mean and deviation, or limits.
 *
 * @throws CompilerError from the operation, where it has a seed, or draws integers of a normal distribution.
 */
export function catchDraw(distribution: Distribution, draw: Drawer): void {
  if (isMeasuring) {
    catching((two) => {
      standards.set(distribution, Float64Array.from(two!));
      return tf.scalar(0);
    });
    return;
  }
  const [x, y] = Array.from(standardOf(distribution)) as [number, number];
  catching((two, shape, dtype) => {
    if (two === null)
      throw new CompilerError(
        `tf.${distribution}: with a seed, each call and each run would have the same numbers. Leave it out: a compiled ` +
          'function draws from its own seed.',
      );
    if (dtype !== 'float32' && !(dtype === 'int32' && distribution === 'randomUniform'))
      throw new CompilerError(`tf.${distribution}: a program draws float32, got ${dtype}; tf.cast converts.`);
    const scale = (two[0]! - two[1]!) / (x - y);
    const offset = two[0]! - scale * x;
    const standard = draw(distribution, shape);
    // What differs by less is rounding in the two numbers.
    const near = (a: number, b: number): boolean =>
      Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(scale), Math.abs(b));
    const scaled = near(scale, 1) ? standard : tf.mul(standard, scale);
    const moved = near(offset, 0) ? scaled : tf.add(scaled, offset);
    return dtype === 'float32' ? moved : tf.cast(moved, dtype);
  });
}
