/**
 * @file The GGUF format: metadata by key and the places of tensors, little-endian, then the tensors' bytes
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 */
import { CheckpointError } from '../checkpointErrors.js';
import { elementCount, quoted } from '../safetensors.js';
import { type GgmlType, ggmlBytes, ggmlTypes } from './ggmlTypes.js';

/** A value of the metadata: integers of 64 bits are numbers too. */
export type GgufValue = string | number | boolean | readonly string[] | readonly boolean[] | Float64Array;

export type GgufMetadata = ReadonlyMap<string, GgufValue>;

/** A tensor in a file. */
export interface GgufPlace {
  readonly name: string;
  readonly type: GgmlType;
  /** The outermost axis first; the file has the innermost first. */
  readonly shape: readonly number[];
  /** Of its first byte in the file. */
  readonly at: number;
  readonly byteLength: number;
}

/** What stands before the tensors. */
export interface GgufHeader {
  readonly metadata: GgufMetadata;
  readonly tensors: readonly GgufPlace[];
}

export const MAGIC = 0x46554747;
/** Version 2 differs from 3 in nothing that little-endian files show. */
export const VERSION = 3;
export const DEFAULT_ALIGNMENT = 32;
/** Most axes of a tensor of ggml. */
const MOST_AXES = 4;
/** Most bytes before the tensors: a vocabulary of a million tokens with its merges takes half of them. */
const LONGEST_HEADER = 100_000_000;
/** Bytes that are read at once. */
const WINDOW = 1 << 16;

