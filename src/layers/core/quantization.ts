/** @file Weights of layers in few bits: the fields that choose them, their form in memory, and their values (praxis/layers/quantization). */
import { z } from 'zod';
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { Configurable, sub } from '../../hparams/index.js';

/** How weights are rounded (Pax's WeightQuantizationParams). */
export class WeightQuantization extends Configurable.with({
  precision: z
    .union([z.literal(8), z.literal(4)])
    .default(8)
    .describe('Bits of a weight.'),
  blockSize: z
    .int()
    .nonnegative()
    .multipleOf(ops.CODE_BLOCK)
    .default(0)
    .describe(
      'Weights of an output with one scale, a multiple of 32 that divides them, whose scales are bfloat16; 0: all, with a scale in float32.',
    ),
}) {}

/** How factors of weights are rounded (Pax's ActQuantizationParams). */
export class ActQuantization extends Configurable.with({
  precision: z.literal(8).default(8).describe('Bits of a factor.'),
  blockSize: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Factors of a row with one scale, a divisor of its length; 0: those of a group of weights.'),
}) {}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text) !== null;
  } catch {
    return false;
  }
}

/** Weights in few bits, of a layer and those below it (Pax's QuantizationParams). */
export class Quantization extends Configurable.with({
  quantizationType: z
    .enum(['PTQ', 'FQ'])
    .default('PTQ')
    .describe(
      "Whether training rounds weights ('FQ', with the gradient of those that are not rounded) or only what follows it ('PTQ').",
    ),
  mode: z
    .enum(['training', 'materialize', 'inference'])
    .default('training')
    .describe(
      "Whether variables are the weights, as training has them; these, and passes round them as inference does ('materialize'); or codes and scales, which nothing trains ('inference').",
    ),
  weightParams: sub(WeightQuantization)
    .nullable()
    .describe('How weights are rounded; null, outside of inference: not, of use where `actParams` is given.'),
  actParams: sub(ActQuantization, null)
    .nullable()
    .default(null)
    .describe(
      'How rows that weights multiply are rounded, in the groups of these, where passes round weights or read codes; null, and of convolutions: not.',
    ),
  skip: z
    .array(z.string().refine(isPattern, 'expected a regular expression'))
    .default([])
    .describe('Patterns of variables that stay as they are, by their whole paths.'),
}) {}

/** How a weight is held in codes: for each output a row of codes of the weights that its sum is over. */
export interface CodeForm {
  readonly bits: ops.CodeBits;
  /** The weight's shape, without axes of repetition, and its axes: of the outputs, then of the sum. */
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  /** Outputs, weights of each, and scales of each. */
  readonly channels: number;
  readonly depth: number;
  readonly groups: number;
  /** Whether groups are blocks of a chosen size, whose scales memory holds in bfloat16. */
  readonly hasBlocks: boolean;
  /** Shapes of the variables that hold it. */
  readonly codesShape: readonly number[];
  readonly scaleShape: readonly number[];
}

/** A weight's variable of scales, beside the one of codes that has the weight's name. */
export const scaleName = (name: string): string => `${name}_quantized_scale`;

/**
 * The form of a weight.
 *
 * @param contracting axes that its product sums over.
 * @returns a reason in place of the form where its groups do not fit.
 */
export function codeForm(
  shape: readonly number[],
  contracting: readonly number[],
  { precision, blockSize }: WeightQuantization['hp'],
): CodeForm | string {
  const outputs = shape.flatMap((_, axis) => (contracting.includes(axis) ? [] : axis));
  const sizes = (axes: readonly number[]): number[] => axes.map((axis) => shape[axis]!);
  const [channels, depth] = [sizeOf(sizes(outputs)), sizeOf(sizes(contracting))];
  if (blockSize > 0 && depth % blockSize !== 0)
    return `blockSize ${blockSize} does not divide the ${depth} weights of an output`;
  if (precision === 4 && depth % ops.CODE_BLOCK !== 0)
    return `4 bits need a multiple of ${ops.CODE_BLOCK} weights in an output, which has ${depth}`;
  const hasBlocks = blockSize > 0;
  const groups = hasBlocks ? depth / blockSize : 1;
  return {
    bits: precision,
    shape,
    axes: [...outputs, ...contracting],
    ...{ channels, depth, groups, hasBlocks },
    codesShape: [...sizes(outputs), (depth * precision) / 8],
    scaleShape: [...sizes(outputs), ...(hasBlocks ? [groups] : [])],
  };
}

/** The order of axes that undoes `axes`. */
const inverse = (axes: readonly number[]): number[] => axes.map((_, axis) => axes.indexOf(axis));

/** The weight that codes and scales hold. */
export function weightOf(codes: Tensor, scales: Tensor, form: CodeForm): Tensor {
  const { bits, channels, depth, groups, shape, axes } = form;
  const rows = ops.dequantize(
    tf.reshape(codes, [channels, (depth * bits) / 8]),
    tf.reshape(scales, [channels, groups]),
    bits,
  );
  const apart = tf.reshape(
    rows,
    axes.map((axis) => shape[axis]!),
  );
  return tf.transpose(apart, inverse(axes));
}

/** Codes are symmetric: from -n to n. */
export const largestCode = ({ bits }: CodeForm): number => 2 ** (bits - 1) - 1;

/**
 * What a weight multiplies, rounded row by row, with the gradient of rows that are not.
 *
 * @param axes of x that the product sums over, in the order of the weight's.
 */
export function roundedFactors(
  x: Tensor,
  axes: readonly number[],
  { depth, groups: ofWeights }: CodeForm,
  { precision, blockSize }: ActQuantization['hp'],
): Tensor {
  const groups = blockSize > 0 ? depth / blockSize : ofWeights;
  const order = [...x.shape.keys()].filter((axis) => !axes.includes(axis)).concat(axes);
  const last = tf.transpose(x, order);
  const rows = tf.reshape(last, [...last.shape.slice(0, x.rank - axes.length), depth]);
  const rounded = tf.reshape(ops.roundRows(rows, precision, groups), last.shape);
  return tf.transpose(rounded, inverse(order));
}

/** A weight rounded to codes times scales that reach its largest elements, in float32; with the gradient of the weight itself. */
export function roundedWeight(weight: Tensor, form: CodeForm): Tensor {
  const { channels, depth, groups, shape, axes } = form;
  const most = largestCode(form);
  const rows = tf.reshape(tf.transpose(weight, [...axes]), [channels, groups, depth / groups]);
  const scales = tf.div(tf.max(tf.abs(rows), 2, true), most);
  const codes = tf.round(tf.div(rows, tf.where(tf.greater(scales, 0), scales, tf.onesLike(scales))));
  const values = tf.reshape(
    tf.mul(codes, scales),
    axes.map((axis) => shape[axis]!),
  );
  const rounded = tf.transpose(values, inverse(axes));
  return tf.add(weight, ops.stopGradient(tf.sub(rounded, weight) as Tensor));
}
