/** @file Orders of axes against indices counted one by one; shapes and texts that fit none. */
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { isAxisOrder, orderAxes, runsOf } from '../../src/checkpoints/axes.js';
import { ElementOrder, loadTransposition } from '../../src/checkpoints/elementOrder.js';

const product = (sizes: readonly number[]): number => sizes.reduce((a, b) => a * b, 1);

/** The index of each axis at a position of a row-major tensor. */
function unravel(position: number, sizes: readonly number[]): number[] {
  const indices: number[] = [];
  let rest = position;
  for (const size of [...sizes].reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return indices;
}

/** Axes in the file's order, in groups; the variable's order of them; perhaps a part that alone is taken. */
const orders = fc
  .record({
    sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
    seed: fc.infiniteStream(fc.nat(99)),
    part: fc.option(fc.record({ at: fc.nat(4), parts: fc.integer({ min: 1, max: 3 }), index: fc.nat(2) })),
  })
  .map(({ sizes, seed, part }) => {
    const next = (limit: number): number => (seed.next().value as number) % limit;
    const axes = sizes.map((size, i) => ({ word: `a${i}`, size, only: undefined as number | undefined }));
    if (part) {
      const only = part.index % part.parts;
      axes.splice(part.at % (axes.length + 1), 0, { word: `${only}/${part.parts}`, size: part.parts, only });
    }
    const groups: (typeof axes)[] = [];
    for (const axis of axes)
      (groups.length > 0 && next(2) ? groups.at(-1)! : (groups[groups.push([]) - 1] as typeof axes)).push(
        axis,
      );
    const variable = axes.filter(({ only }) => only === undefined);
    for (let i = variable.length - 1; i > 0; i--) {
      const j = next(i + 1);
      [variable[i], variable[j]] = [variable[j]!, variable[i]!];
    }
    return { axes, groups, variable };
  });

test('each element goes where its indices say', () => {
  fc.assert(
    fc.property(orders, ({ axes, groups, variable }) => {
      const left = groups.map((group) => `(${group.map(({ word }) => word).join(' ')})`).join(' ');
      const notation = `${left} -> ${variable.map(({ word }) => word).join(' ')}`;
      expect(isAxisOrder(notation)).toBe(true);
      const stored = groups.map((group) => product(group.map(({ size }) => size)));
      const shape = variable.map(({ size }) => size);
      const order = orderAxes(notation, stored, shape)!;
      const found = new Map<number, number>();
      let before = -1;
      for (const { start, step, length, target, stride } of runsOf(order)) {
        expect(start).toBeGreaterThan(before);
        before = start + (length - 1) * step;
        for (let i = 0; i < length; i++) found.set(start + i * step, target + i * stride);
      }
      const expected = new Map<number, number>();
      for (let position = 0; position < product(stored); position++) {
        const indices = unravel(
          position,
          axes.map(({ size }) => size),
        );
        if (axes.some(({ only }, i) => only !== undefined && only !== indices[i])) continue;
        const at = variable.reduce((sum, axis) => sum * axis.size + indices[axes.indexOf(axis)]!, 0);
        expected.set(position, at);
      }
      expect(found).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

describe.each(['JavaScript', 'machine code where there is a compiler'])('by %s', (way) => {
  beforeAll(async () => way === 'JavaScript' || (await loadTransposition()));

  test.each([
    ['o i -> i o', [70, 3], [3, 70]],
    ['o i -> i o', [130, 150], [150, 130]],
    ['(n h) d -> d h n', [60, 50], [50, 4, 15]],
    ['a b c -> c a b', [5, 7, 11], [11, 5, 7]],
    ['o (1/2 i) -> i o', [140, 6], [3, 140]],
    ['o i 1/2 -> i o', [140, 3, 2], [3, 140]],
    ['a 1/2 b c -> c a b', [30, 2, 3, 4], [4, 30, 3]],
    ['o i -> i o', [40, 90], [90, 40]],
    ['(n h) d -> n d h', [60, 50], [4, 50, 15]],
  ])('%s of %j is gathered as its runs say, whatever is taken at once', (notation, stored, shape) => {
    const axes = orderAxes(notation, stored, shape)!;
    const order = ElementOrder.of(axes)!;
    const elements = Int32Array.from({ length: product(stored) }, (_, i) => i + 1);
    const expected = new Int32Array(product(shape));
    for (const { start, step, length, target, stride } of runsOf(axes))
      for (let i = 0; i < length; i++) expected[target + i * stride] = elements[start + i * step]!;
    for (const most of [1, 2, 100, 1000, expected.length]) {
      const [gathered, size] = [new Int32Array(expected.length), order.stretch(most)];
      expect(size).toBeGreaterThan(most / 2);
      for (let from = 0; from < gathered.length; from += size)
        order.gather(gathered.subarray(from, from + size), from, elements);
      expect(gathered.findIndex((value, i) => value !== expected[i])).toBe(-1);
    }
    const last = expected.length - 1;
    expect([0, 1, last].map((element) => order.placeOf(element) + 1)).toEqual(
      [0, 1, last].map((element) => expected[element]),
    );
  });
});

test.each([
  ['d (n h) -> d n h', [7, 6], [7, 2, 3]],
  ['d -> d', [7], [7]],
])('%s of %j is the order of the file', (notation, stored, shape) => {
  expect(ElementOrder.of(orderAxes(notation, stored, shape))).toBeUndefined();
});

test('the variable may have axes in groups, and axes of one where the file has none', () => {
  const order = orderAxes('d c p q -> (p q c) d', [2, 3, 4, 5], [60, 2])!;
  const runs = [...runsOf(order)];
  // Elements of p and q are neighbours on both sides; index (1, 2, 0, 0) of the file is (2, 1) of the variable.
  expect(runs).toHaveLength(2 * 3);
  const [start, target] = [(1 * 3 + 2) * 20, 2 * 2 + 1];
  expect(runs[1 * 3 + 2]).toEqual({ start, step: 1, length: 20, target, stride: 3 * 2 });
  expect(orderAxes('d -> 1 1 d', [7], [1, 1, 7])).toEqual(orderAxes('d -> d', [7], [7]));
  expect(orderAxes('d -> 1 d', [7], [2, 7])).toBeUndefined();
  // A side by itself does not tell how an axis is split.
  expect(orderAxes('(p q) -> (p q)', [6], [6])).toBeUndefined();
});

test.each([
  ['d c p q -> (p q c) d', [2, 3, 4, 5], [59, 2]],
  ['o i -> i o', [3, 4], [3, 4]],
  ['o i -> i o', [12], [4, 3]],
  ['d (3 n h) -> 3 d n h', [4, 12], [2, 4, 2, 3]],
  ['d (0/3 n h) -> d n h', [4, 12], [4, 3, 2]],
])('%s does not make %j of %j', (notation, stored, shape) => {
  expect(orderAxes(notation, stored, shape)).toBeUndefined();
});

test.each(['', 'a b', 'a -> b', 'a a -> a a', 'a (b -> a b', 'a 3/3 -> a', 'a b -> a', 'a-b -> b a'])(
  '%j is no order of axes',
  (text) => {
    expect(isAxisOrder(text)).toBe(false);
  },
);
