/** @file What the decompositions cover of tfjs's kernels, and what they refuse. */
import * as kernels from '@tensorflow/tfjs-core/dist/kernel_names.js';
import { expect, test } from 'vitest';
import { allDecompositions } from '../../src/compiler/decompositions/decomposition.js';
import { REFUSED } from '../../src/compiler/decompositions/refused.js';
import { compile, evalShape, type HostTensor } from '../../src/compiler/index.js';
import { opNames } from '../../src/compiler/rules/index.js';
import { engines } from './engines.js';
import { host, repeatedly, tf } from './support.js';

test('a kernel has a rule, a decomposition or a refusal, and one of them', () => {
  const names = Object.values(kernels as unknown as Record<string, string>);
  const all = [...opNames(), ...allDecompositions().keys(), ...Object.keys(REFUSED)];
  expect(new Set(all).size).toBe(all.length);
  expect(Object.keys(REFUSED).filter((kernel) => !names.includes(kernel))).toEqual([]);
});

test('a kernel that no program can hold is an error with the reason', () => {
  const boxes = { shape: [3, 4], dtype: 'float32' } as const;
  const scores = { shape: [3], dtype: 'float32' } as const;
  const f = (x: any, y: any): any => tf.image.nonMaxSuppression(x, y, 2);
  expect(() => evalShape(f, boxes, scores)).toThrow(
    'tf.image.nonMaxSuppression cannot be compiled, since the number of boxes that it keeps depends on values, and a ' +
      'program has fixed shapes: call it outside of the compiled function, on tensors that the function returns.',
  );
});

test.each(engines)(
  'sizes that depend on constants alone are known, on %s',
  async (_, { engine, available }) => {
    if (!available) return;
    const boxes = [
      [0, 0, 1, 1],
      [0, 0, 1, 0.9],
      [2, 2, 3, 3],
    ];
    const f = ({ x }: any): any => {
      const { values, indices } = tf.unique(tf.tensor1d([3, 1, 3, 7]));
      const kept = tf.image.nonMaxSuppression(boxes, [0.5, 0.9, 0.1], 2);
      return { y: tf.add(tf.gather(values, indices), x), boxes: tf.gather(x, kept) };
    };
    const x = host([4], [10, 20, 30, 40]);
    const executable = await compile(f, { x: { shape: [4], dtype: 'float32' } }, { engine });
    const { y, boxes: ofBoxes } = (await repeatedly(executable, { x })) as Record<string, HostTensor>;
    expect([[...y!.data], [...ofBoxes!.data]]).toEqual([
      [13, 21, 33, 47],
      [20, 30],
    ]);
    await executable.dispose();
    expect(() => evalShape(({ x }: any) => tf.unique(x).values as any, { x: x as any })).toThrow(
      'tf.unique cannot be compiled, since the number of different elements depends on values',
    );
  },
);

test('what a trace knows of sparse tensors is checked', () => {
  const reshape = (to: number[]) => () =>
    evalShape(
      () => tf.sparse.sparseReshape([[0, 0, 1]], [2, 3, 4], tf.tensor1d(to, 'int32')).outputShape as any,
    );
  expect(reshape([4, -1])).not.toThrow();
  expect(reshape([4, 6])).not.toThrow();
  expect(reshape([-1, -1])).toThrow('only one output dimension may be -1, not both 0 and 1');
  expect(reshape([4, -6])).toThrow('size 1 must be non-negative, not -6');
  expect(reshape([5, -1])).toThrow('requires a multiple of 5');
  expect(reshape([0, -1])).toThrow('unless all specified input sizes are non-zero');
  expect(reshape([4, 5])).toThrow('a tensor with 24 dense values, but the requested shape has 20');
  const sums = (rows: number[], ids: number[]) => () =>
    evalShape(() => tf.sparse.sparseSegmentSum([[1], [2]], rows, ids) as any);
  expect(sums([0, 1, 1], [0, 0, 2])()).toMatchObject({ shape: [3, 1] });
  expect(sums([], [])()).toMatchObject({ shape: [0, 1] });
  expect(sums([0, 1], [0, -1])).toThrow('segment ids must be >= 0');
  expect(sums([0, 1, 0], [0, 2, 1])).toThrow('segment ids are not increasing');
  expect(sums([0, 1, 0], [-1, 0, 1])).toThrow('Segment id -1 out of range [0, 2)');
  expect(sums([0, 2], [0, 1])).toThrow('Bad: indices[1] == 2 out of range [0, 2)');
  const indices = { shape: [2], dtype: 'int32' } as const;
  expect(
    evalShape((rows: any) => tf.sparse.sparseSegmentMean([[1], [2]], rows, [0, 1]) as any, indices),
  ).toMatchObject({ shape: [2, 1] });
});
