import { expect, test } from 'vitest';
import { ops, tf } from '../../../src/compiler/index.js';

test('an index that is neither a scalar nor one for each item is an error', () => {
  const [x, rows] = [tf.zeros([2, 5]), tf.zeros([2, 1])];
  const indices = tf.zeros([3], 'int32');
  expect(() => ops.updateSlice(x, rows, indices, 1)).toThrow(
    'updateSlice: expected rows like x but for axis 1, and an int32 scalar or vector of an index for each item of axis 0, ' +
      'got float32[2,5], float32[2,1] and int32[3].',
  );
  expect(() => ops.updateSlice(x, tf.zeros([1, 5]), tf.zeros([2], 'int32'), 0)).toThrow(
    'updateSlice: expected rows like x but for axis 0, and an int32 scalar, got float32[2,5], float32[1,5] and int32[2].',
  );
});
