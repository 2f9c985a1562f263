/** @file Broadcasting of shapes, and elementwise results of constants. */
import {
  type DType,
  type HostTensor,
  newHostArray,
  type Shape,
  sameShape,
  sizeOf,
} from '../program/tensors.js';
import { Misfit } from './operation.js';

/** Broadcasts two shapes by NumPy's rule. @throws Misfit where they do not broadcast. */
export function broadcastShapes(a: Shape, b: Shape): number[] {
  if (sameShape(a, b)) return [...a];
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const da = a[i - rank + a.length] ?? 1;
    const db = b[i - rank + b.length] ?? 1;
    if (da !== db && da !== 1 && db !== 1) {
      throw new Misfit(
        `expected shapes that broadcast, got [${a.join(',')}] and [${b.join(',')}], of ${da} and ${db} in dimension ${i}`,
      );
    }
    return da === 1 ? db : da;
  });
}

/** Row-major element strides for reading `from` as `to`; 0 along broadcast dimensions. */
export function broadcastStrides(from: Shape, to: Shape): number[] {
  const strides = new Array<number>(to.length).fill(0);
  let stride = 1;
  for (let i = from.length - 1; i >= 0; i--) {
    if (from[i] !== 1) strides[i + to.length - from.length] = stride;
    stride *= from[i]!;
  }
  return strides;
}

/** Calls `visit(flat index, offsets into each operand)` for every element of `shape`. */
export function forEachElement(
  shape: Shape,
  strides: readonly (readonly number[])[],
  visit: (index: number, offsets: readonly number[]) => void,
): void {
  const size = sizeOf(shape);
  const position = new Array<number>(shape.length).fill(0);
  const offsets = new Array<number>(strides.length).fill(0);
  for (let index = 0; index < size; index++) {
    visit(index, offsets);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const next = position[axis]! + 1;
      const wrapped = next === shape[axis];
      position[axis] = wrapped ? 0 : next;
      for (let k = 0; k < offsets.length; k++) {
        const stride = strides[k]![axis]!;
        offsets[k]! += wrapped ? -stride * (shape[axis]! - 1) : stride;
      }
      if (!wrapped) break;
    }
  }
}

/** A result of constant operands, element by element. */
export function foldElementwise(
  inputs: readonly HostTensor[],
  dtype: DType,
  f: (...xs: number[]) => number,
): HostTensor {
  const shape = inputs.map((x) => x.shape).reduce(broadcastShapes);
  const data = newHostArray(dtype, sizeOf(shape));
  const strides = inputs.map((x) => broadcastStrides(x.shape, shape));
  forEachElement(shape, strides, (index, offsets) => {
    data[index] = f(...inputs.map((x, k) => x.data[offsets[k]!]!));
  });
  return { shape, dtype, data };
}
