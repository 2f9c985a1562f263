/** @file GGUF files on disk, read tensor by tensor. */
import { closeSync, fstatSync } from 'node:fs';
import { openRegularFile } from '../../files/index.js';
import type { AxisOrder } from '../axes.js';
import { CheckpointError, ioError } from '../checkpointErrors.js';
import { ElementOrder } from '../elementOrder.js';
import { elementCount, quoted, type SafetensorsDtype } from '../safetensors.js';
import { type Elements, orderedFloats, StoredElements } from '../storedElements.js';
import type { TensorFile } from '../tensorFile.js';
import { areSameBytes, readWhole } from '../wholeReads.js';
import { unpackBlocks } from './ggmlTypes.js';
import { type GgufMetadata, type GgufPlace, readGgufHeader } from './ggufHeader.js';

/** Elements that are unpacked at once. */
const CHUNK_ELEMENTS = 1 << 19;

/** A GGUF file that is open for reading. What stands before its tensors has been checked against the file's length. */
export class GgufFile implements TensorFile {
  readonly metadata: GgufMetadata;
  readonly names: readonly string[];
  readonly #file: number;
  readonly #places: ReadonlyMap<string, GgufPlace>;

  /** @throws CheckpointError `io` when the file cannot be opened, `broken` when it is not whole */
  constructor(readonly path: string) {
    try {
      this.#file = openRegularFile(path);
    } catch (cause) {
      throw ioError(path, 'cannot be read', cause);
    }
    try {
      const { size } = fstatSync(this.#file);
      const { metadata, tensors } = readGgufHeader(path, size, (target, at) => this.#fill(target, at));
      this.metadata = metadata;
      this.#places = new Map(tensors.map((place) => [place.name, place]));
      this.names = [...this.#places.keys()];
    } catch (cause) {
      this.close();
      throw ioError(path, 'cannot be read', cause);
    }
  }

  shapeOf(name: string): readonly number[] | undefined {
    return this.#places.get(name)?.shape;
  }

  /** The name of a tensor's type. */
  typeOf(name: string): string | undefined {
    return this.#places.get(name)?.type.name;
  }

  /** All types that files may have are read. */
  dtypeProblem(): undefined {}

  elements(name: string, order?: AxisOrder): Elements {
    const { type, shape, at } = this.#placeOf(name);
    const axes = ElementOrder.of(order);
    const read = (target: Uint8Array, from: number): void => this.#fill(target, at + from);
    if (type.unpack === undefined) {
      const spec = { name, dtype: type.name as SafetensorsDtype, shape };
      const bytes = { read, mapped: undefined, forget: () => {} };
      return new StoredElements(
        spec,
        bytes,
        axes,
        (problem) => new CheckpointError('mismatch', this.path, `tensor '${quoted(name)}': ${problem}`),
      );
    }
    return orderedFloats(elementCount(shape), axes, (target, from) => {
      for (let done = 0; done < target.length; done += CHUNK_ELEMENTS)
        unpackBlocks(type, target.subarray(done, done + CHUNK_ELEMENTS), from + done, read);
    });
  }

  isEqual(name: string, file: TensorFile, other: string): boolean {
    if (!(file instanceof GgufFile)) return false;
    const [ours, theirs] = [this.#placeOf(name), file.#placeOf(other)];
    if (ours.type !== theirs.type || `${ours.shape}` !== `${theirs.shape}`) return false;
    return areSameBytes(
      ours.byteLength,
      (target, at) => this.#fill(target, ours.at + at),
      (target, at) => file.#fill(target, theirs.at + at),
    );
  }

  close(): void {
    closeSync(this.#file);
  }

  #placeOf(name: string): GgufPlace {
    const place = this.#places.get(name);
    if (place === undefined) throw new CheckpointError('mismatch', this.path, `it has no tensor '${name}'`);
    return place;
  }

  #fill(target: Uint8Array, position: number): void {
    readWhole(this.#file, this.path, target, position);
  }
}
