/** @file ONNX lowerings of random words and of the numbers that they stand for, with the host's bits. */

import { sizeOf } from '../program/tensors.js';
import { ARTANH, COSINE, QUANTILE, type Series, SINE, TRUNCATED_SCALE } from '../random/distributions.js';
import { foldWords, MIX_1, MIX_2 } from '../random/randomWords.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { OnnxType } from './proto.js';

/** x ^ (x >>> bits); ONNX shifts only unsigned words. */
function xorShift(b: OnnxBuilder, x: string, bits: number): string {
  const shifted = b.emit('BitShift', [b.cast(x, OnnxType.uint32), b.word(bits, 'uint32')], {
    attrs: { direction: 'RIGHT' },
  });
  return b.emit('BitwiseXor', [x, b.cast(shifted, OnnxType.int32)]);
}

/** mix32 of randomWords.ts over an int32 tensor. */
function mix32(b: OnnxBuilder, x: string): string {
  const first = b.emit('Mul', [xorShift(b, x, 16), b.scalar(MIX_1, 'int32')]);
  const second = b.emit('Mul', [xorShift(b, first, 15), b.scalar(MIX_2, 'int32')]);
  return xorShift(b, second, 16);
}

/** A word of a key, as a scalar. */
const keyWord = (b: OnnxBuilder, key: string, index: number): string =>
  b.emit('Gather', [key, b.word(index, 'int64')], { attrs: { axis: 0 } });

/** The words at positions 0 … size - 1 of a key's stream, as uint32. */
function words(b: OnnxBuilder, key: string, size: number): string {
  const positions = b.emit('Range', [b.scalar(0, 'int32'), b.scalar(size, 'int32'), b.scalar(1, 'int32')]);
  const first = mix32(b, b.emit('Add', [positions, keyWord(b, key, 0)]));
  return b.cast(mix32(b, b.emit('BitwiseXor', [first, keyWord(b, key, 1)])), OnnxType.uint32);
}

/** The words at even and at odd positions, each [size]. */
function pairedWords(b: OnnxBuilder, key: string, size: number): string[] {
  const pairs = b.emit('Reshape', [words(b, key, 2 * size), b.ints([size, 2])]);
  return [0, 1].map((column) => b.emit('Gather', [pairs, b.word(column, 'int64')], { attrs: { axis: 1 } }));
}

const shift = (b: OnnxBuilder, words: string, bits: number): string =>
  b.emit('BitShift', [words, b.word(bits, 'uint32')], { attrs: { direction: 'RIGHT' } });

export const randomUniform: Lowering = ({ outputs: [out] }, [key], b) => {
  const high = shift(b, words(b, key!, sizeOf(out!.shape)), 8);
  const uniform = b.emit('Mul', [b.cast(high, OnnxType.float32), b.scalar(2 ** -24)]);
  return [b.emit('Reshape', [uniform, b.ints(out!.shape)])];
};

export const foldIn: Lowering = ({ attrs }, [key], b) => {
  const [d0, d1] = foldWords(attrs.data as number);
  const k0 = mix32(b, b.emit('BitwiseXor', [keyWord(b, key!, 0), b.scalar(d0, 'int32')]));
  const sum = b.emit('Add', [b.emit('Add', [keyWord(b, key!, 1), k0]), b.scalar(d1, 'int32')]);
  const words = [k0, mix32(b, sum)].map((word) => b.emit('Reshape', [word, b.ints([1])]));
  return [b.emit('Concat', words, { attrs: { axis: 0 } })];
};

export const randomInt: Lowering = ({ outputs: [out], attrs }, [key], b) => {
  const [low, high] = [attrs.low as number, attrs.high as number];
  const [first, second] = pairedWords(b, key!, sizeOf(out!.shape));
  const upper = b.emit('Mul', [b.cast(shift(b, first!, 1), OnnxType.int64), b.word(2 ** 32, 'int64')]);
  const bits = b.emit('Add', [upper, b.cast(second!, OnnxType.int64)]);
  const rest = b.emit('Mod', [bits, b.word(high - low, 'int64')]);
  const whole = b.cast(b.emit('Add', [rest, b.word(low, 'int64')]), OnnxType.int32);
  return [b.emit('Reshape', [whole, b.ints(out!.shape)])];
};

/* ---- Distributions, in doubles: the operations of distributions.ts, in their order --------------------------------- */

const calculate =
  (op: string) =>
  (b: OnnxBuilder, ...operands: readonly (string | number)[]): string =>
    b.emit(
      op,
      operands.map((x) => (typeof x === 'number' ? b.double(x) : x)),
    );
const [add, sub, mul, div] = ['Add', 'Sub', 'Mul', 'Div'].map(calculate) as [
  ReturnType<typeof calculate>,
  ReturnType<typeof calculate>,
  ReturnType<typeof calculate>,
  ReturnType<typeof calculate>,
];

const sumOf = (b: OnnxBuilder, { coefficients: [first, ...rest], divisor }: Series, z: string): string =>
  add(
    b,
    first!,
    rest.reduceRight((sum, c) => mul(b, z, add(b, c, sum)), div(b, z, divisor)),
  );

