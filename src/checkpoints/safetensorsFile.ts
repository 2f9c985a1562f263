/** @file Safetensors files on disk, read tensor by tensor. */

import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync } from 'node:fs';
import { openRegularFile, readFully } from '../files/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { bytesOf, CHUNK_BYTES, type FileDigest } from './durableFile.js';
import {
  decodeHeader,
  decodeHeaderLength,
  elementCount,
  type SafetensorsLayout,
  type TensorPlace,
} from './safetensors.js';

/** Array types of tensors; BF16 widens to float32, which is exact. */
const ARRAY_OF = {
  F64: Float64Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const;

type TensorArray = InstanceType<(typeof ARRAY_OF)[keyof typeof ARRAY_OF]>;

/** A safetensors file that is open for reading. Its header has been checked against the file's length. */
export class SafetensorsFile {
  readonly layout: SafetensorsLayout;
  readonly #file: number;
  readonly #dataStart: number;
  readonly #places: ReadonlyMap<string, TensorPlace>;

  /** @throws CheckpointError `io` when the file cannot be opened, `broken` when it is not whole */
  constructor(readonly path: string) {
    try {
      this.#file = openRegularFile(path);
    } catch (cause) {
      throw ioError(path, 'cannot be read', cause);
    }
    try {
      const fileLength = fstatSync(this.#file).size;
      const first = new Uint8Array(8);
      if (fileLength >= first.length) this.#fill(first, 0);
      const header = new Uint8Array(decodeHeaderLength(path, first, fileLength));
      this.#fill(header, first.length);
      this.layout = decodeHeader(path, header, fileLength);
      this.#dataStart = first.length + header.length;
    } catch (cause) {
      this.close();
      throw ioError(path, 'cannot be read', cause);
    }
    this.#places = new Map(this.layout.tensors.map((place) => [place.name, place]));
  }

  /** The place of tensor `name`, if there is one. */
  place(name: string): TensorPlace | undefined {
    return this.#places.get(name);
  }

  /** A tensor's elements in a new array; BF16 as float32. */
  read(name: string): TensorArray {
    const { dtype, shape, offset } = this.#placeOf(name);
    if (dtype === 'F16') {
      throw new CheckpointError(
        'mismatch',
        this.path,
        `tensor '${name}': F16 is not supported; convert it to F32`,
      );
    }
    const array = new ARRAY_OF[dtype === 'BF16' ? 'U16' : dtype](elementCount(shape));
    this.#fill(bytesOf(array), this.#dataStart + offset);
    return dtype === 'BF16' ? widenBfloat16(array as Uint16Array) : array;
  }

  /** Reads a tensor's bytes straight into `target`, which must have the same length in bytes. */
  readInto(name: string, target: ArrayBufferView): void {
    const { offset, byteLength } = this.#placeOf(name);
    if (target.byteLength !== byteLength) {
      throw new CheckpointError(
        'mismatch',
        this.path,
        `tensor '${name}': expected ${target.byteLength} bytes, found ${byteLength}`,
      );
    }
    this.#fill(bytesOf(target), this.#dataStart + offset);
  }

  /** Reads the file from its first byte to its last, through one small buffer. */
  digest(): FileDigest {
    const hash: Hash = createHash('sha256');
    const buffer = new Uint8Array(CHUNK_BYTES);
    let byteLength = 0;
    for (;;) {
      const count = readFully(this.#file, buffer, byteLength);
      if (count === 0) return { byteLength, sha256: hash.digest('hex') };
      hash.update(buffer.subarray(0, count));
      byteLength += count;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #placeOf(name: string): TensorPlace {
    const place = this.#places.get(name);
    if (place === undefined) throw new CheckpointError('mismatch', this.path, `it has no tensor '${name}'`);
    return place;
  }

  #fill(target: Uint8Array, position: number): void {
    const count = readFully(this.#file, target, position);
    if (count === target.length) return;
    const [expected, found] = [position + target.length, position + count];
    throw new CheckpointError('broken', this.path, `truncated: expected ${expected} bytes, found ${found}`);
  }
}

/** bfloat16 is the upper half of float32. */
function widenBfloat16(halves: Uint16Array): Float32Array<ArrayBuffer> {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}
