/**
 * @file Corrections of tfjs 4.22's gradients that fail or return wrong values for valid inputs. They are registered for
 * every backend, including the eager engine's.
 */
import {
  add,
  backend_util,
  cast,
  cumprod,
  cumsum,
  engine,
  expandDims,
  fill,
  gather,
  getGradient,
  less,
  minimum,
  mul,
  oneHot,
  range,
  registerGradient,
  reshape,
  scalar,
  stack,
  step,
  sum,
  type Tensor,
  type Tensor1D,
  transpose,
  unsortedSegmentSum,
  util,
  where,
  zerosLike,
} from '@tensorflow/tfjs-core';
import { notedPrecision, runInPrecision } from '../program/precision.js';

type Gradients = Record<string, () => Tensor>;

/** Sums over broadcast axes, back to `shape`. */
function sumTo(x: Tensor, shape: number[]): Tensor {
  if (util.arraysEqual(x.shape, shape)) return x;
  return reshape(sum(x, backend_util.getReductionAxes(shape, x.shape)), shape);
}

/** tfjs ignores that these broadcast their operands. */
for (const kernelName of ['Maximum', 'Minimum', 'SquaredDifference', 'BatchMatMul']) {
  const original = getGradient(kernelName);
  registerGradient({
    ...original,
    gradFunc: (dy, saved, attrs) => {
      const gradients = original.gradFunc(dy, saved, attrs) as Gradients;
      const [a, b] = saved;
      return {
        a: () => sumTo(gradients.a!(), a!.shape),
        b: () => sumTo(gradients.b!(), b!.shape),
      };
    },
  });
}

/** A product's gradients are products of the same precision. */
const ofProduct = getGradient('BatchMatMul');
registerGradient({
  ...ofProduct,
  gradFunc: (dy, saved, attrs) => {
    const gradients = ofProduct.gradFunc(dy, saved, attrs) as Gradients;
    const inItsPrecision = (gradient: () => Tensor) => () => runInPrecision(notedPrecision(attrs), gradient);
    return { a: inItsPrecision(gradients.a!), b: inItsPrecision(gradients.b!) };
  },
});

/** tfjs transposes once too often unless the axis is the last: wrong shapes, or wrong values for squares. */
registerGradient({
  kernelName: 'Cumsum',
  gradFunc: (dy, _, attrs) => {
    const { axis, exclusive, reverse } = attrs as unknown as {
      axis: number;
      exclusive: boolean;
      reverse: boolean;
    };
    return { x: () => cumsum(dy as Tensor, axis, exclusive, !reverse) };
  },
});

/** tfjs passes a tensor instead of a list for a single output. */
registerGradient({
  kernelName: 'Unpack',
  gradFunc: (dy, _, attrs) => ({
    value: () => stack(Array.isArray(dy) ? dy : [dy], attrs.axis as unknown as number),
  }),
});

/** tfjs multiplies by the condition, which lets a NaN of the side that was not chosen through. */
registerGradient({
  kernelName: 'Select',
  inputsToSave: ['condition'],
  gradFunc: (dy, [condition]) => {
    const gradient = dy as Tensor;
    // There are no complex scalars.
    const none = gradient.dtype === 'complex64' ? zerosLike(gradient) : scalar(0, gradient.dtype);
    return {
      condition: () => cast(zerosLike(condition!), 'float32'),
      t: () => where(condition!, gradient, none),
      e: () => where(condition!, none, gradient),
    };
  },
});

/** tfjs keeps the operand until then. The result is positive where it is, and others read that anyway. */
registerGradient({
  kernelName: 'Relu',
  outputsToSave: [true],
  gradFunc: (dy, [y]) => ({ x: () => mul(dy as Tensor, cast(step(y!), 'float32')) }),
});

/** Missing in tfjs. */
registerGradient({
  kernelName: 'EluGrad',
  inputsToSave: ['dy', 'y'],
  gradFunc: (ddx, saved) => {
    const [dy, y] = saved as [Tensor, Tensor];
    const run = (dy: Tensor): Tensor => engine().runKernel('EluGrad', { dy, y }) as Tensor;
    return {
      dy: () => run(ddx as Tensor),
      y: () => mul(mul(ddx as Tensor, dy), cast(less(y, 0), 'float32')),
    };
  },
});

