/** @file Flat buffers: placement, alignment, padding, views. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  flatLayout,
  flatViews,
  floatsOf,
  heldViews,
  layoutSpecs,
} from '../../../src/compiler/program/flat.js';
import { narrow } from '../../../src/compiler/program/narrowStorage.js';

test('groups are contiguous, entries start on cache lines', () => {
  const layout = flatLayout([
    { name: 'w', shape: [5, 7], group: 'decay' },
    { name: 'b', shape: [7], group: 'noDecay' },
    { name: 'emb', shape: [3, 4], group: 'decay' },
    { name: 'scale', shape: [], group: 'noDecay' },
  ]);
  expect(layout).toEqual({
    entries: [
      { name: 'w', shape: [5, 7], offset: 0, size: 35, group: 'decay' },
      { name: 'emb', shape: [3, 4], offset: 48, size: 12, group: 'decay' },
      { name: 'b', shape: [7], offset: 64, size: 7, group: 'noDecay' },
      { name: 'scale', shape: [], offset: 80, size: 1, group: 'noDecay' },
    ],
    groups: [
      { name: 'decay', offset: 0, size: 64 },
      { name: 'noDecay', offset: 64, size: 32 },
    ],
    size: 96,
  });
});

test('bfloat16 takes half the buffer, with views of its own type', () => {
  const layout = flatLayout([
    { name: 'a', shape: [33], group: 'g', storage: 'bfloat16' },
    { name: 'b', shape: [2], group: 'g' },
  ]);
  expect(layout.entries).toEqual([
    { name: 'a', shape: [33], offset: 0, size: 33, group: 'g', storage: 'bfloat16' },
    { name: 'b', shape: [2], offset: 32, size: 2, group: 'g' },
  ]);
  expect(layout.size).toBe(48);
  const buffer = new Float32Array(layout.size);
  const views = heldViews(layout, buffer);
  views.a!.set(narrow(new Float32Array(33).fill(1.5), 'bfloat16'));
  views.b!.set([2, 3]);
  expect(views.a).toBeInstanceOf(Uint16Array);
  expect(floatsOf(layout, views)).toEqual({ a: new Float32Array(33).fill(1.5), b: Float32Array.of(2, 3) });
  expect(layoutSpecs(layout).a).toEqual({ shape: [33], dtype: 'float32', storage: 'bfloat16' });
});

test('views write through to the buffer', () => {
  const layout = flatLayout([
    { name: 'a', shape: [2], group: 'g' },
    { name: 'b', shape: [3], group: 'g' },
  ]);
  const buffer = new Float32Array(layout.size);
  const views = flatViews(layout, buffer);
  views.b!.set([1, 2, 3]);
  expect([...buffer.subarray(16, 20)]).toEqual([1, 2, 3, 0]);
  expect(views.a!.length).toBe(2);
});

test('any variables: nothing overlaps, everything is aligned, groups cover their variables', () => {
  const variable = fc.record({
    shape: fc.array(fc.nat(9), { maxLength: 3 }),
    group: fc.constantFrom('decay', 'noDecay', 'frozen'),
  });
  fc.assert(
    fc.property(fc.array(variable, { maxLength: 20 }), (variables) => {
      const named = variables.map((v, i) => ({ ...v, name: `v${i}` }));
      const layout = flatLayout(named);
      const owner = new Array<string | undefined>(layout.size).fill(undefined);
      for (const entry of layout.entries) {
        expect(entry.offset % 16).toBe(0);
        const group = layout.groups.find((g) => g.name === entry.group)!;
        expect(entry.offset).toBeGreaterThanOrEqual(group.offset);
        expect(entry.offset + entry.size).toBeLessThanOrEqual(group.offset + group.size);
        for (let i = entry.offset; i < entry.offset + entry.size; i++) {
          expect(owner[i]).toBeUndefined();
          owner[i] = entry.name;
        }
      }
      expect(layout.entries.map((e) => e.name).sort()).toEqual(named.map((v) => v.name).sort());
      let end = 0;
      for (const group of layout.groups) {
        expect(group.offset).toBe(end);
        end = group.offset + group.size;
      }
      expect(layout.size).toBe(end);
    }),
  );
});

test('bad input is named', () => {
  const a = { name: 'a', shape: [2], group: 'g' };
  expect(() => flatLayout([a, a])).toThrow("flatLayout: two variables are named 'a'.");
  expect(() => flatLayout([{ ...a, shape: [2, -1] }])).toThrow(
    "flatLayout: variable 'a' has shape [2, -1]; expected integers, 0 or more.",
  );
  expect(() => flatViews(flatLayout([a]), new Float32Array(2))).toThrow(
    'flatViews: expected a buffer of 16 elements, got 2.',
  );
});
