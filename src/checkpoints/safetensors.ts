/**
 * @file The safetensors format: a JSON header that names tensors, then their bytes, little-endian and unpadded
 * (https://github.com/huggingface/safetensors#format).
 */

import { CheckpointError } from './errors.js';

/** Bytes per element of each dtype that the format knows. */
const DTYPE_BYTES = {
  F64: 8,
  I64: 8,
  U64: 8,
  F32: 4,
  I32: 4,
  U32: 4,
  F16: 2,
  BF16: 2,
  I16: 2,
  U16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
} as const;

export type SafetensorsDtype = keyof typeof DTYPE_BYTES;

/** A tensor by name, before it has a place in a file. */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
}

/** A tensor in a file: its bytes are [offset, offset + byteLength) of the data section. */
export interface TensorPlace extends TensorSpec {
  readonly offset: number;
  readonly byteLength: number;
}

/** Where everything stands in a file. The file is `prefix`, then the tensors' bytes in this order. */
export interface SafetensorsLayout {
  readonly tensors: readonly TensorPlace[];
  /** Free text of the file, `__metadata__` in the header. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Length of the data section in bytes. */
  readonly byteLength: number;
}

/** The same limit as the reference reader's, so that a damaged length cannot ask for all memory. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;
/** The header is padded with spaces to a multiple of this, so that every tensor is aligned in a mapped file. */
const ALIGNMENT = 8;

/**
 * Gives every tensor its place. Wider elements come first, otherwise the given order is kept: with a data section
 * that starts on 8 bytes, every tensor is then aligned to its element size.
 */
export function placeTensors(
  specs: readonly TensorSpec[],
  metadata: Readonly<Record<string, string>> = {},
): SafetensorsLayout {
  const seen = new Set<string>();
  let offset = 0;
  const tensors: TensorPlace[] = [];
  for (const { name, dtype, shape } of [...specs].sort(
    (a, b) => DTYPE_BYTES[b.dtype] - DTYPE_BYTES[a.dtype],
  )) {
    if (name === '__metadata__') throw new RangeError(`'${name}' is reserved in safetensors files`);
    if (seen.has(name)) throw new RangeError(`two tensors are named '${name}'`);
    seen.add(name);
    const byteLength = elementCount(shape) * DTYPE_BYTES[dtype];
    tensors.push({ name, dtype, shape: [...shape], offset, byteLength });
    offset += byteLength;
  }
  return { tensors, metadata, byteLength: offset };
}

/** The file's first bytes: u64 length of the header, then the header itself, padded. */
export function encodePrefix(layout: SafetensorsLayout): Uint8Array {
  const entries: [string, unknown][] = layout.tensors.map(({ name, dtype, shape, offset, byteLength }) => [
    name,
    { dtype, shape, data_offsets: [offset, offset + byteLength] },
  ]);
  if (Object.keys(layout.metadata).length > 0) entries.unshift(['__metadata__', layout.metadata]);
  const json = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const headerLength = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  if (headerLength > MAX_HEADER_BYTES) {
    throw new RangeError(`header of ${headerLength} bytes; safetensors allows ${MAX_HEADER_BYTES}`);
  }
  const prefix = new Uint8Array(LENGTH_BYTES + headerLength).fill(0x20);
  new DataView(prefix.buffer).setBigUint64(0, BigInt(headerLength), true);
  prefix.set(json, LENGTH_BYTES);
  return prefix;
}

/**
 * Reads the header's length from a file's first 8 bytes.
 *
 * @param path named in errors
 * @param fileLength the file's size in bytes
 */
export function decodeHeaderLength(path: string, first: Uint8Array, fileLength: number): number {
  if (fileLength < LENGTH_BYTES) {
    throw broken(path, `truncated: expected at least ${LENGTH_BYTES} bytes, found ${fileLength}`);
  }
  const length = new DataView(first.buffer, first.byteOffset, LENGTH_BYTES).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw broken(path, `header length: expected at most ${MAX_HEADER_BYTES} bytes, found ${length}`);
  }
  const expected = LENGTH_BYTES + Number(length);
  if (fileLength < expected) {
    throw broken(path, `truncated in the header: expected at least ${expected} bytes, found ${fileLength}`);
  }
  return Number(length);
}

/**
 * Reads and checks a header: known dtypes, lengths that fit the shapes, tensors that follow one another without
 * gap or overlap and end with the file.
 *
 * @param header the header's bytes, without the 8 bytes of its length
 * @throws CheckpointError of kind `broken`
 */
export function decodeHeader(path: string, header: Uint8Array, fileLength: number): SafetensorsLayout {
  const entries = Object.entries(parseHeader(path, header));
  const metadata = entries.find(([name]) => name === '__metadata__')?.[1] ?? {};
  if (!isObject(metadata) || Object.values(metadata).some((value) => typeof value !== 'string')) {
    throw broken(path, `__metadata__: expected an object of strings, found ${JSON.stringify(metadata)}`);
  }
  const tensors = entries
    .filter(([name]) => name !== '__metadata__')
    .map(([name, value]) => decodeTensor(path, name, value))
    .sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  let end = 0;
  for (const { name, offset, byteLength } of tensors) {
    if (offset !== end) {
      const what = offset < end ? 'overlaps the tensor before it' : 'leaves a gap after the tensor before it';
      throw broken(path, `tensor '${name}' ${what}: expected offset ${end}, found ${offset}`);
    }
    end += byteLength;
  }
  const expected = LENGTH_BYTES + header.length + end;
  if (fileLength !== expected) {
    const what = fileLength < expected ? 'truncated in the tensors' : 'bytes after the last tensor';
    throw broken(path, `${what}: expected ${expected} bytes, found ${fileLength}`);
  }
  return { tensors, metadata: metadata as Record<string, string>, byteLength: end };
}

function parseHeader(path: string, header: Uint8Array): Record<string, unknown> {
  let text: string;
  let parsed: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header);
    parsed = JSON.parse(text);
  } catch (cause) {
    throw broken(path, `the header is not JSON: ${(cause as Error).message}`);
  }
  if (!text.startsWith('{') || !isObject(parsed)) throw broken(path, 'the header is not a JSON object');
  return parsed;
}

function decodeTensor(path: string, name: string, value: unknown): TensorPlace {
  const where = `tensor '${name}'`;
  if (!isObject(value)) throw broken(path, `${where}: expected an object, found ${JSON.stringify(value)}`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== 'string' || !Object.hasOwn(DTYPE_BYTES, dtype)) {
    const known = Object.keys(DTYPE_BYTES).join(', ');
    throw broken(path, `${where}: expected a dtype of ${known}, found ${JSON.stringify(dtype)}`);
  }
  if (!isCounts(shape)) throw broken(path, `${where}: expected a shape, found ${JSON.stringify(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!) {
    throw broken(path, `${where}: expected data_offsets [begin, end], found ${JSON.stringify(offsets)}`);
  }
  const [begin, end] = offsets as [number, number];
  const byteLength = elementCount(shape) * DTYPE_BYTES[dtype as SafetensorsDtype];
  if (end - begin !== byteLength) {
    const meant = `${dtype} [${shape.join(', ')}]`;
    throw broken(path, `${where}: expected ${byteLength} bytes for ${meant}, found ${end - begin}`);
  }
  return { name, dtype: dtype as SafetensorsDtype, shape, offset: begin, byteLength };
}

/** Number of elements of a shape; 1 for a scalar's empty shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function broken(path: string, problem: string): CheckpointError {
  return new CheckpointError('broken', path, problem);
}