/** Missing in tfjs. Each result is one of the elements, which gets its gradient. */
registerGradient({
  kernelName: 'TopK',
  inputsToSave: ['x'],
  outputsToSave: [false, true],
  gradFunc: (dys, [x, indices]) => {
    const [dy] = dys as unknown as Tensor[];
    const depth = x!.shape.at(-1)!;
    // tfjs has no oneHot of a single class.
    if (depth === 1) return { x: () => dy! };
    const chosen = oneHot(indices!, depth, 1, 0, 'float32');
    return { x: () => sum(mul(chosen, expandDims(dy!, -1)), -2) };
  },
});

/** tfjs's calls methods of tensors that tfjs-core alone leaves out. Multiplies all other elements: right where one is 0. */
registerGradient({
  kernelName: 'Prod',
  inputsToSave: ['x'],
  gradFunc: (dy, saved, attrs) => {
    const [x] = saved as [Tensor];
    const axes = util.parseAxisParam((attrs as unknown as { axis: number[] }).axis, x.shape);
    const kept = x.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
    const order = [...kept, ...axes];
    const moved = transpose(x, order);
    const rows = kept.map((axis) => x.shape[axis]!);
    const flat = reshape(moved, [...rows, -1]);
    const others = mul(cumprod(flat, rows.length, true, false), cumprod(flat, rows.length, true, true));
    const gradient = mul(others, reshape(dy as Tensor, [...rows, 1]));
    const back = order.map((_, axis) => order.indexOf(axis));
    return { x: () => transpose(reshape(gradient, moved.shape), back) };
  },
});

/** tfjs's has none above rank 4. Sums over the repetitions of one axis after the other. */
registerGradient({
  kernelName: 'Tile',
  inputsToSave: ['x'],
  gradFunc: (dy, saved, attrs) => {
    const { shape } = saved[0]!;
    const { reps } = attrs as unknown as { reps: number[] };
    const sumOver = (rest: Tensor, axis: number): Tensor => {
      const before = util.sizeFromShape(shape.slice(0, axis));
      return reps[axis] === 1 ? rest : sum(reshape(rest, [before, reps[axis]!, -1]), 1);
    };
    return { x: () => reshape([...shape.keys()].reduce(sumOver, dy as Tensor), shape) };
  },
});

/** Missing in tfjs. Each element goes to the place that it was taken from. */
registerGradient({
  kernelName: 'StridedSlice',
  inputsToSave: ['x'],
  gradFunc: (dy, saved, attrs) => {
    const { shape, size } = saved[0]!;
    const places = reshape(range(0, size, 1, 'int32'), shape);
    const taken = engine().runKernel('StridedSlice', { x: places }, attrs) as Tensor;
    const flat = [dy as Tensor, taken].map((tensor) => reshape(tensor, [-1])) as [Tensor1D, Tensor1D];
    return { x: () => reshape(unsortedSegmentSum(...flat, size), shape) };
  },
});

/** Missing in tfjs. A value is counted by its weight, if it is one of those that are counted. */
for (const kernelName of ['Bincount', 'DenseBincount'])
  registerGradient({
    kernelName,
    inputsToSave: ['x', 'weights'],
    gradFunc: (dy, saved, attrs) => {
      const [x, weights] = saved as [Tensor, Tensor];
      const { size, binaryOutput = false } = attrs as unknown as { size: number; binaryOutput?: boolean };
      const ofWeights = (): Tensor => {
        if (binaryOutput || weights.size === 0) return fill(weights.shape, 0);
        const columns = x.shape.at(-1)!;
        const rows = kernelName === 'Bincount' ? 1 : x.size / columns;
        const starts = mul(range(0, rows, 1, 'int32'), scalar(size, 'int32'));
        const places = add(minimum(reshape(x, [rows, -1]), scalar(size - 1, 'int32')), expandDims(starts, 1));
        const slopes = gather(reshape(dy as Tensor, [-1]), reshape(places, [-1]) as Tensor1D);
        const isCounted = less(x, scalar(size, 'int32'));
        return where(
          reshape(isCounted, weights.shape),
          reshape(slopes, weights.shape),
          fill(weights.shape, 0),
        );
      };
      return { x: () => fill(x.shape, 0), weights: ofWeights };
    },
  });
