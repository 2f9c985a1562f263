import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LmBatch, lmBatchSpecs, type PackedLmBatch } from '../../../src/inputs/batch.js';
import { paddingOf } from '../../../src/inputs/batchRows.js';
import { packedRows, planPacking, type RowSource, windowRows } from '../../../src/inputs/text/lmRows.js';
import { streamOf } from '../../../src/inputs/text/tokens.js';

/** Documents whose tokens are all different, so that a pair of tokens says where it came from. */
const documents = fc
  .array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 })
  .map((lengths) => {
    let next = 1;
    return lengths.map((length) => Uint16Array.from({ length }, () => next++));
  });
const seqLens = fc.integer({ min: 1, max: 17 });

/** Every pair of a token and its label with weight 1, as 'id>label', in the order of the rows. */
function pairs(batch: LmBatch): string[] {
  const found: string[] = [];
  batch.weights.data.forEach((weight, at) => {
    if (weight === 1) found.push(`${batch.ids.data[at]}>${batch.labels.data[at]}`);
  });
  return found;
}

const emptyLmBatch = (rows: number, seqLen: number) => paddingOf(lmBatchSpecs(rows, seqLen)) as LmBatch;
const emptyPackedLmBatch = (rows: number, seqLen: number) =>
  paddingOf(lmBatchSpecs(rows, seqLen, true)) as PackedLmBatch;

function allRows(
  rows: RowSource<any>,
  seqLen: number,
  empty: (rows: number, seqLen: number) => LmBatch,
): LmBatch {
  const batch = empty(rows.numRows, seqLen);
  for (let row = 0; row < rows.numRows; row++) rows.fill(row, batch, row);
  return batch;
}

test('windows predict each token after the first exactly once, in order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 300 }), seqLens, (size, seqLen) => {
      const tokens = Uint16Array.from({ length: size }, (_, index) => index + 1);
      const batch = allRows(windowRows(tokens, seqLen), seqLen, emptyLmBatch);
      expect(pairs(batch)).toEqual(
        Array.from({ length: size - 1 }, (_, index) => `${index + 1}>${index + 2}`),
      );
      batch.paddings.data.forEach((padding, at) => {
        expect(padding).toBe(1 - batch.weights.data[at]!);
      });
    }),
  );
});

test('packing puts each pair of a token and its label of every document in exactly one place', () => {
  fc.assert(
    fc.property(documents, seqLens, (docs, seqLen) => {
      const batch = allRows(packedRows(streamOf(docs), seqLen), seqLen, emptyPackedLmBatch);
      const expected = docs.flatMap((doc) => Array.from(doc.slice(1), (label) => `${label - 1}>${label}`));
      expect(pairs(batch).sort()).toEqual(expected.sort());
    }),
  );
});

test('a packed row is segments from the left, each numbered from 1 with positions from 0, then padding', () => {
  fc.assert(
    fc.property(documents, seqLens, (docs, seqLen) => {
      const batch = allRows(packedRows(streamOf(docs), seqLen), seqLen, emptyPackedLmBatch) as any;
      const numRows = batch.ids.shape[0];
      for (let row = 0; row < numRows; row++) {
        let segment = 0;
        let position = 0;
        for (let at = row * seqLen; at < (row + 1) * seqLen; at++) {
          const isPadding = batch.paddings.data[at] === 1;
          expect(batch.weights.data[at]).toBe(isPadding ? 0 : 1);
          if (isPadding) {
            expect([batch.segmentIds.data[at], batch.segmentPos.data[at], batch.ids.data[at]]).toEqual([
              0, 0, 0,
            ]);
            segment = Number.POSITIVE_INFINITY;
          } else if (batch.segmentPos.data[at] === 0) {
            expect(batch.segmentIds.data[at]).toBe(++segment);
            position = 1;
          } else {
            expect(batch.segmentIds.data[at]).toBe(segment);
            expect(batch.segmentPos.data[at]).toBe(position++);
            expect(batch.ids.data[at]).toBe(batch.labels.data[at - 1]);
          }
        }
      }
    }),
  );
});

test('packing fills rows: two rows never fit together in one', () => {
  fc.assert(
    fc.property(documents, seqLens, (docs, seqLen) => {
      const { rowStarts, pieceLengths } = planPacking(streamOf(docs).starts, seqLen);
      const used = Array.from(rowStarts.slice(1), (end, row) =>
        pieceLengths.slice(rowStarts[row], end).reduce((a, b) => a + b, 0),
      ).sort((a, b) => a - b);
      if (used.length >= 2) expect(used[0]! + used[1]!).toBeGreaterThan(seqLen);
    }),
  );
});

test('a document longer than a row is cut, and short ones share a row', () => {
  const docs = ['abcdefg', 'xy', 'pqr', 'o'].map((text) => Uint8Array.from(Buffer.from(text)));
  const batch = allRows(packedRows(streamOf(docs), 4), 4, emptyPackedLmBatch) as any;
  const text = (name: string) => Buffer.from(batch[name].data).toString().replaceAll('\0', '.');
  expect(text('ids')).toBe('abcdefx.pq..');
  expect(text('labels')).toBe('bcdefgy.qr..');
  expect(Array.from(batch.segmentIds.data)).toEqual([1, 1, 1, 1, 1, 1, 2, 0, 1, 1, 0, 0]);
  expect(Array.from(batch.segmentPos.data)).toEqual([0, 1, 2, 3, 0, 1, 0, 0, 0, 1, 0, 0]);
  expect(Array.from(batch.weights.data)).toEqual([1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0]);
});
