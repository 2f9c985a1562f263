/** @file Rows for a language model, cut from a token stream: windows over the stream, or packed documents. */

import type { LmBatch, PackedLmBatch } from '../batch.js';
import type { TokenArray, TokenStream } from './tokens.js';

/** Numbered rows of a corpus. `fill` writes row `row` into the padding at position `b` of a batch. */
export interface RowSource<B extends LmBatch = LmBatch> {
  readonly numRows: number;
  fill(row: number, batch: B, b: number): void;
}

/** Writes `length` tokens from `start`, and their successors as labels, to row `at` of a batch. */
function writePiece(tokens: TokenArray, start: number, length: number, batch: LmBatch, at: number): void {
  batch.ids.data.set(tokens.subarray(start, start + length), at);
  batch.labels.data.set(tokens.subarray(start + 1, start + length + 1), at);
  batch.paddings.data.fill(0, at, at + length);
  batch.weights.data.fill(1, at, at + length);
}

/** Writes the window of `seqLen` tokens that begins at `start`, or less at the end of the stream. */
export function fillWindow(
  tokens: TokenArray,
  start: number,
  seqLen: number,
  batch: LmBatch,
  b: number,
): void {
  writePiece(tokens, start, Math.min(seqLen, tokens.length - 1 - start), batch, b * seqLen);
}

/** Number of consecutive windows that contain each label once; the last may be partial. */
function countWindows(numTokens: number, seqLen: number): number {
  return Math.max(0, Math.ceil((numTokens - 1) / seqLen));
}

/** Consecutive windows: row r predicts the tokens r·seqLen + 1 … (r + 1)·seqLen, each exactly once. */
export function windowRows(tokens: TokenArray, seqLen: number): RowSource {
  return {
    numRows: countWindows(tokens.length, seqLen),
    fill: (row, batch, b) => fillWindow(tokens, row * seqLen, seqLen, batch, b),
  };
}

/** Positions of document pieces: row r holds pieces rowStarts[r] … rowStarts[r + 1] − 1, left to right. */
export interface PackingPlan {
  readonly rowStarts: Int32Array;
  /** First token of each piece in the stream. */
  readonly pieceStarts: Int32Array;
  /** Number of tokens of each piece. */
  readonly pieceLengths: Int32Array;
}

/**
 * Packs documents into rows of `seqLen`. A document of n tokens has n − 1 pairs of token and label; it is cut into
 * pieces of seqLen pairs, and each piece goes, in corpus order, to the fullest open row with enough room, else to a new
 * row. Every pair is in exactly one row.
 */
export function planPacking(starts: readonly number[], seqLen: number): PackingPlan {
  const rows: { start: number; length: number }[][] = [];
  /** Rows by remaining room; newest last. */
  const withRoom: number[][] = Array.from({ length: seqLen + 1 }, () => []);
  for (let d = 0; d + 1 < starts.length; d++) {
    const end = starts[d + 1]! - 1;
    for (let start = starts[d]!; start < end; start += seqLen) {
      const length = Math.min(seqLen, end - start);
      let room = length;
      while (room <= seqLen && withRoom[room]!.length === 0) room++;
      const fits = room <= seqLen;
      const row = fits ? withRoom[room]!.pop()! : rows.push([]) - 1;
      rows[row]!.push({ start, length });
      const left = (fits ? room : seqLen) - length;
      if (left > 0) withRoom[left]!.push(row);
    }
  }
  const pieces = rows.flat();
  const rowStarts = new Int32Array(rows.length + 1);
  rows.forEach((row, r) => {
    rowStarts[r + 1] = rowStarts[r]! + row.length;
  });
  return {
    rowStarts,
    pieceStarts: Int32Array.from(pieces, (piece) => piece.start),
    pieceLengths: Int32Array.from(pieces, (piece) => piece.length),
  };
}

/** Rows of packed documents, with segment ids from 1 and positions from 0 in each segment. */
export function packedRows(stream: TokenStream, seqLen: number): RowSource<PackedLmBatch> {
  const plan = planPacking(stream.starts, seqLen);
  return {
    numRows: plan.rowStarts.length - 1,
    fill(row, batch, b) {
      let at = b * seqLen;
      const first = plan.rowStarts[row]!;
      for (let piece = first; piece < plan.rowStarts[row + 1]!; piece++) {
        const length = plan.pieceLengths[piece]!;
        writePiece(stream.tokens, plan.pieceStarts[piece]!, length, batch, at);
        batch.segmentIds.data.fill(piece - first + 1, at, at + length);
        for (let position = 0; position < length; position++) batch.segmentPos.data[at + position] = position;
        at += length;
      }
    },
  };
}
