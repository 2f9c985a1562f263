/** @file Views: strides instead of copies. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Buffer,
  broadcastView,
  isContiguous,
  mergeAxes,
  reshapeView,
  rowMajor,
  sliceView,
  transposeView,
  type View,
  wholeView,
} from '../../../../src/compiler/native/plan/views.js';
import { sizeOf } from '../../../../src/compiler/program/tensors.js';

const buffer = (size: number): Buffer => ({
  id: 0,
  size,
  storage: 'float32',
  home: { kind: 'input', index: 0 },
});

/** The offsets of a view's elements, row-major. */
function offsets({ offset, shape, strides }: View): number[] {
  let all = [offset];
  shape.forEach((dim, axis) => {
    all = all.flatMap((base) => Array.from({ length: dim }, (_, i) => base + i * strides[axis]!));
  });
  return all;
}

const whole = (...shape: number[]): View => wholeView(buffer(sizeOf(shape)), shape);

test('axes merge where one stride serves both; axes of size 1 vanish', () => {
  expect(mergeAxes([2, 3, 4], rowMajor([2, 3, 4]))).toEqual([{ size: 24, stride: 1 }]);
  expect(mergeAxes([2, 1, 4], [8, 99, 1])).toEqual([
    { size: 2, stride: 8 },
    { size: 4, stride: 1 },
  ]);
  expect(mergeAxes([3, 5], [0, 0])).toEqual([{ size: 15, stride: 0 }]);
  expect(mergeAxes([1, 1], [7, 7])).toEqual([]);
});

test('a reshape of a transpose is a view only where the axes stay apart', () => {
  const swapped = transposeView(whole(2, 3), [1, 0]);
  expect(reshapeView(swapped, [6])).toBeNull();
  expect(reshapeView(swapped, [3, 1, 2])!.strides).toEqual([1, 0, 3]);
  expect(isContiguous(swapped)).toBe(false);
});

test('heads are views of one buffer, without a copy', () => {
  // [B, T, 3, N, H], the keys, as [B, N, T, H].
  const keys = reshapeView(sliceView(whole(2, 4, 3, 2, 5), [0, 0, 1, 0, 0], [2, 4, 1, 2, 5]), [2, 4, 2, 5])!;
  const headsFirst = transposeView(keys, [0, 2, 1, 3]);
  expect(headsFirst.offset).toBe(10);
  expect(headsFirst.strides).toEqual([120, 5, 30, 1]);
});

test('broadcast axes have stride 0', () => {
  expect(broadcastView(whole(3, 1), [2, 3, 4]).strides).toEqual([0, 1, 0]);
});

/** A view through random transposes and slices. */
const views = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    fc.array(fc.nat(), { minLength: 6, maxLength: 6 }),
  )
  .map(([shape, numbers]) => {
    let view = whole(...shape);
    for (const n of numbers) {
      const rank = view.shape.length;
      const axis = n % rank;
      if (n % 3 === 0)
        view = transposeView(
          view,
          view.shape.map((_, i) => (i + axis) % rank),
        );
      else if (view.shape[axis]! > 1 && n % 3 === 1) {
        const size = view.shape.map((dim, i) => (i === axis ? dim - 1 : dim));
        view = sliceView(
          view,
          view.shape.map((_, i) => (i === axis ? 1 : 0)),
          size,
        );
      }
    }
    return view;
  });

test('reshapeView keeps elements and their order', () => {
  let given = 0;
  fc.assert(
    fc.property(views, fc.nat(), (view, n) => {
      const size = sizeOf(view.shape);
      const divisors = Array.from({ length: size }, (_, i) => i + 1).filter((d) => size % d === 0);
      const rows = divisors[n % divisors.length]!;
      const shaped = reshapeView(view, [rows, size / rows]);
      if (shaped === null) return;
      given++;
      expect(offsets(shaped)).toEqual(offsets(view));
    }),
    { numRuns: 500, seed: 7 },
  );
  expect(given).toBeGreaterThan(200);
});
