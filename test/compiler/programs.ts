/** @file Random programs: graphs of many operations with broadcasting, shared parts and views of views. */
import fc from 'fast-check';
import {
  type HostTensor,
  ops,
  type Precision,
  type Tensor,
  tf,
  valueAndGrad,
  withPrecision,
} from '../../src/compiler/index.js';
import { kernelSteps, runKernelStep } from './kernelOperations.js';
import { type BodySteps, loops, type Made } from './programLoops.js';
import { broadcasts, type Inputs, pairs, shapes, smooth, takesEmpty } from './programOperations.js';
import { specials } from './specialOperations.js';
import { floats, host, ints, weightedSum } from './values.js';

/**
 * One step: an operation on values made before; the numbers choose operands and axes, whatever there is. The next steps, as
 * `n` says, are the body of a loop or choice.
 */
export interface Step {
  readonly op: string;
  readonly a: number;
  readonly b: number;
  readonly n: number;
}

/** A step that has the next ones, as many as its `n` says, run in a checkpoint, whose policy `a` chooses. */
const CHECKPOINT = 'checkpoint';

const policies = ['nothing', 'dots', 'dotsWithNoBatchDims'] as const;

/** A value is kept where it is small enough to go on with. */
const fits = (x: Tensor): boolean => x.rank <= 4 && x.size <= 200;

export const stepsArbitrary = fc.array(
  fc.record({
    op: fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          ...Object.keys(smooth),
          ...Object.keys(pairs),
          ...Object.keys(shapes),
          ...Object.keys(pairs),
          ...Object.keys(specials),
          ...Object.keys(loops),
          CHECKPOINT,
        ),
      },
      { weight: 1, arbitrary: fc.constantFrom(...kernelSteps) },
    ),
    a: fc.nat(1000),
    b: fc.nat(1000),
    n: fc.nat(11),
  }),
  { minLength: 3, maxLength: 24, size: 'max' },
);

/** The inputs of all programs. */
export const programInputs: Inputs<HostTensor> = {
  floats: [
    floats([2, 3], -2, 2, 21),
    floats([3, 1, 2], -2, 2, 22),
    floats([3], -2, 2, 23),
    floats([], -2, 2, 24),
    floats([2, 2, 3, 1], -2, 2, 25),
  ],
  special: host(
    [16],
    [
      NaN,
      Infinity,
      -Infinity,
      0,
      -0,
      1e-45,
      -1e-40,
      1.2e-38,
      3.4e38,
      -3.4e38,
      1e20,
      -1e-20,
      0.5,
      -2.5,
      1,
      16777217,
    ],
  ),
  ids: ints([4], 0, 5),
  key: host([2], [3, 4], 'int32'),
};

/** Runs the steps. @returns values that no later step may have used, and some in between */
function runSteps(steps: readonly Step[], inputs: Inputs<Tensor>): Made {
  const pool = [...inputs.floats];
  const special: Tensor[] = [];
  // Later values are chosen more often: programs become deep.
  const operand = (a: number): Tensor => pool[pool.length - 1 - (a % Math.min(pool.length, 6))]!;
  const run = ({ op, a, b, n }: Step): void => {
    if (op in specials) {
      special.push(specials[op]!(inputs.special, n));
      return;
    }
    const x = operand(a);
    if (x.size === 0 && !takesEmpty.has(op)) return;
    if (kernelSteps.includes(op)) {
      const results = runKernelStep(op, a + b, x, inputs);
      pool.push(...results.smooth.filter(fits));
      special.push(...results.exact);
      return;
    }
    const partners = pool.filter(
      ({ shape, size }) => broadcasts(shape, x.shape) && (size > 0 || takesEmpty.has(op)),
    );
    const y = partners[b % partners.length]!;
    const axis = x.rank === 0 ? 0 : b % x.rank;
    const made = smooth[op]?.(x) ?? pairs[op]?.(x, y) ?? shapes[op]!({ x, y, n, axis, inputs });
    pool.push(...[made].flat().filter(fits));
  };
  const runAll = ([step, ...rest]: readonly Step[]): void => {
    if (step === undefined) return;
    const { op, a, n } = step;
    if (op === CHECKPOINT) ops.checkpoint(runAll, policies[a % policies.length])(rest.splice(0, n));
    else if (op in loops) repeat(step, rest.splice(0, 1 + (n % 4)));
    else run(step);
    runAll(rest);
  };
  /** What is made in a body leaves it by the results of the loop alone. */
  const repeat = ({ op, a, n }: Step, within: readonly Step[]): void => {
    const body: BodySteps = (x) => {
      const [values, others] = [pool.length, special.length];
      pool.push(x);
      runAll(within);
      return { values: pool.splice(values).slice(1), special: special.splice(others) };
    };
    const x = operand(a);
    const made = x.size === 0 ? body(x) : loops[op]!(x, body, n);
    pool.push(...made.values.filter(fits));
    special.push(...made.special);
  };
  runAll(steps);
  return { values: pool.slice(-3).concat(pool[Math.floor(pool.length / 2)]!), special };
}

/**
 * The outputs of the steps and the gradients of a weighted sum of them with respect to all float inputs.
 *
 * @param precision of the products.
 */
export const differentiated =
  (steps: readonly Step[], precision: Precision = 'float32') =>
  (inputs: Inputs<Tensor>): Tensor[] => {
    const { aux, grads } = valueAndGrad(
      (leaves: Tensor[]) => {
        const run = () => runSteps(steps, { ...inputs, floats: leaves });
        const { values, special } = withPrecision(precision, run);
        // Every input takes part, so that every gradient exists.
        const value = tf.add(weightedSum(values), weightedSum(leaves));
        return { value, aux: [...values, ...special] };
      },
      [...inputs.floats],
    );
    return [...aux, ...grads];
  };

/** Max pooling's gradient has none, nor have some of the cases'. */
const hasSecond = ({ op }: Step): boolean => op !== 'largestNear' && !kernelSteps.includes(op);

/** The gradients, with respect to all float inputs, of a weighted sum of the gradients. */
export const twiceDifferentiated =
  (steps: readonly Step[], precision: Precision = 'float32') =>
  (inputs: Inputs<Tensor>): Tensor[] => {
    const kept = steps.map((step) => (hasSecond(step) ? step : { ...step, op: 'same' }));
    const slopes = (...leaves: Tensor[]): any => {
      const all = differentiated(kept, precision)({ ...inputs, floats: leaves });
      // Every input takes part, so that every gradient exists.
      return tf.add(weightedSum(all.slice(-leaves.length)), weightedSum(leaves.map((x) => tf.square(x))));
    };
    const { value, grads } = tf.valueAndGrads(slopes)([...inputs.floats]);
    return [value, ...grads];
  };
