/** @file Chinchilla's law of the loss by parameters and tokens, and its fit (Hoffmann et al., 2022, appendix D.3). */

/** A training that has ended. */
export interface Training {
  /** Parameters of the model. */
  readonly parameters: number;
  /** Tokens that it was trained on; of other data, examples. */
  readonly tokens: number;
  /** FLOPs of all its steps. */
  readonly flops: number;
  /** The loss at its end, above 0. */
  readonly loss: number;
}

/** loss = E + A / parameters^alpha + B / tokens^beta */
export interface ScalingLaw {
  readonly E: number;
  readonly A: number;
  readonly B: number;
  readonly alpha: number;
  readonly beta: number;
}

/** Sizes, and lengths of training, that a law of five numbers takes at least. */
export const FEWEST = 3;
/** The deviation of a logarithm from which Huber's loss is linear. */
const DELTA = 1e-3;
const EXPONENTS = [0.1, 0.3, 0.6, 1];
/** Shares of the loss of which E is a start. */
const FLOORS = [0.2, 0.6, 0.9];
const MAX_STEPS = 500;

/** The loss that a law predicts. */
export const lossOf = (
  { E, A, B, alpha, beta }: ScalingLaw,
  { parameters, tokens }: Pick<Training, 'parameters' | 'tokens'>,
): number => E + A / parameters ** alpha + B / tokens ** beta;

/** How parameters and tokens grow with FLOPs where the loss is the least for them: as FLOPs to the power of these. */
export const optimalPowers = ({ alpha, beta }: ScalingLaw) => ({
  parameters: beta / (alpha + beta),
  tokens: alpha / (alpha + beta),
});

/** A function and its gradient at a point. */
type Objective = (x: readonly number[]) => { readonly value: number; readonly gradient: number[] };

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/**
 * The law whose logarithms have the least sum of Huber's losses, of the best of several starts.
 *
 * @param trainings of at least `FEWEST` sizes and as many numbers of tokens.
 */
export function fitScalingLaw(trainings: readonly Training[]): ScalingLaw {
  const logs = (of: keyof Training) => trainings.map((each) => Math.log(each[of]));
  const [sizes, lengths, losses] = [logs('parameters'), logs('tokens'), logs('loss')];
  // Around the middle of the trainings, A and alpha hardly depend on each other, nor B and beta.
  const [middleSize, middleLength, least] = [mean(sizes), mean(lengths), Math.min(...losses)];
  const points = losses.map((loss, i) => ({
    size: sizes[i]! - middleSize,
    length: lengths[i]! - middleLength,
    loss,
  }));
  /** Of log A, log alpha, log B, log beta, log E, the first and the third at the middle. */
  const objective: Objective = ([a, p, b, q, e]) => {
    let value = 0;
    const gradient = [0, 0, 0, 0, 0];
    const [alpha, beta] = [Math.exp(p!), Math.exp(q!)];
    for (const { size, length, loss } of points) {
      const terms = [a! - alpha * size, b! - beta * length, e!];
      const most = Math.max(...terms);
      const parts = terms.map((term) => Math.exp(term - most));
      const sum = parts.reduce((x, y) => x + y);
      const off = (most + Math.log(sum) - loss) / DELTA;
      value += Math.abs(off) <= 1 ? off ** 2 / 2 : Math.abs(off) - 0.5;
      const slope = Math.max(-1, Math.min(1, off)) / DELTA;
      const [ofA, ofB, ofE] = parts.map((part) => (slope * part) / sum) as [number, number, number];
      for (const [i, x] of [ofA, -ofA * alpha * size, ofB, -ofB * beta * length, ofE].entries())
        gradient[i]! += x;
    }
    return { value, gradient };
  };
  const starts = EXPONENTS.flatMap((alpha) =>
    EXPONENTS.flatMap((beta) =>
      FLOORS.map((floor) => {
        const rest = least + Math.log((1 - floor) / 2);
        return [rest, Math.log(alpha), rest, Math.log(beta), least + Math.log(floor)];
      }),
    ),
  );
  const found = starts.map((start) => minimized(objective, start));
  const [a, p, b, q, e] = found.reduce((best, each) => (each.value < best.value ? each : best)).x;
  const [alpha, beta] = [Math.exp(p!), Math.exp(q!)];
  return {
    E: Math.exp(e!),
    A: Math.exp(a! + alpha * middleSize),
    B: Math.exp(b! + beta * middleLength),
    alpha,
    beta,
  };
}

/** The minimum by the method of Broyden, Fletcher, Goldfarb and Shanno (Nocedal and Wright, 6.1), steps halved by Armijo's rule. */
function minimized(objective: Objective, start: readonly number[]): { x: readonly number[]; value: number } {
  const n = start.length;
  const unit = () => start.map((_, i) => start.map((_, j) => (i === j ? 1 : 0)));
  let [x, inverse] = [start, unit()];
  let { value, gradient } = objective(x);
  for (let step = 0; step < MAX_STEPS; step++) {
    let direction = inverse.map((row) => -dot(row, gradient));
    let slope = dot(direction, gradient);
    if (slope >= 0) {
      inverse = unit();
      direction = gradient.map((each) => -each);
      slope = -dot(gradient, gradient);
    }
    // No step multiplies a number of the law by more than e.
    let rate = Math.min(1, 1 / Math.max(...direction.map(Math.abs), 1e-300));
    let next = x;
    let after = { value, gradient };
    for (let halving = 0; halving < 60; halving++, rate /= 2) {
      const at = direction.map((each, i) => x[i]! + rate * each);
      after = objective(at);
      next = at;
      if (after.value <= value + 1e-4 * rate * slope) break;
    }
    if (!(after.value < value)) break;
    const moved = next.map((each, i) => each - x[i]!);
    const turned = after.gradient.map((each, i) => each - gradient[i]!);
    const curvature = dot(moved, turned);
    if (curvature > 1e-12) {
      const product = inverse.map((row) => dot(row, turned));
      const scale = (1 + dot(turned, product) / curvature) / curvature;
      for (let i = 0; i < n; i++)
        for (let j = 0; j < n; j++)
          inverse[i]![j]! +=
            scale * moved[i]! * moved[j]! - (product[i]! * moved[j]! + moved[i]! * product[j]!) / curvature;
    }
    const gain = value - after.value;
    [x, value, gradient] = [next, after.value, after.gradient];
    if (gain < 1e-12 * Math.max(1, value)) break;
  }
  return { x, value };
}
