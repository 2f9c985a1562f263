/** @file Parts of variables that ranks hold: their places for all ranks of a mesh, copies of them, and parts that cannot be. */
import { describe, expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { cut, isPart, Mesh, paste, type Shard } from '../../src/tasks/index.js';

const variable = (path: string, ...shape: number[]) => ({ path, shape, repeatPrefix: [] }) as never;
const sizeOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);

/** Shards of one variable on all ranks. */
const shardsOf = (mesh: Mesh, one: never, among?: readonly string[]): Shard[] =>
  Array.from({ length: mesh.ways() }, (_, rank) => mesh.shards([one], rank, among)[0]!);

describe('a mesh of two slices by two by three', () => {
  const mesh = build(
    Mesh.config({
      ...{ iciMeshShape: [1, 2, 3], dcnMeshShape: [1, 2, 1] },
      weightSplitDimsMapping: { w: ['data', 'mdl'], all: [null, ['mdl', 'data'], null], last: [null, 'mdl'] },
    }),
  );

  test('ranks of a slice follow one another, and slices split rows and dimensions first', () => {
    expect(mesh.sizes).toEqual([1, 2, 1, 1, 2, 3]);
    const shares = Array.from({ length: 12 }, (_, rank) => mesh.shareOf(rank));
    expect(shares.map(({ index }) => index)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    expect(new Set(shares.map(({ count }) => count))).toEqual(new Set([4]));
    const { shape, begin, group, axes } = mesh.shards(
      [variable('w', 8, 6), variable('all', 1, 12, 1), variable('last', 1, 3)],
      7,
    )[0]!;
    expect({ shape, begin, axes }).toEqual({
      shape: [2, 2],
      begin: [4, 2],
      axes: [
        [1, 4],
        [2, 5],
      ],
    });
    expect(group).toEqual({ mesh: mesh.sizes, axes: [1, 4, 2, 5] });
  });

  test.each([
    ['w', [8, 6], 12],
    ['all', [3, 24, 2], 12],
    ['last', [4, 9], 3],
    ['other', [5, 7], 1],
  ] as const)('the parts of %s [%s] are the whole together, each element once', (path, shape, parts) => {
    const others = Object.entries({ w: [4, 3], all: [1, 12, 1], last: [1, 3] })
      .filter(([name]) => name !== path)
      .map(([name, sizes]) => variable(name, ...sizes));
    const whole = Float32Array.from({ length: sizeOf(shape) }, (_, i) => i + 1);
    const joined = new Float32Array(whole.length);
    const counts = new Float32Array(whole.length + 1);
    for (let rank = 0; rank < 12; rank++) {
      const [shard] = mesh.shards([variable(path, ...shape), ...others], rank) as [Shard];
      expect(isPart(shard)).toBe(parts > 1);
      const part = new Float32Array(sizeOf(shard.shape));
      expect(part.length).toBe(whole.length / parts);
      cut(whole, shard, part);
      for (const value of part) counts[value]!++;
      // Windows of the whole that fit no run.
      const [windowed, again] = [new Float32Array(part.length), new Float32Array(whole.length)];
      for (let first = 0; first < whole.length; first += 5) {
        cut(whole.subarray(first, first + 5), shard, windowed, first);
        paste(part, shard, again.subarray(first, first + 5), first);
      }
      expect(windowed).toEqual(part);
      paste(part, shard, joined);
      expect(again).toEqual(Float32Array.from(whole, (value) => (part.includes(value) ? value : 0)));
    }
    expect(joined).toEqual(whole);
    expect(new Set(counts.subarray(1))).toEqual(new Set([12 / parts]));
  });
});

test('a part has its elements in the order of the whole; scalars and empty dimensions are no trouble', () => {
  const mesh = build(
    Mesh.config({
      iciMeshShape: [1, 1, 2],
      weightSplitDimsMapping: { w: [null, 'mdl', null], none: ['mdl'] },
    }),
  );
  const [w, none, scalar] = mesh.shards([variable('w', 2, 4, 3), variable('none', 0), variable('b')], 1) as [
    Shard,
    Shard,
    Shard,
  ];
  const part = new Int32Array(12);
  cut(
    Int32Array.from({ length: 24 }, (_, i) => i),
    w,
    part,
  );
  expect([...part]).toEqual([6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23]);
  cut(new Float32Array(0), none, new Float32Array(0));
  const held = new Float32Array(1);
  cut(Float32Array.of(7), scalar, held);
  expect(held[0]).toBe(7);
});

test('axes that are left out split nothing', () => {
  const mesh = build(
    Mesh.config({ iciMeshShape: [1, 2, 2], weightSplitDimsMapping: { w: ['data', 'mdl'] } }),
  );
  const shapes = (among?: readonly string[]) =>
    shardsOf(mesh, variable('w', 4, 4), among).map(({ shape, begin }) => `${shape} at ${begin}`);
  expect(shapes(['mdl'])).toEqual(['4,2 at 0,0', '4,2 at 0,2', '4,2 at 0,0', '4,2 at 0,2']);
  expect(shapes()).toEqual(['2,2 at 0,0', '2,2 at 0,2', '2,2 at 2,0', '2,2 at 2,2']);
});

test('a layer says how its variables are split where the mesh does not', () => {
  const mesh = build(Mesh.config({ iciMeshShape: [1, 1, 2] }));
  const own = (splitDims: unknown) =>
    ({ path: 'x/w', shape: [3, 4, 6], repeatPrefix: [3], splitDims }) as never;
  expect(mesh.shards([own([null, 'mdl'])], 1)[0]).toMatchObject({ shape: [3, 4, 3], begin: [0, 0, 3] });
  expect(() => mesh.shards([own(['mdl', 'mdl'])], 0)).toThrow(
    "task.mesh.weightSplitDimsMapping does not fit the model: the axis 'mdl' splits two dimensions of x/w.",
  );
});

test('a dimension that devices cannot share evenly is refused', () => {
  const mesh = build(
    Mesh.config({ iciMeshShape: [1, 2, 2], weightSplitDimsMapping: { 'lm/w': [null, ['data', 'mdl']] } }),
  );
  expect(() => mesh.shards([variable('lm/w', 4, 6)], 0)).toThrow(
    "task.mesh.weightSplitDimsMapping does not fit the model: dimension 1 of lm/w [4,6] can't be split evenly over 4 devices " +
      '(mdl 2, data 2).',
  );
});
