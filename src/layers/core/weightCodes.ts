/** @file Codes and scales of a weight's values, on the host. */
import { narrow, widen } from '../../compiler/index.js';
import type { Compensation } from './compensation.js';
import { type CodeForm, largestCode } from './quantization.js';

/** A weight in codes, and the scales of its groups as memory holds them. */
export interface WeightCodes {
  readonly codes: Int8Array | Uint8Array;
  readonly scales: Float32Array | Uint16Array;
}

/** Factors of a group's scale that are tried where its error is to be least. */
const FACTORS = Array.from({ length: 14 }, (_, i) => 1 - 0.025 * i);

/** Elements of a weight in the order of its codes: channel by channel. */
function inRows(values: Float32Array, { shape, axes }: CodeForm): Float32Array {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const [sizes, steps] = [axes.map((axis) => shape[axis]!), axes.map((axis) => strides[axis]!)];
  const result = new Float32Array(values.length);
  const index = sizes.map(() => 0);
  for (let i = 0, at = 0; i < values.length; i++) {
    result[i] = values[at]!;
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      at += steps[axis]!;
      if (++index[axis]! < sizes[axis]!) break;
      at -= steps[axis]! * sizes[axis]!;
      index[axis] = 0;
    }
  }
  return result;
}

/** The nearest integer, halves to the even one, as `tf.round`. */
function nearest(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
}

const roundedScale = (scale: number, isNarrow: boolean): number =>
  isNarrow ? widen(narrow(Float32Array.of(scale), 'bfloat16'), 'bfloat16')[0]! : Math.fround(scale);

/** The code of a weight, between the symmetric limits. */
const codeOf = (weight: number, scale: number, most: number): number =>
  scale === 0 ? 0 : Math.max(-most, Math.min(most, nearest(weight / scale)));

/** The sum of the squared errors of a group. */
function errorOf(group: Float32Array, scale: number, most: number): number {
  let sum = 0;
  for (const weight of group) sum += (weight - codeOf(weight, scale, most) * scale) ** 2;
  return sum;
}

/** A group's scale: that of its largest weight, or with `clips` the one of least error among smaller ones. */
function scaleOf(group: Float32Array, form: CodeForm, clips: boolean): number {
  const most = largestCode(form);
  const isNarrow = form.hasBlocks;
  const largest = group.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
  const whole = roundedScale(largest / most, isNarrow);
  if (!clips || whole === 0) return whole;
  let [best, least] = [whole, Number.POSITIVE_INFINITY];
  for (const factor of FACTORS) {
    const scale = roundedScale((largest / most) * factor, isNarrow);
    if (scale === 0) continue;
    const error = errorOf(group, scale, most);
    if (error < least) [best, least] = [scale, error];
  }
  return best;
}

/** Moves the weights behind one by its error, within its block. */
function makeUpFor(error: number, at: number, row: Float32Array, { block, blocks }: Compensation): void {
  const which = Math.floor(at / block);
  const [first, matrix] = [which * block, blocks[which]!];
  const size = Math.min(block, row.length - first);
  const from = (at - first) * size - first;
  for (let k = at + 1; k < first + size; k++) row[k]! -= error * matrix[from + k]!;
}

/** The first element that is not finite, by its index in the weight; null for none. */
export function notFinite(values: Float32Array, { shape }: CodeForm): number[] | null {
  const at = values.findIndex((x) => !Number.isFinite(x));
  if (at === -1) return null;
  return shape.map((size, axis) => Math.floor(at / shape.slice(axis + 1).reduce((a, b) => a * b, 1)) % size);
}

/**
 * A weight's codes.
 *
 * @param values row-major, of one repetition; all finite.
 * @param clips whether scales are those of least squared error, rather than those that reach the largest weights.
 * @param compensation by which weights make up for the errors of those before them; without it, each is rounded by itself.
 */
export function codesOf(
  values: Float32Array,
  form: CodeForm,
  clips: boolean,
  compensation?: Compensation,
): WeightCodes {
  const { bits, channels, depth, groups } = form;
  const rows = inRows(values, form);
  const most = largestCode(form);
  const size = depth / groups;
  const codes = bits === 8 ? new Int8Array(rows.length) : new Uint8Array(rows.length / 2);
  const scales = new Float32Array(channels * groups);
  for (let channel = 0; channel < channels; channel++) {
    const row = rows.subarray(channel * depth, (channel + 1) * depth);
    let scale = 0;
    for (let i = 0; i < depth; i++) {
      if (i % size === 0) {
        scale = scaleOf(row.subarray(i, i + size), form, clips);
        scales[channel * groups + i / size] = scale;
      }
      const code = codeOf(row[i]!, scale, most);
      const at = channel * depth + i;
      if (bits === 8) codes[at] = code;
      else codes[byteOf(at)]! |= (code + 8) << (at % 32 < 16 ? 0 : 4);
      if (compensation) makeUpFor(row[i]! - code * scale, i, row, compensation);
    }
  }
  return { codes, scales: form.hasBlocks ? (narrow(scales, 'bfloat16') as Uint16Array) : scales };
}

/** The byte that has a code of 4 bits: blocks of 32 have 16 bytes, the first half of their codes in the lower bits. */
const byteOf = (at: number): number => Math.floor(at / 32) * 16 + (at % 16);
