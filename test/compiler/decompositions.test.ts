/** @file What the decompositions cover of tfjs's kernels, and what they refuse. */
import * as kernels from '@tensorflow/tfjs-core/dist/kernel_names.js';
import { expect, test } from 'vitest';
import { allDecompositions } from '../../src/compiler/decompositions/decomposition.js';
import { REFUSED } from '../../src/compiler/decompositions/refused.js';
import { evalShape } from '../../src/compiler/index.js';
import { opNames } from '../../src/compiler/rules/index.js';
import { tf } from './support.js';

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
