/**
 * @file Types of ggml's tensors: plain numbers, and blocks of a row with scales in float16. Unpacked values are those of the gguf
 * package bit by bit, each operation rounded to float32.
 */
import { elementCount } from '../safetensors.js';
import { halfAt, putHalf } from './halves.js';
import { packQ4K } from './packQ4K.js';

/** Unpacks one block, whose first byte is `at`, to `to` on. */
type Unpack = (bytes: Uint8Array, at: number, target: Float32Array, to: number) => void;
/** Packs one block. */
type Pack = (values: Float32Array, from: number, bytes: Uint8Array, at: number) => void;

/** A type of ggml. */
export interface GgmlType {
  readonly name: string;
  /** Its number in files. */
  readonly id: number;
  /** Elements of a block, all of one row. */
  readonly block: number;
  readonly bytes: number;
  /** Undefined for plain numbers, whose names are those of safetensors. */
  readonly unpack?: Unpack;
  /** Undefined for types that are not written. */
  readonly pack?: Pack;
}

const f32 = Math.fround;

const signed = (byte: number): number => (byte << 24) >> 24;

/** Blocks of 32 with 4 bits each: the lower ones of 16 bytes are the first half. */
const nibbles =
  (head: number, hasMinimum: boolean, high: number): Unpack =>
  (bytes, at, target, to) => {
    const scale = halfAt(bytes, at);
    const minimum = hasMinimum ? halfAt(bytes, at + 2) : 0;
    // Types without a minimum have their values around zero.
    const middle = hasMinimum ? 0 : high === 0 ? 8 : 16;
    for (let i = 0; i < 32; i++) {
      const byte = bytes[at + head + (i & 15)]!;
      let code = i < 16 ? byte & 15 : byte >> 4;
      if (high > 0) code |= ((bytes[at + high + (i >> 3)]! >> (i & 7)) & 1) << 4;
      const product = f32(scale * (code - middle));
      target[to + i] = hasMinimum ? product + minimum : product;
    }
  };

/** The 6 bits of scale and minimum of the eighth `j` of a block of Q4_K or Q5_K. */
function scaleAndMinimum(bytes: Uint8Array, at: number, j: number): [number, number] {
  if (j < 4) return [bytes[at + j]! & 63, bytes[at + j + 4]! & 63];
  const low = bytes[at + j + 4]!;
  return [(low & 15) | ((bytes[at + j - 4]! >> 6) << 4), (low >> 4) | ((bytes[at + j]! >> 6) << 4)];
}

/** Blocks of 256 in eighths with a scale and a minimum. @param high first byte of the fifth bits, 0 for none */
const eighths =
  (low: number, high: number): Unpack =>
  (bytes, at, target, to) => {
    const [scale, minimum] = [halfAt(bytes, at), halfAt(bytes, at + 2)];
    for (let j = 0; j < 8; j++) {
      const [factor, offset] = scaleAndMinimum(bytes, at + 4, j);
      const [d, m] = [f32(scale * factor), f32(minimum * offset)];
      for (let i = 0; i < 32; i++) {
        const byte = bytes[at + low + (j >> 1) * 32 + i]!;
        let code = j % 2 === 0 ? byte & 15 : byte >> 4;
        if (high > 0) code |= ((bytes[at + high + i]! >> j) & 1) << 4;
        target[to + 32 * j + i] = f32(d * code) - m;
      }
    }
  };

/** Q6_K: 256 in sixteenths with a scale of 8 bits: 128 bytes of the lower 4 bits, 64 of the upper 2, the scales, and the scale. */
const unpackQ6K: Unpack = (bytes, at, target, to) => {
  const scale = halfAt(bytes, at + 208);
  for (let i = 0; i < 256; i++) {
    const [part, within] = [i >> 7, i & 127];
    const lower = bytes[at + 64 * part + (within & 63)]! >> (within < 64 ? 0 : 4);
    const upper = bytes[at + 128 + 32 * part + (within & 31)]! >> (2 * (within >> 5));
    const code = ((lower & 15) | ((upper & 3) << 4)) - 32;
    target[to + i] = f32(scale * signed(bytes[at + 192 + (i >> 4)]!)) * code;
  }
};

const unpackQ8: Unpack = (bytes, at, target, to) => {
  const scale = halfAt(bytes, at);
  for (let i = 0; i < 32; i++) target[to + i] = signed(bytes[at + 2 + i]!) * scale;
};

