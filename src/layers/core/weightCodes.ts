/** @file Codes and scales of a weight's values, on the host. */
import { narrow, widen } from '../../compiler/index.js';
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

/** The sum of the squared errors of a group, each counted `importance` times. */
function errorOf(
  group: Float32Array,
  scale: number,
  most: number,
  importance: Float32Array | undefined,
): number {
  let sum = 0;
  for (let i = 0; i < group.length; i++) {
    const code = Math.max(-most, Math.min(most, nearest(group[i]! / scale)));
    const error = group[i]! - code * scale;
    sum += error * error * (importance?.[i] ?? 1);
  }
  return sum;
}

/** A group's scale: that of its largest weight, or with `clips` the one of least error among smaller ones. */
function scaleOf(
  group: Float32Array,
  form: CodeForm,
  clips: boolean,
  importance: Float32Array | undefined,
): number {
  const most = largestCode(form);
  const isNarrow = form.hasBlocks;
  const largest = group.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
  const whole = roundedScale(largest / most, isNarrow);
  if (!clips || whole === 0) return whole;
  let [best, least] = [whole, Number.POSITIVE_INFINITY];
  for (const factor of FACTORS) {
    const scale = roundedScale((largest / most) * factor, isNarrow);
    if (scale === 0) continue;
    const error = errorOf(group, scale, most, importance);
    if (error < least) [best, least] = [scale, error];
  }
  return best;
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
 * @param importance of the weights of an output, [depth]: mean squares of the inputs that they are multiplied by.
 */
export function codesOf(
  values: Float32Array,
  form: CodeForm,
  clips: boolean,
  importance?: Float32Array,
): WeightCodes {
  const { bits, channels, depth, groups } = form;
  const rows = inRows(values, form);
  const most = largestCode(form);
  const size = depth / groups;
  const codes = bits === 8 ? new Int8Array(rows.length) : new Uint8Array(rows.length / 2);
  const scales = new Float32Array(channels * groups);
  for (let i = 0; i < scales.length; i++) {
    const group = rows.subarray(i * size, (i + 1) * size);
    const from = (i % groups) * size;
    const scale = scaleOf(group, form, clips, importance?.subarray(from, from + size));
    scales[i] = scale;
    for (let j = 0; j < size; j++) {
      const code = scale === 0 ? 0 : Math.max(-most, Math.min(most, nearest(group[j]! / scale)));
      if (bits === 8) codes[i * size + j] = code;
      else codes[byteOf(i * size + j)]! |= (code + 8) << (j % 32 < 16 ? 0 : 4);
    }
  }
  return { codes, scales: form.hasBlocks ? (narrow(scales, 'bfloat16') as Uint16Array) : scales };
}

/** The byte that has a code of 4 bits: blocks of 32 have 16 bytes, the first half of their codes in the lower bits. */
const byteOf = (at: number): number => Math.floor(at / 32) * 16 + (at % 16);
