/** @file Shampoo: steps preconditioned by a matrix for each side of a variable (Gupta et al., 2018; Anil et al., 2020). */
import { z } from 'zod';
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { inverseRoot } from './inverseRoot.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, NamedTensors, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike, squaresLike } from './slots.js';

const GRAFTS = ['sgd', 'adagrad', 'rmsprop', 'rmspropNormalized', 'adagradNormalized'] as const;

const interval = z.int().positive();

/** Blocks of a variable as a matrix: [rowBlocks · rows, columnBlocks · columns], zeros beyond its own. */
interface Blocks {
  readonly matrix: readonly [number, number];
  readonly rows: number;
  readonly columns: number;
  readonly rowBlocks: number;
  readonly columnBlocks: number;
}

/** A side's statistics and roots, by the names of their slots, and the size of their matrices. */
interface Side {
  readonly statistics: string;
  readonly root: string;
  readonly size: number;
}

/**
 * Shampoo as Pax's DistributedShampoo has it. Of a variable as a matrix G, in blocks of at most `blockSize` a side:
 *
 *     L = beta2 L + (1 - beta2) G Gᵗ           R = beta2 R + (1 - beta2) Gᵗ G            each `statisticsComputeSteps`
 *     P = L^(-1/4), Q = R^(-1/4)                                                       each `preconditioningComputeSteps`
 *     u = P G Q · |graft| / |P G Q|            graft: the step of `graftType`, which gives the size
 *     m = beta1 m + u                          direction = u + beta1 m (nesterov), else m
 *
 * and before `startPreconditioningStep` the same with the graft for u. A variable with one side has the power -1/2. A variable
 * with more than two dimensions is the matrix that is nearest to a square; blocks of a side are alike, where Pax cuts off
 * whole ones of blockSize first.
 */
