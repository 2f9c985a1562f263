/**
 * @file The safetensors format: a JSON header that names tensors, then their bytes, little-endian and unpadded
 * (https://github.com/huggingface/safetensors#format).
 */
import { z } from 'zod';
import { CheckpointError } from './checkpointErrors.js';

/** Bits per element of each dtype that the format knows. */
const DTYPE_BITS = {
  F64: 64,
  I64: 64,
  U64: 64,
  C64: 64,
  F32: 32,
  I32: 32,
  U32: 32,
  F16: 16,
  BF16: 16,
  I16: 16,
  U16: 16,
  I8: 8,
  U8: 8,
  BOOL: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E5M2FNUZ: 8,
  F8_E4M3FNUZ: 8,
  F6_E2M3: 6,
  F6_E3M2: 6,
  F4: 4,
} as const;

export type SafetensorsDtype = keyof typeof DTYPE_BITS;

/** Name, dtype and shape of a tensor. */
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

/** Layout of a file: its prefix, then the tensors' bytes in this order. */
export interface SafetensorsLayout {
  readonly tensors: readonly TensorPlace[];
  /** Free text of the file, `__metadata__` in the header. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Length of the data section in bytes. */
  readonly byteLength: number;
}

/** The same limit as the reference reader's, so that a damaged length cannot allocate all memory. */
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
  for (const { name, dtype, shape } of [...specs].sort((a, b) => DTYPE_BITS[b.dtype] - DTYPE_BITS[a.dtype])) {
    if (name === '__metadata__') throw new RangeError(`'${name}' is reserved in safetensors files`);
    if (seen.has(name)) throw new RangeError(`two tensors are named '${name}'`);
    seen.add(name);
    const byteLength = bytesFor(dtype, shape);
    tensors.push({ name, dtype, shape: [...shape], offset, byteLength });
    offset += byteLength;
  }
  return { tensors, metadata, byteLength: offset };
}

/** Dtypes of tensors in memory. */
const DTYPE_OF = { float32: 'F32', int32: 'I32', bool: 'BOOL' } as const;

/** A tensor in memory: row-major values. */
export interface ArrayTensor {
  readonly dtype: keyof typeof DTYPE_OF;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** A whole file of tensors by name. */
export function encodeSafetensors(tensors: Readonly<Record<string, ArrayTensor>>): Uint8Array {
  const layout = placeTensors(
    Object.entries(tensors).map(([name, { dtype, shape }]) => ({ name, shape, dtype: DTYPE_OF[dtype] })),
  );
  const bytes = layout.tensors.map(({ name }) => {
    const { buffer, byteOffset, byteLength } = tensors[name]!.data;
    return new Uint8Array(buffer, byteOffset, byteLength);
  });
  return Buffer.concat([encodePrefix(layout), ...bytes]);
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
  if (!z.record(z.string(), z.string()).safeParse(metadata).success) {
    throw broken(path, `__metadata__: expected an object of strings, found ${shown(metadata)}`);
  }
  const tensors = entries
    .filter(([name]) => name !== '__metadata__')
    .map(([name, value]) => decodeTensor(path, name, value))
    .sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  let end = 0;
  for (const { name, offset, byteLength } of tensors) {
    if (offset !== end) {
      const what = offset < end ? 'overlaps the tensor before it' : 'leaves a gap after the tensor before it';
      throw broken(path, `tensor '${quoted(name)}' ${what}: expected offset ${end}, found ${offset}`);
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
  let parsed: Record<string, unknown>;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header);
    parsed = JSON.parse(text);
  } catch (cause) {
    throw broken(path, `the header is not JSON: ${quoted((cause as Error).message)}`);
  }
  if (!text.startsWith('{')) throw broken(path, 'the header is not a JSON object');
  return parsed;
}

const size = z.int().nonnegative();

const tensorSchema = z.object({
  dtype: z.enum(Object.keys(DTYPE_BITS) as SafetensorsDtype[]),
  shape: z.array(size),
  data_offsets: z.tuple([size, size]).refine(([begin, end]) => begin <= end),
});

/** Words of errors for the fields of a tensor. */
const FIELDS: Readonly<Record<PropertyKey, string>> = {
  dtype: `a dtype of ${Object.keys(DTYPE_BITS).join(', ')}`,
  shape: 'a shape',
  data_offsets: 'data_offsets [begin, end]',
};

function decodeTensor(path: string, name: string, value: unknown): TensorPlace {
  const parsed = tensorSchema.safeParse(value);
  if (!parsed.success) {
    const [field] = parsed.error.issues[0]!.path;
    const [expected, found] =
      field === undefined ? ['an object', value] : [FIELDS[field], (value as typeof FIELDS)[field]];
    throw broken(path, `tensor '${quoted(name)}': expected ${expected}, found ${shown(found)}`);
  }
  const { dtype, shape, data_offsets: offsets } = parsed.data;
  const [offset, end] = offsets;
  const byteLength = bytesFor(dtype, shape);
  if (end - offset !== byteLength) {
    const meant = `${dtype} ${shown(shape).replaceAll(',', ', ')}`;
    throw broken(
      path,
      `tensor '${quoted(name)}': expected ${byteLength} bytes for ${meant}, found ${end - offset}`,
    );
  }
  return { name, dtype, shape, offset, byteLength };
}

/** Number of elements of a shape; 1 for a scalar's empty shape. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Bytes of a tensor: whole ones, also where an element is less than a byte. */
const bytesFor = (dtype: SafetensorsDtype, shape: readonly number[]): number =>
  (elementCount(shape) * DTYPE_BITS[dtype]) / 8;

/** A text of a file in messages: one line of at most 80 characters. */
export function quoted(text: string): string {
  const escaped = JSON.stringify(text)
    .slice(1, -1)
    .replace(/[\x7f-\x9f\u2028\u2029]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return escaped.length > 80 ? `${escaped.slice(0, 80)}…` : escaped;
}

/** A value of a header in messages. */
function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return `"${quoted(value)}"`;
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch {
    // JSON is parsed at any depth, and not written.
    return 'a value that is nested too deeply';
  }
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function broken(path: string, problem: string): CheckpointError {
  return new CheckpointError('broken', path, problem);
}
