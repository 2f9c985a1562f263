/** @file Batches through slots: any arrays, nested or empty, slots that grow and are used again. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newHostArray } from '../../../src/compiler/program/tensors.js';
import { SlotReader, SlotWriter } from '../../../src/inputs/ahead/batchSlots.js';
import type { Batch } from '../../../src/inputs/batch.js';

const array = fc
  .record({
    dtype: fc.constantFrom('float32', 'int32', 'bool'),
    shape: fc.array(fc.nat(4), { maxLength: 3 }),
    first: fc.nat(9),
  })
  .map(({ dtype, shape, first }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    return { dtype, shape, data: newHostArray(dtype, size).map((_, i) => first + i) };
  });
const batch = fc.letrec<{ batch: Batch }>((tie) => ({
  batch: fc.dictionary(fc.string({ minLength: 1 }), fc.oneof({ maxDepth: 2 }, array, tie('batch')), {
    maxKeys: 4,
    noNullPrototype: true,
  }) as fc.Arbitrary<Batch>,
})).batch;

test('batches come back as they were, and stay so when their slots are written again', () => {
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 8 }), fc.integer({ min: 1, max: 3 }), (batches, depth) => {
      const [writer, reader] = [new SlotWriter(), new SlotReader()];
      const read: Batch[] = [];
      for (let from = 0; from < batches.length; from += depth) {
        // What is sent is copied, but for shared memory.
        const queued = batches.slice(from, from + depth).map((each) => writer.write(each));
        for (const item of queued) {
          read.push(reader.read({ ...structuredClone({ ...item, memory: undefined }), memory: item.memory }));
          writer.release(item.slot);
        }
        expect(Math.max(...queued.map(({ slot }) => slot))).toBeLessThan(depth);
      }
      expect(read).toEqual(batches);
    }),
    { numRuns: 200 },
  );
});
