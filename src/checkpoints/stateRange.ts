/** @file The bytes of a state's file that one of several processes writes or reads, in memory as the file has them. */
import { closeSync } from 'node:fs';
import { openRegularFile } from '../files/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import type { FileDigest } from './durableFile.js';
import { damagedChunk } from './metadata.js';
import { encodePrefix, type SafetensorsLayout, type TensorPlace } from './safetensors.js';
import { type ByteRange, chunkLength, digestsOf, rangeOf } from './stateChunks.js';
import { readWhole } from './wholeReads.js';

/** Bytes that processes exchange at once. */
const PIECE_BYTES = 1 << 22;

/** Bytes of a tensor within some of the file. */
interface PieceTensor {
  readonly name: string;
  /** The first of them in the tensor, and in the bytes of the file. */
  readonly inTensor: number;
  readonly inBytes: number;
  readonly byteLength: number;
}

/** Consecutive bytes of the file, all of one process. */
export interface StatePiece extends ByteRange {
  /** The process. */
  readonly owner: number;
  /** Bytes of tensors in the piece, in file order. */
  readonly tensors: readonly PieceTensor[];
}

/** The range of one process, with its bytes. */
export class StateRange implements ByteRange {
  readonly begin: number;
  readonly end: number;
  readonly fileLength: number;
  readonly chunk: number;
  /** Of the range; threads share them. */
  readonly data: SharedArrayBuffer;
  readonly #prefix: Uint8Array;

  /**
   * @param layout of the file's tensors. @param index of this process among `count`.
   * @param of the file, where it is there: the lengths of its header and of its chunks; else those of a file to write.
   */
  constructor(
    private readonly layout: SafetensorsLayout,
    readonly index: number,
    readonly count: number,
    of: { readonly dataStart?: number; readonly chunk?: number | undefined } = {},
  ) {
    this.#prefix = of.dataStart === undefined ? encodePrefix(layout) : new Uint8Array(of.dataStart);
    this.fileLength = this.#prefix.length + layout.byteLength;
    this.chunk = of.chunk ?? chunkLength(this.fileLength);
    const { begin, end } = rangeOf(this.fileLength, this.chunk, index, count);
    this.begin = begin;
    this.end = end;
    this.data = new SharedArrayBuffer(end - begin);
    this.bytes().set(this.#prefix.subarray(begin, end));
  }

  /** Bytes of the range that lie in a part of the file; all by default. */
  bytes({ begin, end }: ByteRange = this): Uint8Array {
    return new Uint8Array(this.data, begin - this.begin, end - begin);
  }

  /** Pieces of the whole file, in file order, the same on all processes. */
  *pieces(): Generator<StatePiece> {
    const { layout, fileLength, chunk, count } = this;
    const start = this.#prefix.length;
    let next = 0;
    for (let owner = 0; owner < count; owner++) {
      const range = rangeOf(fileLength, chunk, owner, count);
      for (let begin = range.begin; begin < range.end; begin += PIECE_BYTES) {
        const piece = { begin, end: Math.min(range.end, begin + PIECE_BYTES) };
        const tensors: PieceTensor[] = [];
        const isBefore = ({ offset, byteLength }: TensorPlace) => start + offset + byteLength <= begin;
        while (next < layout.tensors.length && isBefore(layout.tensors[next]!)) next++;
        for (let i = next; i < layout.tensors.length; i++) {
          const { name, offset, byteLength } = layout.tensors[i]!;
          const at = start + offset;
          if (at >= piece.end) break;
          const [from, to] = [Math.max(at, begin), Math.min(at + byteLength, piece.end)];
          if (to > from)
            tensors.push({ name, inTensor: from - at, inBytes: from - begin, byteLength: to - from });
        }
        yield { ...piece, owner, tensors };
      }
    }
  }

  /**
   * Reads the range.
   *
   * @param expected digest of the whole file: where it has those of chunks, the range's are checked.
   * @throws CheckpointError `broken` for bytes that are damaged or not there, `io` where the system refuses them
   */
  read(path: string, expected: FileDigest): void {
    const bytes = this.bytes();
    try {
      const file = openRegularFile(path);
      try {
        readWhole(file, path, bytes, this.begin);
      } finally {
        closeSync(file);
      }
    } catch (cause) {
      throw ioError(path, 'cannot be read', cause);
    }
    const { chunks } = expected;
    if (chunks === undefined) return;
    const first = this.begin / this.chunk;
    for (const [i, sha256] of digestsOf(bytes, this.chunk).entries())
      if (sha256 !== chunks.sha256[first + i])
        throw new CheckpointError('broken', path, damagedChunk(chunks.byteLength, first + i));
  }
}
