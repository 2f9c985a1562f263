/** @file A GGUF file for other programs, whose tensors are made while it is written. */
import { narrow } from '../../compiler/index.js';
import { replaceDurably } from '../durableFile.js';
import { type GgmlType, ggmlBytes, ggmlTypes, packBlocks } from './ggmlTypes.js';
import { DEFAULT_ALIGNMENT, type GgufNumberKind, KINDS, MAGIC, NUMBERS, VERSION } from './ggufHeader.js';

type WrittenKind = GgufNumberKind | 'string';
type Scalar = string | number | boolean;

/** An entry of the metadata; the values of an array are all of one kind. */
export type GgufEntry = readonly [key: string, kind: WrittenKind, value: Scalar | readonly Scalar[]];

/** Types that are written. */
export const writtenGgmlTypes = ['F32', 'F16', 'BF16', 'Q8_0', 'Q4_0', 'Q4_K'] as const;

export type WrittenGgmlType = (typeof writtenGgmlTypes)[number];

/** A tensor to write. */
export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** One whose blocks fit the rows. */
  readonly type: WrittenGgmlType;
  /** Its elements, which are not kept. */
  readonly values: () => Float32Array;
}

const typeOf = (name: WrittenGgmlType): GgmlType => ggmlTypes.find((type) => type.name === name)!;

/** Elements of a block of a type, which a row has a multiple of. */
export const ggmlBlock = (name: WrittenGgmlType): number => typeOf(name).block;

const padded = (bytes: number): number => Math.ceil(bytes / DEFAULT_ALIGNMENT) * DEFAULT_ALIGNMENT;

/** Writes a file whole, or not at all. @throws CheckpointError where it can't be written, and as `values` do */
export function writeGguf(path: string, entries: readonly GgufEntry[], tensors: readonly GgufTensor[]): void {
  function* contents(): Generator<ArrayBufferView> {
    const header = headerOf(entries, tensors);
    yield padding(header);
    for (const { type, values } of tensors) yield padding(bytesOf(typeOf(type), values()));
  }
  replaceDurably(path, contents());
}

function padding(bytes: Uint8Array): Uint8Array {
  const result = new Uint8Array(padded(bytes.length));
  result.set(bytes);
  return result;
}

function bytesOf(type: GgmlType, values: Float32Array): Uint8Array {
  if (type.pack !== undefined) return packBlocks(type, values);
  const stored = type.name === 'F32' ? values : narrow(values, type.name === 'F16' ? 'float16' : 'bfloat16');
  return new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
}

function headerOf(entries: readonly GgufEntry[], tensors: readonly GgufTensor[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const put = (kind: WrittenKind, value: Scalar): void => {
    parts.push(encoded(kind, value));
  };
  put('u32', MAGIC);
  put('u32', VERSION);
  put('u64', tensors.length);
  put('u64', entries.length);
  for (const [key, kind, value] of entries) {
    put('string', key);
    if (typeof value === 'object') {
      put('u32', KINDS.indexOf('array'));
      put('u32', KINDS.indexOf(kind));
      put('u64', value.length);
      for (const each of value) put(kind, each);
    } else {
      put('u32', KINDS.indexOf(kind));
      put(kind, value);
    }
  }
  let at = 0;
  for (const { name, shape, type } of tensors) {
    put('string', name);
    put('u32', shape.length);
    for (const size of shape.toReversed()) put('u64', size);
    put('u32', typeOf(type).id);
    put('u64', at);
    at += padded(ggmlBytes(typeOf(type), shape));
  }
  return Buffer.concat(parts);
}

function encoded(kind: WrittenKind, value: Scalar): Uint8Array {
  if (kind === 'string') {
    const text = new TextEncoder().encode(value as string);
    return Buffer.concat([encoded('u64', text.length), text]);
  }
  const { bytes, write } = NUMBERS[kind];
  const result = new Uint8Array(bytes);
  write(new DataView(result.buffer), Number(value));
  return result;
}
