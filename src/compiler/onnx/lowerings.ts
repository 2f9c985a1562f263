/** @file ONNX lowerings of all operations: one table, keyed by operation name. */
import type { Node } from '../ir.js';
import { precisionOf } from '../precision.js';
import { CompilerError, type DType, type Shape, sameShape, sizeOf } from '../tensors.js';
import {
  accumulate,
  argReduce,
  eluGrad,
  expm1,
  extremum,
  floorDiv,
  log1p,
  mod,
  ofFloats,
  reduce,
  reduceBool,
  rounding,
  step,
  toInt,
} from './arithmetic.js';
import { type Lowering, MICROSOFT, type OnnxBuilder } from './builder.js';
import { controlLowerings } from './controlLowerings.js';
import { indexingLowerings } from './indexingLowerings.js';
import { OnnxType } from './proto.js';
import { randomLowerings } from './randomLowerings.js';
import { shapeLowerings } from './shapes.js';

/** An ONNX operator with the same meaning. */
const same =
  (op: string, domain = ''): Lowering =>
  (_, inputs, b) => [b.emit(op, inputs, { domain })];

/** ONNX's own product, of transposed operands, with the factor behind it. */
const plainMatmul: Lowering = ({ attrs, inputs }, names, b) => {
  const transposed = names.map((name, i) => {
    if (!(i === 0 ? attrs.transposeA : attrs.transposeB)) return name;
    const axes = inputs[i]!.shape.map((_, axis) => axis);
    return b.emit('Transpose', [name], {
      attrs: { perm: [...axes.slice(0, -2), axes.at(-1)!, axes.at(-2)!] },
    });
  });
  const product = b.emit('MatMul', transposed);
  return [attrs.alpha === 1 ? product : b.emit('Mul', [product, b.scalar(attrs.alpha as number)])];
};

/** ONNX multiplies in float32; for bfloat16, the operands are rounded first. */
const operands = ({ attrs }: Node, names: readonly string[], b: OnnxBuilder): readonly string[] =>
  precisionOf(attrs) === 'bfloat16' ? names.map((name) => b.rounded(name)) : names;

const matmul: Lowering = (node, names, b) => {
  const { transposeA, transposeB, alpha } = node.attrs;
  const inputs = operands(node, names, b);
  if (!transposeA && !transposeB && alpha === 1) return [b.emit('MatMul', inputs)];
  // FusedMatMul is ONNX Runtime's, and requires float32. Integers never have a factor.
  if (b.isPortable || node.outputs[0]!.dtype !== 'float32') return plainMatmul(node, inputs, b);
  const fused = { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha as number } };
  return [b.emit('FusedMatMul', inputs, { domain: MICROSOFT, attrs: fused })];
};

/** ONNX's Gemm starts from its third operand. */
const matMulAdd: Lowering = (node, names, b) => {
  const { transposeA, transposeB, alpha } = node.attrs;
  const inputs = [...operands(node, names.slice(0, 2), b), names[2]!];
  return [
    b.emit('Gemm', inputs, {
      attrs: { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: alpha as number } },
    }),
  ];
};

/** NaN counts as the largest, above infinity; ONNX Runtime leaves its place open, so float32 is ranked in doubles. */
const topK: Lowering = ({ attrs, inputs: [x] }, [name], b) => {
  const isFloat = x!.dtype === 'float32';
  const [values, indices] = b.emitAll(
    'TopK',
    [isFloat ? ranks(b, name!) : name!, b.ints([attrs.k as number])],
    {
      attrs: { axis: -1, sorted: 1 },
      outputs: 2,
    },
  );
  const taken = isFloat ? b.emit('GatherElements', [name!, indices!], { attrs: { axis: -1 } }) : values!;
  return [taken, b.cast(indices!, OnnxType.int32)];
};