export class Shampoo extends BaseOptimizer.with({
  blockSize: interval.default(1024).describe('Most rows and columns of a preconditioner.'),
  beta1: z.number().min(0).lt(1).default(0.9).describe('Momentum.'),
  beta2: z
    .number()
    .gt(0)
    .max(1)
    .default(0.999)
    .describe('Decay of statistics, and of the squares of the graft; 1 sums them.'),
  diagonalEpsilon: z.number().positive().default(1e-16).describe('Added to the denominator of the graft.'),
  matrixEpsilon: z
    .number()
    .positive()
    .default(1e-6)
    .describe('Added to the diagonal of statistics before the root.'),
  relativeMatrixEpsilon: z
    .boolean()
    .default(true)
    .describe('Whether matrixEpsilon counts in the largest eigenvalue of the statistics.'),
  startPreconditioningStep: z
    .int()
    .nonnegative()
    .default(101)
    .describe('First step that is preconditioned; those before it are the steps of the graft.'),
  preconditioningComputeSteps: interval.default(100).describe('Steps from roots to the next.'),
  statisticsComputeSteps: interval.default(1).describe('Steps from statistics to the next.'),
  graftType: z
    .enum(GRAFTS)
    .default('adagrad')
    .describe('The optimizer whose step gives the size of each variable.'),
  nesterov: z.boolean().default(true).describe("Nesterov's form of momentum."),
  exponentOverride: z
    .int()
    .nonnegative()
    .default(0)
    .describe('The p of the power -1/p; 0: twice the number of sides.'),
  inverseFailureThreshold: z
    .number()
    .positive()
    .default(0.1)
    .describe('A root that is further off than this is left out, and the one before it stays.'),
  movingAverageForMomentum: z
    .boolean()
    .default(false)
    .describe('Whether the momentum is a mean of steps, not a sum.'),
  clipByScaledGradientNorm: z
    .number()
    .nonnegative()
    .default(0)
    .describe("Largest root mean square of the graft's step; 0 does not limit."),
  skipPreconditioningDimSizeGt: interval
    .default(4096)
    .describe('Variables with a larger dimension take the steps of the graft.'),
  skipPreconditioningRankLt: z
    .int()
    .nonnegative()
    .default(1)
    .describe('Variables with fewer dimensions take the steps of the graft.'),
}) {
  override get isPerVariable(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const { beta1, graftType } = this.hp;
    const blocks = this.blocksOf(variable.shape);
    const count = blocks === undefined ? 0 : blocks.rowBlocks * blocks.columnBlocks;
    const matrices = sidesOf(blocks).flatMap(({ statistics, root, size }) =>
      [statistics, root].map((name) => [name, { shape: [count, size, size] }]),
    );
    return {
      ...(graftType !== 'sgd' && { squares: squaresLike(variable) }),
      ...(beta1 > 0 && { momentum: slotLike(variable) }),
      ...(beta1 > 0 && this.hasGraftMomentum(blocks) && { graftMomentum: slotLike(variable) }),
      ...Object.fromEntries(matrices),
    };
  }

  protected override scalarsAt(step: number): Record<string, number> {
    const { startPreconditioningStep, preconditioningComputeSteps, statisticsComputeSteps } = this.hp;
    return {
      isFirst: step === 0 ? 1 : 0,
      takesStatistics: step % statisticsComputeSteps === 0 ? 1 : 0,
      takesRoots: step % preconditioningComputeSteps === 0 ? 1 : 0,
      isPreconditioned: step >= startPreconditioningStep ? 1 : 0,
    };
  }

  protected direction(inputs: RuleInputs): Direction {
    const { grad, slots, scalars } = inputs;
    const blocks = this.blocksOf(grad.shape);
    const isNormalized = this.hp.graftType.endsWith('Normalized');
    const given = isNormalized ? tf.div(grad, tf.add(normOfAll(grad), 1e-16)) : grad;
    const { direction: graft, slots: squares } = this.graft(given as Tensor, slots);
    if (blocks === undefined) return this.moved(graft, undefined, { ...inputs, slots }, squares);
    const matrices = this.preconditioners(inBlocks(grad, blocks), blocks, slots, scalars);
    const { [LEFT.root]: left, [RIGHT.root]: right } = matrices;
    let turned = inBlocks(grad, blocks);
    if (left !== undefined) turned = tf.matMul(left, turned);
    if (right !== undefined) turned = tf.matMul(turned, right);
    const whole = ofBlocks(turned, blocks, grad.shape);
    const [size, wanted] = [normOfAll(whole), normOfAll(graft)];
    const factor = tf.where(tf.greater(size, 0), tf.div(wanted, tf.add(size, 1e-16)), tf.onesLike(size));
    return this.moved(graft, tf.mul(whole, factor), inputs, { ...squares, ...matrices });
  }

  /** The step of the graft, and its squares. */
  private graft(grad: Tensor, slots: NamedTensors): Direction {
    const { graftType, beta2, diagonalEpsilon, clipByScaledGradientNorm: most } = this.hp;
    if (graftType === 'sgd') return { direction: grad, slots: {} };
    const isSum = graftType.startsWith('adagrad') || beta2 === 1;
    const squares = isSum
      ? tf.add(slots.squares!, tf.square(grad))
      : tf.add(tf.mul(slots.squares!, beta2), tf.mul(tf.square(grad), 1 - beta2));
    const step = tf.div(grad, tf.add(tf.sqrt(squares), diagonalEpsilon));
    // Elements that never had a gradient: their squares are nothing to divide by.
    const direction = tf.where(tf.greater(squares, 0), step, tf.zerosLike(step)) as Tensor;
    const limited =
      most > 0 ? tf.div(direction, tf.maximum(1, tf.div(rootMeanSquare(direction), most))) : direction;
    return { direction: limited as Tensor, slots: { squares } };
  }

  /** Statistics and roots of both sides after a step. @param blocked [blocks, rows, columns] */
  private preconditioners(
    blocked: Tensor,
    blocks: Blocks,
    slots: NamedTensors,
    scalars: NamedTensors,
  ): Record<string, Tensor> {
    const { beta2, matrixEpsilon, relativeMatrixEpsilon, exponentOverride, inverseFailureThreshold } =
      this.hp;
    const sides = sidesOf(blocks);
    const p = exponentOverride || 2 * sides.length;
    return Object.fromEntries(
      sides.flatMap(({ statistics, root, size }) => {
        const unit = tf.expandDims(tf.eye(size), 0);
        const first = tf.mul(unit, scalars.isFirst!);
        const before = tf.add(slots[statistics]!, tf.mul(first, matrixEpsilon));
        const isLeft = statistics === LEFT.statistics;
        const added = each(
          this.hp.statisticsComputeSteps,
          scalars.takesStatistics!,
          before as Tensor,
          (old) => {
            const product = tf.matMul(blocked, blocked, !isLeft, isLeft);
            return tf.add(tf.mul(old, beta2), tf.mul(product, beta2 === 1 ? 1 : 1 - beta2));
          },
        );
        const rootBefore = tf.add(slots[root]!, first) as Tensor;
        const rootAfter = each(
          this.hp.preconditioningComputeSteps,
          scalars.takesRoots!,
          rootBefore,
          (old) => {
            const found = inverseRoot(added, p, {
              epsilon: matrixEpsilon,
              isRelative: relativeMatrixEpsilon,
            });
            return tf.where(tf.less(found.error, inverseFailureThreshold), found.root, old) as Tensor;
          },
        );
        return [
          [statistics, added],
          [root, rootAfter],
        ];
      }),
    );
  }

  /** The direction with momentum: of the preconditioned step, or of the graft before these begin. */
  private moved(
    graft: Tensor,
    preconditioned: Tensor | undefined,
    { slots, scalars }: RuleInputs,
    others: NamedTensors,
  ): Direction {
    const { beta1, nesterov, movingAverageForMomentum } = this.hp;
    const weight = movingAverageForMomentum ? 1 - beta1 : 1;
    const added = (step: Tensor, old: Tensor | undefined): Tensor =>
      old === undefined ? step : tf.add(tf.mul(old, beta1), tf.mul(step, weight));
    const stepped = (step: Tensor, mean: Tensor): Tensor =>
      beta1 > 0 && nesterov ? tf.add(tf.mul(mean, beta1), tf.mul(step, weight)) : mean;
    const step = preconditioned ?? graft;
    const momentum = added(step, slots.momentum);
    const kept = { ...others, ...(beta1 > 0 && { momentum }) };
    if (preconditioned === undefined || this.hp.startPreconditioningStep === 0)
      return { direction: stepped(step, momentum), slots: kept };
    const graftMomentum = added(graft, slots.graftMomentum);
    const isOn = tf.greater(scalars.isPreconditioned!, 0);
    return {
      direction: tf.where(isOn, stepped(step, momentum), stepped(graft, graftMomentum)),
      slots: { ...kept, ...(beta1 > 0 && { graftMomentum }) },
    };
  }

  private hasGraftMomentum(blocks: Blocks | undefined): boolean {
    return blocks !== undefined && this.hp.startPreconditioningStep > 0;
  }

  /** The blocks of a variable; undefined for one that is not preconditioned. */
  private blocksOf(shape: readonly number[]): Blocks | undefined {
    const { blockSize, skipPreconditioningDimSizeGt, skipPreconditioningRankLt } = this.hp;
    if (shape.length < Math.max(1, skipPreconditioningRankLt) || sizeOf(shape) <= 1) return undefined;
    if (shape.some((dim) => dim > skipPreconditioningDimSizeGt)) return undefined;
    const longest = shape.map((_, i) => Math.max(...matrixAt(shape, i + 1)));
    const matrix = matrixAt(shape, longest.indexOf(Math.min(...longest)) + 1);
    const [rowBlocks, columnBlocks] = matrix.map((dim) => Math.ceil(dim / blockSize)) as [number, number];
    const [rows, columns] = [Math.ceil(matrix[0] / rowBlocks), Math.ceil(matrix[1] / columnBlocks)];
    return { matrix, rows, columns, rowBlocks, columnBlocks };
  }
}

