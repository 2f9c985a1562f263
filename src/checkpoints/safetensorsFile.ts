/** @file Safetensors files on disk, read tensor by tensor. */

import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync } from 'node:fs';
import { type MapFile, openRegularFile, readFully } from '../files/index.js';
import type { AxisOrder } from './axes.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { bytesOf, type FileDigest } from './durableFile.js';
import { ElementOrder } from './elementOrder.js';
import { floatBytes } from './floats.js';
import {
  decodeHeader,
  decodeHeaderLength,
  elementCount,
  quoted,
  type SafetensorsLayout,
  type TensorPlace,
} from './safetensors.js';
import { digestOfChunks } from './stateChunks.js';
import { type Elements, StoredElements, type TensorBytes } from './storedElements.js';
import type { TensorFile } from './tensorFile.js';
import { areSameBytes, CHUNK_BYTES, readWhole } from './wholeReads.js';

/** Array types of tensors; F16 and BF16 as bits. */
const ARRAY_OF = {
  F64: Float64Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const;

type TensorArray = InstanceType<(typeof ARRAY_OF)[keyof typeof ARRAY_OF]>;

/** A safetensors file that is open for reading. Its header has been checked against the file's length. */
export class SafetensorsFile implements TensorFile {
  readonly layout: SafetensorsLayout;
  readonly #file: number;
  readonly #dataStart: number;
  readonly #places: ReadonlyMap<string, TensorPlace>;
  #mapped: ArrayBuffer | undefined;

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

  get names(): readonly string[] {
    return [...this.#places.keys()];
  }

  shapeOf(name: string): readonly number[] | undefined {
    return this.place(name)?.shape;
  }

  /** The place of tensor `name`, if there is one. */
  place(name: string): TensorPlace | undefined {
    return this.#places.get(name);
  }

  /** A tensor's elements in a new array, as the file has them: F16 and BF16 as words. Dtypes without arrays are widened to float32. */
  read(name: string): TensorArray {
    const { dtype, shape } = this.#placeOf(name);
    const count = elementCount(shape);
    if (!Object.hasOwn(ARRAY_OF, dtype)) {
      const floats = new Float32Array(count);
      this.readFloats(name, floats);
      return floats;
    }
    const array = new ARRAY_OF[dtype as keyof typeof ARRAY_OF](count);
    this.readInto(name, array);
    return array;
  }

  /**
   * Tensors as views of the mapped file, which outlive this object, by name: all that have arrays of their dtype, and are
   * aligned to its elements, as those of our files are. None where the file can't be mapped.
   */
  map(map: MapFile): ReadonlyMap<string, TensorArray> {
    const bytes = map(this.#file, this.path);
    const views = new Map<string, TensorArray>();
    for (const { name, dtype, shape, offset } of bytes === undefined ? [] : this.layout.tensors) {
      const at = this.#dataStart + offset;
      const Tensors = Object.hasOwn(ARRAY_OF, dtype) ? ARRAY_OF[dtype as keyof typeof ARRAY_OF] : undefined;
      if (Tensors && at % Tensors.BYTES_PER_ELEMENT === 0)
        views.set(name, new Tensors(bytes!, at, elementCount(shape)));
    }
    return views;
  }

  /** Reads a tensor's bytes straight into `target`, which must have the same length in bytes. */
  readInto(name: string, target: ArrayBufferView): void {
    const { offset, byteLength } = this.#placeOf(name);
    if (target.byteLength !== byteLength) {
      throw this.#misfit(name, `expected ${target.byteLength} bytes, found ${byteLength}`);
    }
    this.#fill(bytesOf(target), this.#dataStart + offset);
  }

  /** The reason why a tensor's dtype can't be read as float32; undefined where it can. */
  dtypeProblem(name: string): string | undefined {
    const { dtype } = this.#placeOf(name);
    return floatBytes(dtype) === undefined
      ? `${dtype} is not read; convert it to F32, F16, BF16 or F64`
      : undefined;
  }

  /**
   * Reads a tensor's elements as float32.
   *
   * @param target has as many elements as `order` takes.
   * @param order where the elements go; one after the other where absent.
   * @throws CheckpointError of kind `mismatch` for a dtype that is not read, and for an element that float32 can't hold.
   */
  readFloats(name: string, target: Float32Array, order?: AxisOrder): void {
    this.elements(name, order).fill(target, 0);
  }

  /**
   * A tensor's elements in an order of its axes.
   *
   * @param map reorders the elements where the system has them; they are read otherwise.
   * @throws CheckpointError of kind `mismatch` for a dtype that is not read
   */
  elements(name: string, order?: AxisOrder, map?: MapFile): Elements {
    const place = this.#placeOf(name);
    const problem = this.dtypeProblem(name);
    if (problem !== undefined) throw this.#misfit(name, problem);
    const at = this.#dataStart + place.offset;
    const isAligned = at % floatBytes(place.dtype)! === 0;
    const axes = ElementOrder.of(order);
    const file = map && axes && isAligned ? (this.#mapped ??= map(this.#file, this.path)) : undefined;
    const bytes: TensorBytes = {
      read: (target, from) => this.#fill(target, at + from),
      mapped: file && new Uint8Array(file, at, place.byteLength),
      forget: () => file && map!.forget(file, at, place.byteLength),
    };
    return new StoredElements(place, bytes, axes, (text) => this.#misfit(name, text));
  }

  /** Reads bytes of a tensor, from byte `at` of it on. */
  readBytes(name: string, target: Uint8Array, at: number): void {
    this.#fill(target, this.#dataStart + this.#placeOf(name).offset + at);
  }

  #misfit(name: string, problem: string): CheckpointError {
    return new CheckpointError('mismatch', this.path, `tensor '${quoted(name)}': ${problem}`);
  }

  /** Whether a tensor has the dtype, shape and bytes of another, in this file or in `file`. */
  isEqual(name: string, file: TensorFile, other: string): boolean {
    if (!(file instanceof SafetensorsFile)) return false;
    const [ours, theirs] = [this.#placeOf(name), file.#placeOf(other)];
    if (ours.dtype !== theirs.dtype || `${ours.shape}` !== `${theirs.shape}`) return false;
    return areSameBytes(
      ours.byteLength,
      (target, at) => this.#fill(target, this.#dataStart + ours.offset + at),
      (target, at) => file.#fill(target, file.#dataStart + theirs.offset + at),
    );
  }

  /** Bytes before those of tensors. */
  get dataStart(): number {
    return this.#dataStart;
  }

  /** Reads the file from its first byte to its last, through one small buffer. @param chunk length of chunks with digests */
  digest(chunk?: number): FileDigest {
    const buffer = new Uint8Array(CHUNK_BYTES);
    const chunks: string[] = [];
    let byteLength = 0;
    for (;;) {
      const hash: Hash = createHash('sha256');
      const end = byteLength + (chunk ?? Number.POSITIVE_INFINITY);
      const begin = byteLength;
      while (byteLength < end) {
        const count = readFully(this.#file, buffer.subarray(0, end - byteLength), byteLength);
        if (count === 0) break;
        hash.update(buffer.subarray(0, count));
        byteLength += count;
      }
      if (chunk === undefined) return { byteLength, sha256: hash.digest('hex') };
      if (byteLength > begin) chunks.push(hash.digest('hex'));
      if (byteLength < end) return digestOfChunks(byteLength, { byteLength: chunk, sha256: chunks });
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
    readWhole(this.#file, this.path, target, position);
  }
}