/** Doubles in the order of float32 values: for infinity one that no float32 reaches, for NaN infinity. */
function ranks(b: OnnxBuilder, x: string): string {
  const [wide, infinity, factor, large] = [
    x,
    b.scalar(Number.POSITIVE_INFINITY),
    b.scalar(10),
    b.scalar(1e38),
  ].map((each) => b.cast(each, OnnxType.double));
  const numbers = b.emit('Min', [wide!, b.emit('Mul', [large!, factor!])]);
  return b.emit('Where', [b.emit('IsNaN', [x]), infinity!, numbers]);
}

/** Layer norm is one kernel, which requires a scale: ones if there is none. */
const layerNorm: Lowering = ({ attrs, inputs: [x] }, inputs, b) => {
  const depth = x!.shape.at(-1)!;
  const scale = attrs.hasScale ? inputs[1]! : b.array([depth], new Float32Array(depth).fill(1));
  const bias = attrs.hasBias ? [inputs.at(-1)!] : [];
  return b.emitAll('LayerNormalization', [inputs[0]!, scale, ...bias], {
    attrs: { axis: -1, epsilon: { float: attrs.epsilon as number } },
    outputs: 3,
  });
};

const gelu: Lowering = ({ attrs }, [x], b) => [
  b.emit('Gelu', [x!], { attrs: { approximate: attrs.approximate ? 'tanh' : 'none' } }),
];

const squaredDifference: Lowering = (_, inputs, b) => {
  const difference = b.emit('Sub', inputs);
  return [b.emit('Mul', [difference, difference])];
};

/** A scalar condition selects by a copy. ONNX Runtime's Where makes three passes, and does not support bool. */
const select: Lowering = ({ inputs: [condition, ...choices], outputs: [out] }, [c, t, e], b) => {
  const copies = choices.every(({ shape }) => sameShape(shape, out!.shape));
  if (copies && sizeOf(condition!.shape) === 1) return [b.choose(c!, [t!, e!], out!)];
  if (out!.dtype !== 'bool') return [b.emit('Where', [c!, t!, e!])];
  return [b.emit('Or', [b.emit('And', [c!, t!]), b.emit('And', [b.emit('Not', [c!]), e!])])];
};

/** Elementwise operations with another name in ONNX. */
const RENAMED: Readonly<Record<string, string>> = {
  Add: 'Add',
  Sub: 'Sub',
  Multiply: 'Mul',
  RealDiv: 'Div',
  Pow: 'Pow',
  Maximum: 'Max',
  Minimum: 'Min',
  Greater: 'Greater',
  GreaterEqual: 'GreaterOrEqual',
  Less: 'Less',
  LessEqual: 'LessOrEqual',
  Equal: 'Equal',
  BitwiseAnd: 'BitwiseAnd',
  LogicalAnd: 'And',
  LogicalOr: 'Or',
  LogicalNot: 'Not',
  Neg: 'Neg',
  Abs: 'Abs',
  Sign: 'Sign',
  Relu: 'Relu',
  Identity: 'Identity',
};

/** float32 functions with the same name in ONNX. */
const FUNCTIONS = [
  'Exp',
  'Log',
  'Sqrt',
  'Reciprocal',
  'Sin',
  'Cos',
  'Tan',
  'Asin',
  'Acos',
  'Atan',
  'Sinh',
  'Cosh',
  'Tanh',
  'Asinh',
  'Acosh',
  'Atanh',
  'Sigmoid',
  'Softplus',
  'Erf',
  'Elu',
];

const renamed = Object.fromEntries(Object.entries(RENAMED).map(([op, onnx]) => [op, same(onnx)]));

