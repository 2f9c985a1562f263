/** @file Transposition by machine code, of words of any size and matrices of any shape. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nativeTransposition, type Words } from '../../../src/compiler/index.js';
import { hasCompiler } from './compilerSupport.js';

const WORDS = [Uint8Array, Uint16Array, Int32Array, BigInt64Array] as const;

test.skipIf(!hasCompiler)('rows are columns of the source, and nothing else is written', async () => {
  const transpose = (await nativeTransposition())!;
  const size = fc.integer({ min: 0, max: 50 });
  const sizes = fc.record({ rows: size, columns: size, apart: fc.nat(3), to: fc.nat(2), from: fc.nat(2) });
  fc.assert(
    fc.property(fc.constantFrom(...WORDS), sizes, (Words, { rows, columns, apart, to, from }) => {
      const [between, bytes] = [rows + apart, Words.BYTES_PER_ELEMENT];
      const source = new Words(from + columns * between);
      // They repeat after a prime, which few strides are multiples of.
      new Uint8Array(source.buffer).set(
        Uint8Array.from({ length: source.byteLength }, (_, i) => (i % 251) + 1),
      );
      const [target, expected] = [0, 1].map(() => new Words(to + rows * columns + 5)) as [Words, Words];
      const [read, written] = [Buffer.from(source.buffer), Buffer.from(expected.buffer)];
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column++) {
          const start = bytes * (from + row + column * between);
          read.copy(written, bytes * (to + row * columns + column), start, start + bytes);
        }
      transpose(target.subarray(to), source.subarray(from), { rows, columns, between });
      expect(target).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});
