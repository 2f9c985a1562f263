/** @file Copies of float32 buffers in tensors of a tfjs backend. */
import type { DeviceCopy } from '../program/tensorMemory.js';
import * as tf from '../tfjs/tfjs.js';

/** A range of a buffer's elements. */
interface Piece {
  readonly begin: number;
  readonly end: number;
  /** Of shape [end - begin]; absent while only the host has the values. */
  tensor?: tf.Tensor;
  /** Whether the host's values are older. */
  isNewer: boolean;
}

const { BYTES_PER_ELEMENT: BYTES } = Float32Array;

const rangeOf = ({ byteOffset, length }: Float32Array): [begin: number, end: number] => [
  byteOffset / BYTES,
  byteOffset / BYTES + length,
];

/** The part of a piece's tensor from element `begin` of the buffer to `end`. */
const partOf = (piece: Piece, begin: number, end: number): tf.Tensor =>
  begin === piece.begin && end === piece.end
    ? piece.tensor!
    : tf.slice(piece.tensor!, [begin - piece.begin], [end - begin]);

/**
 * Tensors in place of parts of buffers: an array is uploaded when a program first reads it, and what programs write stays
 * on the device. Programs may see the same elements by different views, as variables and as groups of them.
 */
export class TfjsCopy implements DeviceCopy {
  /** For each buffer, pieces that follow each other without gaps. */
  readonly #buffers = new Map<ArrayBufferLike, Piece[]>();

  /** The elements of an array, of shape [length]. Called within the backend's `tf.tidy`. */
  take(array: Float32Array): tf.Tensor {
    const [begin, end] = rangeOf(array);
    const isHost = ({ tensor }: Piece): boolean => tensor === undefined;
    this.#split(array, begin, isHost);
    this.#split(array, end, isHost);
    const parts = this.#within(array.buffer, begin, end).map((piece) => {
      piece.tensor ??= tf.keep(
        // The backend may keep the array, and the host changes it.
        tf.tensor1d(new Float32Array(array.buffer, piece.begin * BYTES, piece.end - piece.begin).slice()),
      );
      return partOf(piece, Math.max(begin, piece.begin), Math.min(end, piece.end));
    });
    return parts.length === 1 ? parts[0]! : tf.concat(parts);
  }

  /** Puts a tensor in place of an array. Called within the backend's `tf.tidy`. */
  put(array: Float32Array, tensor: tf.Tensor): void {
    const [begin, end] = rangeOf(array);
    const kept = tf.keep(tf.reshape(tensor, [array.length]));
    this.#split(array, begin);
    this.#split(array, end);
    const replaced = this.#within(array.buffer, begin, end);
    for (const piece of replaced) piece.tensor?.dispose();
    const pieces = this.#piecesOf(array.buffer);
    pieces.splice(pieces.indexOf(replaced[0]!), replaced.length, { begin, end, tensor: kept, isNewer: true });
  }

  async toHost(): Promise<void> {
    for (const [buffer, pieces] of this.#buffers) {
      for (const piece of pieces) {
        if (!piece.isNewer) continue;
        const values = (await piece.tensor!.data()) as Float32Array;
        new Float32Array(buffer, piece.begin * BYTES, values.length).set(values);
        piece.isNewer = false;
      }
    }
  }

  drop(): void {
    for (const pieces of this.#buffers.values()) for (const { tensor } of pieces) tensor?.dispose();
    this.#buffers.clear();
  }

  #piecesOf(buffer: ArrayBufferLike): Piece[] {
    let pieces = this.#buffers.get(buffer);
    if (pieces === undefined) {
      pieces = [{ begin: 0, end: Math.floor(buffer.byteLength / BYTES), isNewer: false }];
      this.#buffers.set(buffer, pieces);
    }
    return pieces;
  }

  #within(buffer: ArrayBufferLike, begin: number, end: number): Piece[] {
    return this.#piecesOf(buffer).filter((piece) => piece.begin < end && begin < piece.end);
  }

  /** Makes two pieces of one of these that goes across an element. */
  #split({ buffer }: Float32Array, at: number, these: (piece: Piece) => boolean = () => true): void {
    const pieces = this.#piecesOf(buffer);
    const i = pieces.findIndex((piece) => piece.begin < at && at < piece.end && these(piece));
    if (i < 0) return;
    const piece = pieces[i]!;
    const part = (begin: number, end: number): Piece => ({
      ...{ begin, end, isNewer: piece.isNewer },
      ...(piece.tensor && { tensor: tf.keep(partOf(piece, begin, end)) }),
    });
    pieces.splice(i, 1, part(piece.begin, at), part(at, piece.end));
    piece.tensor?.dispose();
  }
}
