/** @file Weights of 8 and 4 bits with scales, and products by them. */
import type { Attrs } from '../program/ir.js';
import { CompilerError, formatSpec, sizeOf, type TensorSpec } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, INT, type RawAttrs, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';
import { stopGradient } from './stopGradient.js';

/** Bits of a code. */
export type CodeBits = 8 | 4;

/**
 * Codes of 4 bits that 16 bytes hold, code + 8 in each half: byte i has code i in the lower bits, and code i + 16 in the upper
 * ones, as in GGML's Q4_0. Groups are whole blocks.
 */
export const CODE_BLOCK = 32;

const bitsOf = ({ bits }: Attrs): CodeBits => bits as CodeBits;

/** Weights in a row of codes. */
const depthOf = (codes: { readonly shape: readonly number[] }, bits: CodeBits): number =>
  codes.shape[1]! * (8 / bits);

/** Requires codes [C, D], or [C, D / 2] of 4 bits, and scales [C, G] of equal groups. */
function checkWeights(codes: TensorSpec, scales: TensorSpec, bits: CodeBits): void {
  const [channels, groups = 0] = scales.shape;
  const depth = codes.shape.length === 2 ? depthOf(codes, bits) : -1;
  const group = depth / groups;
  const isWhole = (bits === 8 && groups === 1) || group % CODE_BLOCK === 0;
  expects(
    codes.shape.length === 2 && scales.shape.length === 2 && channels === codes.shape[0] && isWhole,
    `codes of ${bits} bits [C, ${bits === 4 ? 'D / 2' : 'D'}], and scales [C, G] of equal groups, of whole blocks of ${CODE_BLOCK}`,
    [codes, scales],
  );
  expectsDtypes([codes], INT);
  expectsDtypes([scales], FLOAT);
}

/** Codes as float32 [C, D]. */
function unpacked(codes: tf.Tensor, bits: CodeBits): tf.Tensor {
  if (bits === 8) return tf.cast(codes, 'float32');
  const [channels, bytes] = codes.shape as [number, number];
  const half = CODE_BLOCK / 2;
  const blocks = tf.reshape(codes, [channels, bytes / half, 1, half]);
  const lower = tf.mod(blocks, tf.scalar(half, 'int32'));
  const upper = tf.floorDiv(blocks, tf.scalar(half, 'int32'));
  const all = tf.reshape(tf.concat([lower, upper], 2), [channels, 2 * bytes]);
  return tf.sub(tf.cast(all, 'float32'), half / 2);
}

/** Weights [C, D]: codes times the scales of their groups. */
function weightsOf(codes: tf.Tensor, scales: tf.Tensor, bits: CodeBits): tf.Tensor {
  const floats = unpacked(codes, bits);
  const [channels, groups] = scales.shape as [number, number];
  if (groups === 1) return tf.mul(floats, scales);
  const grouped = tf.reshape(floats, [channels, groups, -1]);
  return tf.reshape(tf.mul(grouped, tf.expandDims(scales, 2)), floats.shape);
}

defineOperation('Dequantize', {
  inputs: ['codes', 'scales'],
  attrs: ({ bits }: RawAttrs) => ({ bits }),
  infer: ([codes, scales], attrs) => {
    checkWeights(codes!, scales!, bitsOf(attrs));
    return [spec([codes!.shape[0]!, depthOf(codes!, bitsOf(attrs))], 'float32')];
  },
  flops: ([codes], _, attrs) => codes!.shape[0]! * depthOf(codes!, bitsOf(attrs)),
  decompose: ([codes, scales], attrs) => [weightsOf(codes!, scales!, bitsOf(attrs))],
});

/** Bits that rows are rounded to. */
export type RowBits = 8;

/** Where no element of a group reaches this, all are 0: its inverse and 127 times it are finite. */
const LEAST = 2 ** -100;

/** Rows [..., D], each group of which is whole numbers from -127 to 127 times a scale that reaches its largest element. */
function rounded(x: tf.Tensor, groups: number): tf.Tensor {
  const grouped = tf.reshape(x, [...x.shape.slice(0, -1), groups, x.shape.at(-1)! / groups]);
  const largest = tf.max(tf.abs(grouped), -1, true);
  const isSmall = tf.less(largest, LEAST);
  const codes = tf.round(tf.mul(grouped, tf.div(127, tf.where(isSmall, tf.onesLike(largest), largest))));
  const scales = tf.div(largest, 127);
  return tf.reshape(tf.where(isSmall, tf.zerosLike(grouped), tf.mul(codes, scales)), x.shape);
}

