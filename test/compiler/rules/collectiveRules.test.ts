/** @file Groups of ranks, and the shapes of what they exchange. */
import { describe, expect, test } from 'vitest';
import { memberOf, membersOf, placeInMesh, ranksOf } from '../../../src/compiler/rules/collectiveRules.js';
import { inferOutputs } from '../../../src/compiler/rules/index.js';

const mesh = [2, 3, 4];

describe('groups', () => {
  test('ranks are numbered in row-major order of the mesh', () => {
    expect(placeInMesh(mesh, 0)).toEqual([0, 0, 0]);
    expect(placeInMesh(mesh, 17)).toEqual([1, 1, 1]);
    expect(placeInMesh(mesh, 23)).toEqual([1, 2, 3]);
  });

  test('a group differs along its axes alone', () => {
    expect(membersOf({ mesh, axes: [0, 2] })).toBe(8);
    expect(ranksOf({ mesh, axes: [2] }, 17)).toEqual([16, 17, 18, 19]);
    expect(ranksOf({ mesh, axes: [1] }, 17)).toEqual([13, 17, 21]);
    expect(ranksOf({ mesh, axes: [] }, 17)).toEqual([17]);
  });

  test('members are numbered in the order in which axes are named', () => {
    expect(ranksOf({ mesh, axes: [0, 2] }, 17)).toEqual([4, 5, 6, 7, 16, 17, 18, 19]);
    expect(ranksOf({ mesh, axes: [2, 0] }, 17)).toEqual([4, 16, 5, 17, 6, 18, 7, 19]);
  });

  test.each([[[]], [[0]], [[1, 2]], [[2, 0, 1]]])(
    'a rank is the member of %j that its number says',
    (axes) => {
      for (let rank = 0; rank < 24; rank++)
        expect(ranksOf({ mesh, axes }, rank)[memberOf({ mesh, axes }, rank)]).toBe(rank);
    },
  );
});

describe('shapes', () => {
  const x = { shape: [6, 8], dtype: 'float32' } as const;
  const infer = (op: string, attrs: object) => inferOutputs(op, [x], { mesh, axes: [0], ...attrs });

  test('of each collective', () => {
    expect(infer('AllReduce', { reduction: 'sum' })).toEqual([x]);
    expect(infer('AllGather', { dim: 1 })).toEqual([{ ...x, shape: [6, 16] }]);
    expect(infer('ReduceScatter', { dim: 0 })).toEqual([{ ...x, shape: [3, 8] }]);
    expect(infer('OwnPart', { dim: 1, axes: [0, 2] })).toEqual([{ ...x, shape: [6, 1] }]);
    expect(infer('AllToAll', { from: 1, to: 0, axes: [2] })).toEqual([{ ...x, shape: [24, 2] }]);
    expect(infer('CollectivePermute', { by: -1 })).toEqual([x]);
    expect(inferOutputs('MemberIndex', [], { mesh, axes: [1] })).toEqual([{ shape: [], dtype: 'int32' }]);
  });

  test('what does not fit is named', () => {
    const message = (op: string, attrs: object) => {
      try {
        return infer(op, attrs);
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(message('OwnPart', { dim: 1, axes: [1] })).toBe(
      'ownPart: expected a size that 3 ranks divide, got 8.',
    );
    expect(message('AllGather', { dim: 2 })).toBe('allGather: expected a dimension below 2, got 2.');
    expect(message('AllToAll', { from: 1, to: 1 })).toBe('allToAll: expected two dimensions, got 1 and 1.');
    expect(message('AllReduce', { reduction: 'mean' })).toBe(
      'allReduce: expected sum, max or min, got mean.',
    );
    expect(message('CollectivePermute', { by: 2 })).toBe(
      'collectivePermute: expected 1 or -1 members, got 2.',
    );
    expect(message('AllReduce', { reduction: 'sum', axes: [3] })).toBe(
      'allReduce: expected sizes of a mesh and different axes of it, got 2,3,4 and 3.',
    );
  });
});