/** Kinds of values by number. */
export const KINDS = [
  ...(['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'bool'] as const),
  ...(['string', 'array', 'u64', 'i64', 'f64'] as const),
] as const;

type GgufKind = (typeof KINDS)[number];

/** Kinds of one size. */
export type GgufNumberKind = Exclude<GgufKind, 'string' | 'array'>;

/** A kind of one size. */
interface NumberKind {
  readonly bytes: number;
  readonly read: (view: DataView) => number | bigint;
  readonly write: (view: DataView, value: number) => void;
}

const kind = (bytes: number, read: NumberKind['read'], write: NumberKind['write']): NumberKind => ({
  ...{ bytes, read, write },
});

const byte = kind(
  1,
  (view) => view.getUint8(0),
  (view, value) => view.setUint8(0, value),
);

export const NUMBERS: Readonly<Record<GgufNumberKind, NumberKind>> = {
  u8: byte,
  bool: byte,
  i8: kind(
    1,
    (view) => view.getInt8(0),
    (view, value) => view.setInt8(0, value),
  ),
  u16: kind(
    2,
    (view) => view.getUint16(0, true),
    (view, value) => view.setUint16(0, value, true),
  ),
  i16: kind(
    2,
    (view) => view.getInt16(0, true),
    (view, value) => view.setInt16(0, value, true),
  ),
  u32: kind(
    4,
    (view) => view.getUint32(0, true),
    (view, value) => view.setUint32(0, value, true),
  ),
  i32: kind(
    4,
    (view) => view.getInt32(0, true),
    (view, value) => view.setInt32(0, value, true),
  ),
  f32: kind(
    4,
    (view) => view.getFloat32(0, true),
    (view, value) => view.setFloat32(0, value, true),
  ),
  u64: kind(
    8,
    (view) => view.getBigUint64(0, true),
    (view, value) => view.setBigUint64(0, BigInt(value), true),
  ),
  i64: kind(
    8,
    (view) => view.getBigInt64(0, true),
    (view, value) => view.setBigInt64(0, BigInt(value), true),
  ),
  f64: kind(
    8,
    (view) => view.getFloat64(0, true),
    (view, value) => view.setFloat64(0, value, true),
  ),
};

/** Fewest bytes of an element of each kind, by which counts are checked before memory is taken. */
const leastBytes = (kind: GgufNumberKind | 'string'): number => (kind === 'string' ? 8 : NUMBERS[kind].bytes);

/**
 * Reads and checks what stands before the tensors.
 *
 * @param read fills a target from a position of the file. @param length of the file in bytes
 * @throws CheckpointError of kind `broken`, with the byte at fault
 */
export function readGgufHeader(
  path: string,
  length: number,
  read: (target: Uint8Array, at: number) => void,
): GgufHeader {
  return new HeaderReader(path, length, read).header();
}

class HeaderReader {
  #at = 0;
  #window = new Uint8Array(0);
  #windowAt = 0;

  constructor(
    private readonly path: string,
    private readonly length: number,
    private readonly read: (target: Uint8Array, at: number) => void,
  ) {}

  header(): GgufHeader {
    const magic = this.#number('u32', 'the magic number');
    if (magic !== MAGIC) throw this.#broken(0, 'it does not begin with GGUF');
    const version = this.#number('u32', 'the version');
    if (version !== 2 && version !== VERSION) {
      const isBigEndian = version >= 1 << 24;
      throw this.#broken(
        4,
        `version ${version}${isBigEndian ? ', perhaps big-endian' : ''}: expected 2 or 3`,
      );
    }
    const tensorCount = this.#count('the number of tensors', 24);
    const entryCount = this.#count('the number of metadata entries', 13);
    const metadata = new Map<string, GgufValue>();
    for (let i = 0; i < entryCount; i++) {
      const at = this.#at;
      const key = this.#string('a key');
      if (metadata.has(key)) throw this.#broken(at, `two entries have the key '${quoted(key)}'`);
      metadata.set(key, this.#value(key));
    }
    const places = Array.from({ length: tensorCount }, () => this.#tensor());
    const found = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT;
    const alignment = typeof found === 'number' && found > 0 && found % 8 === 0 ? found : undefined;
    if (alignment === undefined)
      throw this.#broken(0, `general.alignment is ${found}: expected a multiple of 8`);
    return { metadata, tensors: this.#placed(places, alignment) };
  }

  /** Checks that tensors are aligned, apart, and in the file. */
  #placed(found: readonly (GgufPlace & { readonly from: number })[], alignment: number): GgufPlace[] {
    const start = Math.ceil(this.#at / alignment) * alignment;
    const names = new Set<string>();
    const places = found.map(({ from, ...tensor }) => {
      const { name, at, byteLength } = tensor;
      const shown = `tensor '${quoted(name)}'`;
      if (names.has(name)) throw this.#broken(from, `two tensors are named '${quoted(name)}'`);
      names.add(name);
      if (at % alignment !== 0)
        throw this.#broken(
          from,
          `${shown}: expected an offset that is a multiple of ${alignment}, found ${at}`,
        );
      const end = start + at + byteLength;
      if (end > this.length)
        throw this.#broken(from, `${shown} ends at byte ${end}, and the file has ${this.length}`);
      return { from, place: { ...tensor, at: start + at } };
    });
    let end = start;
    for (const { from, place } of [...places].sort((a, b) => a.place.at - b.place.at)) {
      if (place.at < end) throw this.#broken(from, `tensor '${quoted(place.name)}' overlaps another`);
      end = place.at + place.byteLength;
    }
    return places.map(({ place }) => place);
  }

  #tensor(): GgufPlace & { readonly from: number } {
    const from = this.#at;
    const name = this.#string('the name of a tensor');
    const shown = `tensor '${quoted(name)}'`;
    const axes = this.#number('u32', `the number of axes of ${shown}`);
    if (axes > MOST_AXES)
      throw this.#broken(from, `${shown} has ${axes} axes: expected ${MOST_AXES} at most`);
    const shape = Array.from({ length: axes }, () => this.#number('u64', `an axis of ${shown}`)).reverse();
    const id = this.#number('u32', `the type of ${shown}`);
    const type = ggmlTypes.find((each) => each.id === id);
    if (type === undefined) {
      const known = ggmlTypes.map((each) => each.name).join(', ');
      throw this.#broken(from, `${shown} is of type ${id}, which is not read: expected ${known}`);
    }
    if (!Number.isSafeInteger(elementCount(shape)))
      throw this.#broken(from, `${shown} has the shape [${shape.join(', ')}], which no file holds`);
    if ((shape.at(-1) ?? 1) % type.block !== 0)
      throw this.#broken(
        from,
        `${shown} of ${type.name} has rows of ${shape.at(-1)}: expected a multiple of ${type.block}`,
      );
    const at = this.#number('u64', `the offset of ${shown}`);
    return { name, type, shape, at, byteLength: ggmlBytes(type, shape), from };
  }

  #value(key: string): GgufValue {
    const kind = this.#kind(key);
    if (kind === 'array') return this.#array(key);
    if (kind === 'string') return this.#string(`'${quoted(key)}'`);
    if (kind === 'bool') return this.#bool(key);
    return this.#number(kind, `'${quoted(key)}'`);
  }

  #array(key: string): GgufValue {
    const at = this.#at;
    const kind = this.#kind(key);
    if (kind === 'array') throw this.#broken(at, `'${quoted(key)}' is an array of arrays, which is not read`);
    const count = this.#count(`the length of '${quoted(key)}'`, leastBytes(kind));
    if (kind === 'string') return Array.from({ length: count }, () => this.#string(`'${quoted(key)}'`));
    if (kind === 'bool') return Array.from({ length: count }, () => this.#bool(key));
    return Float64Array.from({ length: count }, () => this.#number(kind, `'${quoted(key)}'`));
  }

  #bool(key: string): boolean {
    const at = this.#at;
    const value = this.#number('u8', `'${quoted(key)}'`);
    if (value > 1) throw this.#broken(at, `'${quoted(key)}': expected a bool, found ${value}`);
    return value === 1;
  }

  #kind(key: string): GgufKind {
    const at = this.#at;
    const id = this.#number('u32', `the kind of '${quoted(key)}'`);
    const kind = KINDS[id];
    if (kind === undefined)
      throw this.#broken(at, `'${quoted(key)}' is of kind ${id}: expected 0 to ${KINDS.length - 1}`);
    return kind;
  }

  /** A number of things that take at least `bytes` each. */
  #count(what: string, bytes: number): number {
    const at = this.#at;
    const count = this.#number('u64', what);
    if (count * bytes > Math.min(this.length, LONGEST_HEADER) - this.#at)
      throw this.#broken(at, `${what} is ${count}, more than the file holds`);
    return count;
  }

  #number(kind: GgufNumberKind, what: string): number {
    const at = this.#at;
    const { bytes, read } = NUMBERS[kind];
    const taken = this.#take(bytes, what);
    const value = Number(read(new DataView(taken.buffer, taken.byteOffset, bytes)));
    if (bytes === 8 && kind !== 'f64' && !Number.isSafeInteger(value))
      throw this.#broken(at, `${what} is ${value}, beyond 2^53`);
    return value;
  }

  #string(what: string): string {
    const at = this.#at;
    const length = this.#count(`the length of ${what}`, 1);
    const bytes = this.#take(length, what);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw this.#broken(at, `${what} is not UTF-8`);
    }
  }

  /** The next bytes, which are valid until the next call. */
  #take(count: number, what: string): Uint8Array {
    const end = this.#at + count;
    if (end > this.length) throw this.#broken(this.#at, `truncated in ${what}`);
    if (end > LONGEST_HEADER)
      throw this.#broken(this.#at, `more than ${LONGEST_HEADER} bytes before the tensors`);
    if (end > this.#windowAt + this.#window.length) {
      this.#windowAt = this.#at;
      this.#window = new Uint8Array(Math.min(Math.max(count, WINDOW), this.length - this.#at));
      this.read(this.#window, this.#at);
    }
    const from = this.#at - this.#windowAt;
    this.#at = end;
    return this.#window.subarray(from, from + count);
  }

  #broken(at: number, problem: string): CheckpointError {
    return new CheckpointError('broken', this.path, `at byte ${at}: ${problem}`);
  }
}
