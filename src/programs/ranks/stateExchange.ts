/** @file Bytes of a state's file that ranks exchange: each has the elements of its parts, and all the file's bytes of its chunks. */
import { STEP_TENSOR, type StatePiece, type StateRange } from '../../checkpoints/index.js';
import type { FlatArray } from '../../compiler/index.js';
import type { JobRanks } from '../../runs/index.js';
import { cut, paste, type Shard } from '../../tasks/index.js';

/** A tensor of the file as a rank holds it. */
export interface HeldTensor {
  readonly data: FlatArray;
  /** The part that `data` is of; absent: the whole, as on every other rank. */
  readonly shard?: Shard;
}

/** Tensors of a state's file by name, those without elements here left out. */
export type HeldTensors = ReadonlyMap<string, HeldTensor>;

/** Fills the ranges of all ranks by their parts of a state. All ranks call it. */
export async function collect(
  ranks: JobRanks,
  range: StateRange,
  { step, held }: { readonly step: number; readonly held: HeldTensors },
): Promise<void> {
  const pieces = new Pieces(range);
  for (const piece of range.pieces()) {
    const isOwn = piece.owner === ranks.rank;
    const bytes = pieces.memory(piece).fill(0);
    let hasParts = false;
    for (const { name, inTensor, inBytes, byteLength } of piece.tensors) {
      const { data, shard } = held.get(name) ?? {};
      if (name === STEP_TENSOR) {
        if (isOwn) new DataView(bytes.buffer).setBigInt64(inBytes, BigInt(step), true);
      } else if (data === undefined) throw new RangeError(`'${name}' is no tensor of this rank's state`);
      else if (shard === undefined) {
        if (isOwn) bytes.set(bytesOf(data).subarray(inTensor, inTensor + byteLength), inBytes);
      } else {
        hasParts = true;
        const { BYTES_PER_ELEMENT } = data;
        paste(data, shard, pieces.elements(data, inBytes, byteLength), inTensor / BYTES_PER_ELEMENT);
      }
    }
    if (hasParts) await ranks.combine(bytes, piece.owner);
    if (!isOwn) continue;
    // The header is there already.
    const own = range.bytes(piece);
    for (const { inBytes, byteLength } of piece.tensors)
      own.set(bytes.subarray(inBytes, inBytes + byteLength), inBytes);
  }
}

/** Fills the parts of a state by the ranges that ranks have read; what the file lacks, stays. All ranks call it. */
export async function spread(ranks: JobRanks, range: StateRange, held: HeldTensors): Promise<void> {
  const pieces = new Pieces(range);
  for (const piece of range.pieces()) {
    const bytes = pieces.memory(piece);
    if (piece.owner === ranks.rank) bytes.set(range.bytes(piece));
    await ranks.broadcast(bytes, piece.owner);
    for (const { name, inTensor, inBytes, byteLength } of piece.tensors) {
      const tensor = held.get(name);
      if (tensor === undefined) continue;
      const { data, shard } = tensor;
      if (shard === undefined) bytesOf(data).set(bytes.subarray(inBytes, inBytes + byteLength), inTensor);
      else cut(pieces.elements(data, inBytes, byteLength), shard, data, inTensor / data.BYTES_PER_ELEMENT);
    }
  }
}

/** Memory of one piece after the other. */
class Pieces {
  readonly #memory: ArrayBuffer;

  constructor(range: StateRange) {
    let most = 0;
    for (const { begin, end } of range.pieces()) most = Math.max(most, end - begin);
    this.#memory = new ArrayBuffer(most);
  }

  memory({ begin, end }: StatePiece): Uint8Array {
    return new Uint8Array(this.#memory, 0, end - begin);
  }

  /** Bytes of a piece as elements of the type of others. */
  elements<T extends FlatArray>(like: T, begin: number, byteLength: number): T {
    const Elements = like.constructor as new (buffer: ArrayBuffer, begin: number, length: number) => T;
    return new Elements(this.#memory, begin, byteLength / like.BYTES_PER_ELEMENT);
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: FlatArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
