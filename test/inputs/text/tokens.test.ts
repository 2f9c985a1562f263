import fc from 'fast-check';
import { expect, test } from 'vitest';
import { heldOutFiles, splitStream, streamOf } from '../../../src/inputs/text/tokens.js';

test('the split by text cuts where nanoGPT cuts tinyshakespeare', () => {
  const stream = streamOf([new Uint8Array(1_115_394)]);
  expect(splitStream(stream, 0.1, 'train').tokens.length).toBe(1_003_854);
  expect(splitStream(stream, 0.1, 'validation').tokens.length).toBe(111_540);
});

test('train and validation are the corpus, without a gap or an overlap, document borders included', () => {
  const docs = fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(docs, fc.double({ min: 0, max: 0.99, noNaN: true }), (documents, fraction) => {
      const stream = streamOf(documents);
      const train = splitStream(stream, fraction, 'train');
      const validation = splitStream(stream, fraction, 'validation');
      expect([...train.tokens, ...validation.tokens]).toEqual([...stream.tokens]);
      const cut = train.tokens.length;
      const borders = new Set([...train.starts, ...validation.starts.map((start) => start + cut)]);
      for (const start of stream.starts) expect(borders.has(start)).toBe(true);
      expect(splitStream(stream, fraction, 'all')).toBe(stream);
    }),
  );
});

test('held-out files are spread evenly over the order', () => {
  const picked = (count: number, fraction: number) =>
    heldOutFiles(count, fraction).flatMap((held, index) => (held ? [index] : []));
  expect(picked(20, 0.1)).toEqual([9, 19]);
  expect(picked(7, 0.5)).toEqual([1, 3, 5]);
  expect(picked(3, 0.1)).toEqual([]);
  expect(picked(10, 0.3)).toEqual([3, 6, 9]);
  expect(picked(100, 0).length).toBe(0);
});
