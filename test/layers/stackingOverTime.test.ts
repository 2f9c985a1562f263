/** @file StackingOverTime: windows, edges, paddings, and frames back from windows. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { StackingOverTime } from '../../src/layers/index.js';
import { tensor } from './helpers.js';

const frames = tf.tensor3d([4, 1, 9, 3, 5, 2, 8], [1, 7, 1]);
const stacked = (fields: object, paddings?: number[]) => {
  const result = build(StackingOverTime.config(fields)).fprop(frames, paddings && tf.tensor2d([paddings]));
  return { outputs: result.outputs.arraySync(), paddings: [...result.paddings.dataSync()] };
};

test.each([
  [
    { leftContext: 1, rightContext: 1, stride: 3 },
    [
      [0, 4, 1],
      [9, 3, 5],
      [2, 8, 0],
    ],
  ],
  [
    { leftContext: 1, rightContext: 1, stride: 3, padWithLeftFrame: true },
    [
      [4, 4, 1],
      [9, 3, 5],
      [2, 8, 0],
    ],
  ],
  [
    { leftContext: 1, rightContext: 1, stride: 3, padWithRightFrame: true },
    [
      [0, 4, 1],
      [9, 3, 5],
      [2, 8, 8],
    ],
  ],
  [
    { rightContext: 1, stride: 4 },
    [
      [4, 1],
      [5, 2],
    ],
  ],
  [
    { leftContext: 2, stride: 5 },
    [
      [0, 0, 4],
      [3, 5, 2],
    ],
  ],
  [{}, [[4], [1], [9], [3], [5], [2], [8]]],
])('%j', (fields, windows) => {
  expect(stacked(fields)).toEqual({ outputs: [windows], paddings: windows.map(() => 0) });
});

test('an output is padding where all of its frames are, or where any is', () => {
  const fields = { leftContext: 1, rightContext: 1, stride: 3 };
  const paddings = [0, 0, 0, 1, 1, 1, 1];
  expect(stacked(fields, paddings).paddings).toEqual([0, 0, 1]);
  expect(stacked({ ...fields, paddingReduceOption: 'reduce_max' }, paddings).paddings).toEqual([1, 1, 1]);
});

test('windows give their frames back', () => {
  const size = fc.integer({ min: 0, max: 3 });
  fc.assert(
    fc.property(
      size,
      size,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 9 }),
      (left, right, stride, time) => {
        const layer = build(StackingOverTime.config({ leftContext: left, rightContext: right, stride }));
        const x = tensor([2, time, 3]);
        const { outputs } = layer.fprop(x);
        if (stride > layer.windowSize) {
          expect(() => layer.unstack(outputs)).toThrow(
            `model (StackingOverTime): a stride of ${stride} leaves out frames of windows of ${layer.windowSize}: nothing has them to unstack.`,
          );
          return;
        }
        const back = layer.unstack(outputs);
        expect(back.shape[1]).toBe((outputs.shape[1]! - 1) * stride + right + 1);
        const kept = Math.min(time, back.shape[1]!);
        const begin = (y: typeof x) => [...tf.slice(y, [0, 0, 0], [2, kept, 3]).dataSync()];
        expect(begin(back)).toEqual(begin(x));
      },
    ),
    { numRuns: 40 },
  );
});