const LEFT = { statistics: 'leftStatistics', root: 'leftRoot' };
const RIGHT = { statistics: 'rightStatistics', root: 'rightRoot' };

/** Sides with more than one element. */
function sidesOf(blocks: Blocks | undefined): Side[] {
  if (blocks === undefined) return [];
  const { matrix, rows, columns } = blocks;
  return [
    ...(matrix[0] > 1 ? [{ ...LEFT, size: rows }] : []),
    ...(matrix[1] > 1 ? [{ ...RIGHT, size: columns }] : []),
  ];
}

/** A variable as the matrix of its first dimensions by the others. */
const matrixAt = (shape: readonly number[], dims: number): [number, number] => [
  sizeOf(shape.slice(0, dims)),
  sizeOf(shape.slice(dims)),
];

const normOfAll = (x: Tensor): Tensor => tf.sqrt(tf.sum(tf.square(x)));
const rootMeanSquare = (x: Tensor): Tensor => tf.sqrt(tf.mean(tf.square(x)));

/** `f` of a tensor at steps that take it, which are every n-th; itself at the others. */
function each(n: number, takes: Tensor, before: Tensor, f: (before: Tensor) => Tensor): Tensor {
  if (n === 1) return f(before);
  const isDue = tf.greater(takes, 0) as Tensor;
  return ops.cond(
    isDue,
    ({ old }: { old: Tensor }) => ({ old: f(old) }),
    (same) => same,
    { old: before },
  ).old;
}

/** A variable as [blocks, rows, columns]. */
function inBlocks(x: Tensor, { matrix, rows, columns, rowBlocks, columnBlocks }: Blocks): Tensor {
  const [below, behind] = [rows * rowBlocks - matrix[0], columns * columnBlocks - matrix[1]];
  const flat = tf.reshape(x, [...matrix]);
  const whole =
    below + behind === 0
      ? flat
      : tf.pad(flat, [
          [0, below],
          [0, behind],
        ]);
  if (rowBlocks * columnBlocks === 1) return tf.reshape(whole, [1, rows, columns]);
  const apart = tf.transpose(tf.reshape(whole, [rowBlocks, rows, columnBlocks, columns]), [0, 2, 1, 3]);
  return tf.reshape(apart, [rowBlocks * columnBlocks, rows, columns]);
}

/** [blocks, rows, columns] as a variable. */
function ofBlocks(x: Tensor, blocks: Blocks, shape: readonly number[]): Tensor {
  const { matrix, rows, columns, rowBlocks, columnBlocks } = blocks;
  const apart = tf.reshape(x, [rowBlocks, columnBlocks, rows, columns]);
  const whole = tf.reshape(tf.transpose(apart, [0, 2, 1, 3]), [rows * rowBlocks, columns * columnBlocks]);
  return tf.reshape(tf.slice(whole, [0, 0], [...matrix]), [...shape]);
}