defineOperation('RoundRows', {
  inputs: ['x'],
  attrs: ({ bits, groups }: RawAttrs) => ({ bits, groups }),
  infer: ([x], { groups }) => {
    const size = x!.shape.at(-1) ?? 0;
    expects(
      x!.shape.length > 0 && size % (groups as number) === 0,
      `rows [..., D] of ${groups} equal groups`,
      x,
    );
    expectsDtypes([x!], FLOAT);
    return [spec(x!.shape, 'float32')];
  },
  flops: ([x]) => 3 * sizeOf(x!.shape),
  // The gradient is that of rows that are not rounded.
  decompose: ([x], { groups }) => [tf.add(x!, stopGradient(tf.sub(rounded(x!, groups as number), x!)))],
});

/**
 * Rows [M, D] times the weights of the channels from `first` on, transposed: [M, N]. With `rowBits`, rows are rounded as
 * `RoundRows` does it, in the groups of the scales.
 */
defineOperation('QuantizedMatMul', {
  inputs: ['x', 'codes', 'scales'],
  attrs: ({ bits, first, channels, rowBits }: RawAttrs) => ({
    ...{ bits, first, channels },
    ...(rowBits !== undefined && { rowBits }),
  }),
  infer: ([x, codes, scales], attrs) => {
    checkWeights(codes!, scales!, bitsOf(attrs));
    const depth = depthOf(codes!, bitsOf(attrs));
    expects(x!.shape.length === 2 && x!.shape[1] === depth, `rows [M, ${depth}]`, x);
    expectsDtypes([x!], FLOAT);
    return [spec([x!.shape[0]!, attrs.channels as number], 'float32')];
  },
  flops: ([x], _, { channels }) => 2 * x!.shape[0]! * x!.shape[1]! * (channels as number),
  device: {
    kind: 'call',
    name: 'quantizedMatMul',
    inRows: 1,
    contiguous: [1, 2],
    codes: 1,
    narrowOperands: 3,
    writesRows: true,
    part: 'product',
    work: ([x], { channels }) => 2 * x!.shape[0]! * x!.shape[1]! * (channels as number),
  },
  decompose: ([x, codes, scales], { bits, first, channels, rowBits }) => {
    const rows = (all: tf.Tensor): tf.Tensor =>
      tf.slice(all, [first as number, 0], [channels as number, all.shape[1]!]);
    const factors = rowBits === undefined ? x! : roundRows(x!, rowBits as RowBits, scales!.shape[1]!);
    return [tf.matMul(factors, weightsOf(rows(codes!), rows(scales!), bits as CodeBits), false, true)];
  },
});

/**
 * Weights of few bits as float32. Products by them, of whole channels, and lookups of channels read the codes themselves, where
 * the engine has a form of that. Gradients go to none of the operands.
 *
 * @param codes int32 [C, D] from -128 to 127; of 4 bits [C, D / 2] from 0 to 255, in blocks of {@link CODE_BLOCK}.
 * @param scales float32 [C, G], a factor for each of the G equal groups of a channel; of several, or of 4 bits, each is a
 *   multiple of CODE_BLOCK.
 * @returns float32 [C, D].
 */
export function dequantize(codes: tf.Tensor, scales: tf.Tensor, bits: CodeBits): tf.Tensor {
  const inputs = [codes, scales] as unknown as TensorSpec[];
  try {
    checkWeights(inputs[0]!, inputs[1]!, bits);
  } catch {
    throw new CompilerError(
      `dequantize: expected codes [C, D] and scales [C, G] of equal groups, of whole blocks of ${CODE_BLOCK}, got ` +
        `${inputs.map(formatSpec).join(' and ')} for ${bits} bits.`,
    );
  }
  return callComposite('Dequantize', [codes, scales], { bits }, 0);
}

/**
 * Rows rounded to few bits: each group of a row becomes whole numbers from -127 to 127, halves to even ones, times a scale that
 * reaches its largest element. Of a group whose elements are all below 2^-100, 0; with one that is not finite, NaN. The gradient is
 * that of `x` itself. Products of such rows with weights of as many groups, by `dequantize`, are sums of integers, where the engine
 * has a form of that: the same numbers, to the rounding of float32.
 *
 * @param x float32 [..., D]. @param groups divides D.
 * @returns float32 [..., D].
 */
export function roundRows(x: tf.Tensor, bits: RowBits, groups: number): tf.Tensor {
  if (x.rank === 0 || !Number.isInteger(x.shape.at(-1)! / groups))
    throw new CompilerError(
      `roundRows: expected rows [..., D] of ${groups} equal groups, got ${formatSpec(x as unknown as TensorSpec)}.`,
    );
  return callComposite('RoundRows', [x], { bits, groups });
}
