/**
 * @file ONNX lowerings of arithmetic and reductions, exact for NaN, zeros, casts and integers as the guide specifies.
 */
import { type Attrs, ints, type Node, type Value } from '../program/ir.js';
import { type DType, sameShape, sizeOf } from '../program/tensors.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { OnnxType } from './proto.js';

/** An ONNX operator with the same meaning. */
export const same =
  (op: string): Lowering =>
  (_, inputs, b) => [b.emit(op, inputs)];

/** A reduction over given axes. ONNX takes an empty list for all axes. */
const reduce =
  (op: string): Lowering =>
  ({ attrs }, [x], b) => [
    b.emit(op, [x!, b.ints(ints(attrs.axes))], {
      attrs: { keepdims: Number(attrs.keepDims), noop_with_empty_axes: 1 },
    }),
  ];

/** ONNX Runtime's int32 sums and products saturate; those of int64 are correct modulo 2^32. */
export const accumulate =
  (op: string): Lowering =>
  (node, [x], b) =>
    node.inputs[0]!.dtype === 'float32'
      ? reduce(op)(node, [x!], b)
      : [b.cast(reduce(op)(node, [b.cast(x!, OnnxType.int64)], b)[0]!, OnnxType[node.outputs[0]!.dtype])];

export const mean: Lowering = (node, [x], b) =>
  reduce('ReduceMean')(node, [node.inputs[0]!.dtype === 'float32' ? x! : b.cast(x!, OnnxType.float32)], b);

/** any = max and all = min over 0 and 1. */
export const reduceBool =
  (op: string): Lowering =>
  (node, [x], b) => [b.cast(reduce(op)(node, [b.cast(x!, OnnxType.int32)], b)[0]!, OnnxType.bool)];

/** Returns the index of the first NaN if there is one. */
export const argReduce =
  (op: string): Lowering =>
  ({ attrs, inputs: [input] }, [x], b) => {
    const options = { attrs: { axis: attrs.axis as number, keepdims: 0 } };
    const place = b.emit(op, [x!], options);
    if (input!.dtype !== 'float32') return [b.cast(place, OnnxType.int32)];
    const wrong = b.cast(b.emit('IsNaN', [x!]), OnnxType.float32);
    const first = b.emit('ArgMax', [wrong], options);
    const count = b.emit('ReduceMax', [wrong, b.ints([attrs.axis as number])], { attrs: { keepdims: 0 } });
    const found = b.emit('Greater', [count, b.scalar(0)]);
    return [b.cast(b.emit('Where', [found, first, place]), OnnxType.int32)];
  };

/**
 * Casts float32 to int32, modulo 2^32 as typed arrays do; 0 for NaN and infinities. C leaves casts that overflow
 * undefined, so this one goes through int64, which keeps the low bits of large numbers as 0.
 */
function toInt(b: OnnxBuilder, x: string): string {
  const fits = b.emit('Less', [b.emit('Abs', [x]), b.scalar(2 ** 63)]);
  const whole = b.cast(b.emit('Where', [fits, x, b.scalar(0)]), OnnxType.int64);
  // Two consecutive casts would be merged.
  return b.cast(b.emit('BitwiseAnd', [whole, b.word(2 ** 32 - 1, 'int64')]), OnnxType.int32);
}

/** The divisor with 0 and -1 replaced by 1: the CPU traps on undefined quotients, and all remainders by 1 are 0. */
function safeDivisor(b: OnnxBuilder, { data }: Value, divisor: string): string {
  if (data?.every((x) => x !== 0 && x !== -1)) return divisor;
  const [zero, minusOne] = [0, -1].map((x) => b.emit('Equal', [divisor, b.scalar(x, 'int32')]));
  return b.emit('Where', [b.emit('Or', [zero!, minusOne!]), b.scalar(1, 'int32'), divisor]);
}

/** Floor division; ONNX's integer Div truncates, so the remainder is subtracted first. 0 for divisor 0. */
export const floorDiv: Lowering = ({ inputs: [x, y] }, [a, b], builder) => {
  if (x!.dtype === 'float32') return [toInt(builder, builder.emit('Floor', [builder.emit('Div', [a!, b!])]))];
  const divisor = safeDivisor(builder, y!, b!);
  const remainder = builder.emit('Mod', [a!, divisor]);
  const quotient = builder.emit('Div', [builder.emit('Sub', [a!, remainder]), divisor]);
  if (divisor === b) return [quotient];
  // Where the divisor was replaced, the quotient is a: multiply by 0 or -1.
  const replaced = builder.emit('Not', [builder.emit('Equal', [divisor, b!])]);
  const factor = builder.emit('Where', [replaced, b!, builder.scalar(1, 'int32')]);
  return [builder.emit('Mul', [quotient, factor])];
};

/** tfjs's Mod has the divisor's sign, like Python's. So has ONNX's integer Mod, but not its float form. */
export const mod: Lowering = ({ inputs: [, y], outputs: [out] }, [a, b], builder) => {
  if (out!.dtype !== 'float32') return [builder.emit('Mod', [a!, safeDivisor(builder, y!, b!)])];
  const zero = builder.scalar(0);
  const remainder = builder.emit('Mod', [a!, b!], { attrs: { fmod: 1 } });
  const signs = [remainder, b!].map((x) => builder.emit('Less', [x, zero]));
  const wrong = builder.emit('And', [
    builder.emit('Xor', signs),
    builder.emit('Not', [builder.emit('Equal', [remainder, zero])]),
  ]);
  return [builder.emit('Where', [wrong, builder.emit('Add', [remainder, b!]), remainder])];
};

/** exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), which avoids cancellation near 0. */
export const expm1: Lowering = (_, [x], b) => [
  b.emit('Mul', [
    b.emit('Tanh', [b.emit('Mul', [x!, b.scalar(0.5)])]),
    b.emit('Add', [b.emit('Exp', [x!]), b.scalar(1)]),
  ]),
];

/** log(u) * x / (u - 1) with u = 1 + x rounded: the rounding errors of u cancel (Higham 2002, section 1.14.1). */
export const log1p: Lowering = (_, [x], b) => {
  const one = b.scalar(1);
  const u = b.emit('Add', [x!, one]);
  const log = b.emit('Log', [u]);
  const exact = b.emit('Mul', [log, b.emit('Div', [x!, b.emit('Sub', [u, one])])]);
  const small = b.emit('Where', [b.emit('Equal', [u, one]), x!, exact]);
  return [b.emit('Where', [b.emit('IsInf', [u]), log, small])];
};

/** 1 above 0, else alpha; NaN for NaN, as in tfjs. */
export const step: Lowering = ({ attrs, inputs: [input] }, [x], b) => {
  const { dtype } = input!;
  const value = b.emit('Where', [
    b.emit('Greater', [x!, b.scalar(0, dtype)]),
    b.scalar(1, dtype),
    b.scalar(attrs.alpha as number, dtype),
  ]);
  return [dtype === 'float32' ? b.emit('Where', [b.emit('IsNaN', [x!]), x!, value]) : value];
};

/** Functions of float32: casts integers before, and back after where the result is an integer. */
export const ofFloats =
  (lowering: Lowering): Lowering =>
  (node, names, b) => {
    const operands = names.map((name, i) =>
      node.inputs[i]!.dtype === 'float32' ? name : b.cast(name, OnnxType.float32),
    );
    const results = lowering(node, operands, b);
    return node.outputs[0]!.dtype === 'int32' ? results.map((x) => toInt(b, x)) : results;
  };

/** Rounding; integers stay as they are. */
export const rounding =
  (op: string): Lowering =>
  ({ inputs: [x] }, inputs, b) => [b.emit(x!.dtype === 'float32' ? op : 'Identity', inputs)];

/** Whether any element along the axes is NaN, as 1 or 0 of float32. */
const anyNaN = (node: Node, x: string, b: OnnxBuilder): string =>
  reduce('ReduceMax')(node, [b.cast(b.emit('IsNaN', [x]), OnnxType.float32)], b)[0]!;

/** ONNX Runtime's reductions may skip NaN; these propagate it. */
export const extremum =
  (op: string): Lowering =>
  (node, [x], b) => {
    const [value] = reduce(op)(node, [x!], b);
    if (node.inputs[0]!.dtype !== 'float32') return [value!];
    const found = b.emit('Greater', [anyNaN(node, x!, b), b.scalar(0)]);
    return [b.emit('Where', [found, b.scalar(Number.NaN), value!])];
  };

/** The gradient of elu from its result y: dy where y >= 0, else dy * (y + 1). */
export const eluGrad: Lowering = (_, [dy, y], b) => {
  const slope = b.emit('Min', [b.emit('Add', [y!, b.scalar(1)]), b.scalar(1)]);
  return [b.emit('Mul', [dy!, slope])];
};

export const notEqual: Lowering = (_, inputs, b) => [b.emit('Not', [b.emit('Equal', inputs)])];

export const square: Lowering = (_, [x], b) => [b.emit('Mul', [x!, x!])];

export const squaredDifference: Lowering = (_, inputs, b) => {
  const difference = b.emit('Sub', inputs);
  return [b.emit('Mul', [difference, difference])];
};

export const rsqrt: Lowering = (_, [x], b) => [b.emit('Reciprocal', [b.emit('Sqrt', [x!])])];

export const finite: Lowering = (_, [x], b) => [
  b.emit('Not', [b.emit('Or', [b.emit('IsNaN', [x!]), b.emit('IsInf', [x!])])]),
];

export const leakyRelu: Lowering = ({ attrs }, [x], b) => [
  b.emit('LeakyRelu', [x!], { attrs: { alpha: { float: attrs.alpha as number } } }),
];

/** Clips to these bounds. */
export const clip =
  (bounds: (attrs: Attrs) => readonly [number, number]): Lowering =>
  ({ attrs, inputs: [x] }, [name], b) => [
    b.emit('Clip', [name!, ...bounds(attrs).map((bound) => b.scalar(bound, x!.dtype))]),
  ];

export const cast: Lowering = ({ attrs, inputs: [x] }, [name], b) => [
  x!.dtype === 'float32' && attrs.dtype === 'int32'
    ? toInt(b, name!)
    : b.cast(name!, OnnxType[attrs.dtype as DType]),
];

export const addAll: Lowering = (_, inputs, b) => [inputs.reduce((sum, x) => b.emit('Add', [sum, x]))];

export const gelu: Lowering = ({ attrs }, [x], b) => [
  b.emit('Gelu', [x!], { attrs: { approximate: attrs.approximate ? 'tanh' : 'none' } }),
];

/** A scalar condition selects by a copy. ONNX Runtime's Where makes three passes, and does not support bool. */
export const select: Lowering = ({ inputs: [condition, ...choices], outputs: [out] }, [c, t, e], b) => {
  const copies = choices.every(({ shape }) => sameShape(shape, out!.shape));
  if (copies && sizeOf(condition!.shape) === 1) return [b.choose(c!, [t!, e!], out!)];
  if (out!.dtype !== 'bool') return [b.emit('Where', [c!, t!, e!])];
  return [b.emit('Or', [b.emit('And', [c!, t!]), b.emit('And', [b.emit('Not', [c!]), e!])])];
};