/** Lowerings by operation. */
export const lowerings: Readonly<Record<string, Lowering>> = {
  ...renamed,
  ...Object.fromEntries(FUNCTIONS.map((op) => [op, ofFloats(same(op))])),
  ...Object.fromEntries(['Floor', 'Ceil', 'Round'].map((op) => [op, rounding(op)])),
  ...indexingLowerings,
  ...controlLowerings(writeNode),
  ...randomLowerings,
  ...shapeLowerings,
  Select: select,
  NotEqual: (_, inputs, b) => [b.emit('Not', [b.emit('Equal', inputs)])],
  SquaredDifference: squaredDifference,
  FloorDiv: floorDiv,
  Mod: mod,
  Square: (_, [x], b) => [b.emit('Mul', [x!, x!])],
  Rsqrt: ofFloats((_, [x], b) => [b.emit('Reciprocal', [b.emit('Sqrt', [x!])])]),
  Expm1: ofFloats(expm1),
  Log1p: ofFloats(log1p),
  Relu6: ({ inputs: [x] }, [name], b) => [
    b.emit('Clip', [name!, b.scalar(0, x!.dtype), b.scalar(6, x!.dtype)]),
  ],
  IsNan: ofFloats(same('IsNaN')),
  IsInf: ofFloats(same('IsInf')),
  IsFinite: ofFloats((_, [x], b) => [
    b.emit('Not', [b.emit('Or', [b.emit('IsNaN', [x!]), b.emit('IsInf', [x!])])]),
  ]),
  LeakyRelu: ofFloats(({ attrs }, [x], b) => [
    b.emit('LeakyRelu', [x!], { attrs: { alpha: { float: attrs.alpha as number } } }),
  ]),
  EluGrad: eluGrad,
  Step: step,
  ClipByValue: ({ attrs, inputs: [x] }, [name], b) => [
    b.emit('Clip', [name!, b.scalar(attrs.min as number, x!.dtype), b.scalar(attrs.max as number, x!.dtype)]),
  ],
  Cast: ({ attrs, inputs: [x] }, [name], b) => [
    x!.dtype === 'float32' && attrs.dtype === 'int32'
      ? toInt(b, name!)
      : b.cast(name!, OnnxType[attrs.dtype as DType]),
  ],
  AddN: (_, inputs, b) => [inputs.reduce((sum, x) => b.emit('Add', [sum, x]))],
  Sum: accumulate('ReduceSum'),
  Mean: (node, [x], b) =>
    reduce('ReduceMean')(node, [node.inputs[0]!.dtype === 'float32' ? x! : b.cast(x!, OnnxType.float32)], b),
  Max: extremum('ReduceMax'),
  Min: extremum('ReduceMin'),
  Prod: accumulate('ReduceProd'),
  All: reduceBool('ReduceMin'),
  Any: reduceBool('ReduceMax'),
  ArgMax: argReduce('ArgMax'),
  ArgMin: argReduce('ArgMin'),
  Softmax: ({ attrs }, [x], b) => [b.emit('Softmax', [x!], { attrs: { axis: attrs.axis as number } })],
  LogSoftmax: ({ attrs }, [x], b) => [b.emit('LogSoftmax', [x!], { attrs: { axis: attrs.axis as number } })],
  Cumsum: ({ attrs }, [x], b) => [
    b.emit('CumSum', [x!, b.word(attrs.axis as number, 'int64')], {
      attrs: { exclusive: Number(attrs.exclusive), reverse: Number(attrs.reverse) },
    }),
  ],
  TopK: topK,
  BatchMatMul: matmul,
  MatMulAdd: matMulAdd,
  LayerNorm: layerNorm,
  Gelu: gelu,
};

/** The lowering of `node`. */
function loweringOf(node: Node): Lowering {
  const lowering = lowerings[node.op];
  if (lowering === undefined) {
    throw new CompilerError(
      `The operation '${node.op}'${node.scope ? ` of layer '${node.scope}'` : ''} has no ONNX lowering. ` +
        `Shapes: ${node.inputs.map((x: { shape: Shape }) => `[${x.shape.join(',')}]`).join(', ')}, ${sizeOf(node.outputs[0]!.shape)} elements out.`,
    );
  }
  return lowering;
}

/** Writes a node and binds its outputs. */
export function writeNode(node: Node, builder: OnnxBuilder): void {
  builder.scope = node.scope;
  const outputs = loweringOf(node)(
    node,
    node.inputs.map((input) => builder.name(input)),
    builder,
  );
  node.outputs.forEach((output, i) => {
    builder.bind(output, outputs[i]!);
  });
}