/** ggml's quantize_row_q8_0_ref: halves are rounded away from zero. */
const packQ8: Pack = (values, from, bytes, at) => {
  let most = 0;
  for (let i = 0; i < 32; i++) most = Math.max(most, Math.abs(values[from + i]!));
  const scale = f32(most / 127);
  const inverse = scale === 0 ? 0 : f32(1 / scale);
  putHalf(bytes, at, scale);
  for (let i = 0; i < 32; i++) {
    const scaled = f32(values[from + i]! * inverse);
    bytes[at + 2 + i] = Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5);
  }
};

/** ggml's quantize_row_q4_0_ref: the first element of the largest magnitude becomes -8. */
const packQ4: Pack = (values, from, bytes, at) => {
  let most = 0;
  for (let i = 0; i < 32; i++) {
    const value = values[from + i]!;
    if (Math.abs(value) > Math.abs(most)) most = value;
  }
  const scale = f32(most / -8);
  const inverse = scale === 0 ? 0 : f32(1 / scale);
  const code = (i: number): number => Math.min(15, Math.trunc(f32(f32(values[from + i]! * inverse) + 8.5)));
  putHalf(bytes, at, scale);
  for (let i = 0; i < 16; i++) bytes[at + 2 + i] = code(i) | (code(i + 16) << 4);
};

/** The types that are read. */
export const ggmlTypes: readonly GgmlType[] = [
  { name: 'F32', id: 0, block: 1, bytes: 4 },
  { name: 'F16', id: 1, block: 1, bytes: 2 },
  { name: 'BF16', id: 30, block: 1, bytes: 2 },
  { name: 'F64', id: 28, block: 1, bytes: 8 },
  { name: 'I8', id: 24, block: 1, bytes: 1 },
  { name: 'I16', id: 25, block: 1, bytes: 2 },
  { name: 'I32', id: 26, block: 1, bytes: 4 },
  { name: 'I64', id: 27, block: 1, bytes: 8 },
  { name: 'Q4_0', id: 2, block: 32, bytes: 18, unpack: nibbles(2, false, 0), pack: packQ4 },
  { name: 'Q4_1', id: 3, block: 32, bytes: 20, unpack: nibbles(4, true, 0) },
  { name: 'Q5_0', id: 6, block: 32, bytes: 22, unpack: nibbles(6, false, 2) },
  { name: 'Q5_1', id: 7, block: 32, bytes: 24, unpack: nibbles(8, true, 4) },
  { name: 'Q8_0', id: 8, block: 32, bytes: 34, unpack: unpackQ8, pack: packQ8 },
  { name: 'Q4_K', id: 12, block: 256, bytes: 144, unpack: eighths(16, 0), pack: packQ4K },
  { name: 'Q5_K', id: 13, block: 256, bytes: 176, unpack: eighths(48, 16) },
  { name: 'Q6_K', id: 14, block: 256, bytes: 210, unpack: unpackQ6K },
];

/** Bytes of a tensor. */
export const ggmlBytes = ({ block, bytes }: GgmlType, shape: readonly number[]): number =>
  (elementCount(shape) / block) * bytes;

/** Packs whole blocks. @returns their bytes */
export function packBlocks({ block, bytes, pack }: GgmlType, values: Float32Array): Uint8Array {
  const packed = new Uint8Array((values.length / block) * bytes);
  for (let i = 0; i * block < values.length; i++) pack!(values, i * block, packed, i * bytes);
  return packed;
}

/**
 * Unpacks elements of a tensor.
 *
 * @param from the first element. @param read fills a target from a byte of the tensor
 */
export function unpackBlocks(
  { block, bytes, unpack }: GgmlType,
  target: Float32Array,
  from: number,
  read: (target: Uint8Array, at: number) => void,
): void {
  const first = Math.floor(from / block);
  const count = Math.ceil((from + target.length) / block) - first;
  const packed = new Uint8Array(count * bytes);
  read(packed, first * bytes);
  const skipped = from - first * block;
  const isWhole = skipped === 0 && count * block === target.length;
  const floats = isWhole ? target : new Float32Array(count * block);
  for (let i = 0; i < count; i++) unpack!(packed, i * bytes, floats, i * block);
  if (!isWhole) target.set(floats.subarray(skipped, skipped + target.length));
}