/** 2^-i at index i; those of negative i count from the end. */
const SCALES = Float64Array.from({ length: 80 }, (_, i) => 2 ** (i < 40 ? -i : 80 - i));

/**
 * The natural logarithm of x * 2^shift. ONNX Runtime's own, whose last bits nobody promises, only finds the exponent: no
 * number that a word leads to is closer than 1e-12 to where that changes.
 */
function logOf(b: OnnxBuilder, x: string, shift: number): string {
  const exponent = b.emit('Round', [mul(b, b.emit('Log', [x]), Math.LOG2E)]);
  const scale = b.emit('Gather', [b.doubles(SCALES), b.cast(exponent, OnnxType.int64)], {
    attrs: { axis: 0 },
  });
  const mantissa = mul(b, x, scale);
  const s = div(b, sub(b, mantissa, 1), add(b, mantissa, 1));
  const z = mul(b, s, s);
  const tail = mul(b, 2, add(b, s, mul(b, mul(b, s, z), sumOf(b, ARTANH, z))));
  return add(b, mul(b, shift === 0 ? exponent : add(b, exponent, shift), Math.LN2), tail);
}

const logOfWord = (b: OnnxBuilder, words: string): string =>
  logOf(b, add(b, b.cast(words, OnnxType.double), 0.5), -32);

/** The values at indices from 0 to 4. */
const choose = (b: OnnxBuilder, values: readonly number[], indices: string): string =>
  b.emit('Gather', [b.doubles(Float64Array.from(values)), indices], { attrs: { axis: 0 } });

function normal(b: OnnxBuilder, key: string, size: number): string {
  const pairs = Math.ceil(size / 2);
  const [lengths, angles] = pairedWords(b, key, pairs);
  const radius = b.emit('Sqrt', [mul(b, -2, logOfWord(b, lengths!))]);
  const turns = b.cast(
    shift(b, b.emit('Add', [shift(b, angles!, 29), b.word(1, 'uint32')]), 1),
    OnnxType.int32,
  );
  const whole = b.emit('Mul', [turns, b.scalar(2 ** 30, 'int32')]);
  const rest = b.emit('Sub', [b.cast(angles!, OnnxType.int32), whole]);
  const x = mul(b, (2 * Math.PI) / 2 ** 32, b.cast(rest, OnnxType.double));
  const z = mul(b, x, x);
  const [sine, cosine] = [mul(b, x, sumOf(b, SINE, z)), sumOf(b, COSINE, z)];
  const isTurned = b.cast(b.emit('BitwiseAnd', [turns, b.scalar(1, 'int32')]), OnnxType.bool);
  const columns = [
    [b.emit('Where', [isTurned, sine, cosine]), [1, -1, -1, 1, 1]] as const,
    [b.emit('Where', [isTurned, cosine, sine]), [1, 1, -1, -1, 1]] as const,
  ].map(([wave, signs]) => {
    const signed = mul(b, choose(b, signs, turns), mul(b, radius, wave));
    return b.emit('Reshape', [b.cast(signed, OnnxType.float32), b.ints([pairs, 1])]);
  });
  const both = b.emit('Reshape', [b.emit('Concat', columns, { attrs: { axis: 1 } }), b.ints([2 * pairs])]);
  return size === 2 * pairs ? both : b.emit('Slice', [both, b.ints([0]), b.ints([size])]);
}

const horner = (b: OnnxBuilder, coefficients: readonly number[], x: string): string =>
  coefficients
    .slice(0, -1)
    .reduceRight<string | number>((sum, c) => add(b, c, mul(b, x, sum)), coefficients.at(-1)!) as string;

function truncatedNormal(b: OnnxBuilder, key: string, size: number): string {
  const signed = b.cast(words(b, key, size), OnnxType.int32);
  const size31 = b.cast(b.emit('BitwiseAnd', [signed, b.scalar(2 ** 31 - 1, 'int32')]), OnnxType.double);
  const x = mul(b, TRUNCATED_SCALE, add(b, size31, 0.5));
  const y = mul(b, x, x);
  const quantile = div(b, mul(b, x, horner(b, QUANTILE.above, y)), horner(b, QUANTILE.below, y));
  const isNegative = b.emit('Less', [signed, b.scalar(0, 'int32')]);
  const result = b.emit('Where', [isNegative, b.emit('Neg', [quantile]), quantile]);
  return b.cast(result, OnnxType.float32);
}

function gumbel(b: OnnxBuilder, key: string, size: number): string {
  const exponential = b.emit('Neg', [logOfWord(b, words(b, key, size))]);
  return b.cast(b.emit('Neg', [logOf(b, exponential, 0)]), OnnxType.float32);
}

/** float32 numbers of a distribution. */
const ofKey =
  (values: (b: OnnxBuilder, key: string, size: number) => string): Lowering =>
  ({ outputs: [out] }, [key], b) => [
    b.emit('Reshape', [values(b, key!, sizeOf(out!.shape)), b.ints(out!.shape)]),
  ];

export const randomNormal = ofKey(normal);
export const randomTruncated = ofKey(truncatedNormal);
export const randomGumbel = ofKey(gumbel);
