/** @file Elementwise operations with broadcasting. */
import {
  addAll,
  cast,
  clip,
  eluGrad,
  expm1,
  finite,
  floorDiv,
  leakyRelu,
  log1p,
  mod,
  notEqual,
  ofFloats,
  rounding,
  rsqrt,
  same,
  select,
  square,
  squaredDifference,
  step,
} from '../onnx/arithmetic.js';
import type { Lowering } from '../onnx/builder.js';
import { type DType, type HostTensor, sameShape, sizeOf } from '../program/tensors.js';
import { broadcastShapes, foldElementwise } from './broadcasting.js';
import { CHEAP, type DeviceForm, MAP, VIEW } from './deviceForm.js';
import { elementwise } from './factors.js';
import {
  ANY,
  BOOL,
  expects,
  expectsDtypes,
  expectsOneDtype,
  FLOAT,
  INT,
  NUMBERS,
  type OperationTable,
  type PlainOperation,
  perOutputElement,
  spec,
} from './operation.js';

/** Accepted dtypes, the result's dtype where it differs, and the forms. */
interface Traits {
  readonly takes?: readonly DType[];
  readonly gives?: DType;
  readonly flops?: number;
  readonly commutes?: boolean;
  /** ONNX's operator with the same meaning, or a lowering. */
  readonly onnx: string | Lowering;
  readonly device?: DeviceForm;
}

const lowering = (onnx: string | Lowering): Lowering => (typeof onnx === 'string' ? same(onnx) : onnx);

const unary = (
  f: ((x: number) => number) | null,
  { takes = NUMBERS, gives, flops = 1, onnx, device = MAP }: Traits,
): PlainOperation => ({
  inputs: ['x'],
  infer: ([x]) => {
    expectsDtypes([x!], takes);
    return [spec(x!.shape, gives ?? x!.dtype)];
  },
  flops: perOutputElement(flops),
  ...(f && { fold: ([x]: readonly HostTensor[]) => foldElementwise([x!], gives ?? x!.dtype, f) }),
  factors: elementwise,
  onnx: lowering(onnx),
  device,
});

/** float32 only: integers would be truncated, as tfjs's kernels do with the results. */
const real = (f: ((x: number) => number) | null, { onnx, ...traits }: Traits): PlainOperation => ({
  ...unary(f, { takes: FLOAT, ...traits, onnx: ofFloats(lowering(onnx)) }),
  truncates: true,
});

/** Also accepts int32 and bool, which become float32 first, as in tfjs's kernels. */
const toReal = { takes: () => FLOAT, truncates: false } as const;

const binary = (
  f: (a: number, b: number) => number,
  { takes = NUMBERS, gives, flops = 1, commutes = false, onnx, device = MAP }: Traits,
): PlainOperation => ({
  inputs: ['a', 'b'],
  commutes,
  infer: ([a, b]) => {
    expectsOneDtype([a!, b!], takes);
    return [spec(broadcastShapes(a!.shape, b!.shape), gives ?? a!.dtype)];
  },
  flops: perOutputElement(flops),
  fold: ([a, b]) => foldElementwise([a!, b!], gives ?? a!.dtype, f),
  factors: elementwise,
  onnx: lowering(onnx),
  device,
});

const compare = (
  f: (a: number, b: number) => boolean,
  { takes = ANY, ...traits }: Omit<Traits, 'gives'>,
): PlainOperation => binary((a, b) => Number(f(a, b)), { takes, gives: 'bool', ...traits });

/** A test of float32 numbers. */
const test = (f: (x: number) => boolean, onnx: string | Lowering): PlainOperation => ({
  ...real((x) => Number(f(x)), { gives: 'bool', onnx }),
  ...toReal,
});

/** Rounds halves to even, like tfjs's Round and ONNX's. */
function roundHalfEven(x: number): number {
  const rounded = Math.round(x);
  return Math.abs(x % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** The remainder with the divisor's sign. */
function floorMod(a: number, b: number): number {
  const remainder = a % b;
  return remainder !== 0 && remainder < 0 !== b < 0 ? remainder + b : remainder;
}

/** An int32 product is exact modulo 2^32; a double product would be rounded. */
const productOf = (dtype: DType): ((a: number, b: number) => number) =>
  dtype === 'int32' ? Math.imul : (a, b) => a * b;

/** IEEE 754's pow: 1 to any power is 1, even NaN; -1 to an infinite power is 1. JavaScript returns NaN. */
const power = (a: number, b: number): number =>
  a === 1 || (a === -1 && Math.abs(b) === Number.POSITIVE_INFINITY) ? 1 : a ** b;

/** Sign as tfjs defines it: -1, 0 or 1, and NaN for NaN. */
const sign = (x: number): number => (x > 0 ? 1 : x < 0 ? -1 : x);

/** The larger or smaller number, or NaN where there is one. */
const extremum =
  (f: (a: number, b: number) => number) =>
  (a: number, b: number): number =>
    Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : f(a, b);

/** Transcendental functions count as one FLOP, as in XLA's and PyTorch's counters. */
export const elementwiseRules: OperationTable = {
  Add: binary((a, b) => a + b, { commutes: true, onnx: 'Add', device: CHEAP }),
  Sub: binary((a, b) => a - b, { onnx: 'Sub', device: CHEAP }),
  Multiply: {
    ...binary((a, b) => a * b, { commutes: true, onnx: 'Mul', device: CHEAP }),
    call: 'mul',
    fold: ([a, b]) => foldElementwise([a!, b!], a!.dtype, productOf(a!.dtype)),
  },
  RealDiv: { ...binary((a, b) => a / b, { takes: FLOAT, onnx: 'Div' }), call: 'div' },
  /** int32 even for float32 operands, as in tfjs's kernels. */
  FloorDiv: binary((a, b) => Math.floor(a / b), { gives: 'int32', onnx: floorDiv }),
  Mod: binary(floorMod, { onnx: mod }),
  Pow: binary(power, { onnx: 'Pow' }),
  Maximum: binary(extremum(Math.max), { commutes: true, onnx: 'Max', device: CHEAP }),
  Minimum: binary(extremum(Math.min), { commutes: true, onnx: 'Min', device: CHEAP }),
  SquaredDifference: binary((a, b) => (a - b) * (a - b), { flops: 2, onnx: squaredDifference }),
  Greater: compare((a, b) => a > b, { onnx: 'Greater' }),
  GreaterEqual: compare((a, b) => a >= b, { onnx: 'GreaterOrEqual' }),
  Less: compare((a, b) => a < b, { onnx: 'Less' }),
  LessEqual: compare((a, b) => a <= b, { onnx: 'LessOrEqual' }),
  Equal: compare((a, b) => a === b, { commutes: true, onnx: 'Equal' }),
  NotEqual: compare((a, b) => a !== b, { commutes: true, onnx: notEqual }),
  LogicalAnd: compare((a, b) => a !== 0 && b !== 0, { takes: BOOL, commutes: true, onnx: 'And' }),
  LogicalOr: compare((a, b) => a !== 0 || b !== 0, { takes: BOOL, commutes: true, onnx: 'Or' }),
  BitwiseAnd: binary((a, b) => a & b, { takes: INT, commutes: true, onnx: 'BitwiseAnd' }),
  LogicalNot: unary((x) => Number(x === 0), { takes: BOOL, onnx: 'Not' }),
  Neg: unary((x) => -x, { onnx: 'Neg', device: CHEAP }),
  Abs: unary(Math.abs, { onnx: 'Abs', device: CHEAP }),
  Sign: unary(sign, { onnx: 'Sign' }),
  Floor: unary(Math.floor, { takes: FLOAT, onnx: rounding('Floor') }),
  Ceil: unary(Math.ceil, { takes: FLOAT, onnx: rounding('Ceil') }),
  Round: unary(roundHalfEven, { onnx: rounding('Round') }),
  Exp: { ...real(Math.exp, { onnx: 'Exp' }), ...toReal },
  Expm1: real(Math.expm1, { flops: 2, onnx: expm1 }),
  Log: real(Math.log, { onnx: 'Log' }),
  Log1p: real(Math.log1p, { flops: 2, onnx: log1p }),
  Sqrt: real(Math.sqrt, { onnx: 'Sqrt' }),
  Rsqrt: real((x) => 1 / Math.sqrt(x), { flops: 2, onnx: rsqrt }),
  Square: {
    ...unary((x) => x * x, { onnx: square, device: CHEAP }),
    fold: ([x]) => foldElementwise([x!, x!], x!.dtype, productOf(x!.dtype)),
  },
  Reciprocal: real((x) => 1 / x, { onnx: 'Reciprocal' }),
  Sin: real(Math.sin, { onnx: 'Sin' }),
  Cos: real(Math.cos, { onnx: 'Cos' }),
  Tan: real(Math.tan, { onnx: 'Tan' }),
  Asin: real(Math.asin, { onnx: 'Asin' }),
  Acos: real(Math.acos, { onnx: 'Acos' }),
  Atan: real(Math.atan, { onnx: 'Atan' }),
  Sinh: real(Math.sinh, { onnx: 'Sinh' }),
  Cosh: real(Math.cosh, { onnx: 'Cosh' }),
  Tanh: real(Math.tanh, { onnx: 'Tanh' }),
  Asinh: real(Math.asinh, { onnx: 'Asinh' }),
  Acosh: real(Math.acosh, { onnx: 'Acosh' }),
  Atanh: real(Math.atanh, { onnx: 'Atanh' }),
  Sigmoid: real((x) => 1 / (1 + Math.exp(-x)), { flops: 3, onnx: 'Sigmoid' }),
  Softplus: real((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), { flops: 3, onnx: 'Softplus' }),
  Erf: real(null, { onnx: 'Erf' }),
  Relu: unary((x) => Math.max(x, 0), { onnx: 'Relu', device: CHEAP }),
  Relu6: unary((x) => Math.min(Math.max(x, 0), 6), { onnx: clip(() => [0, 6]) }),
  Elu: real((x) => (x >= 0 ? x : Math.expm1(x)), { flops: 2, onnx: 'Elu' }),
  IsNan: test((x) => Number.isNaN(x), 'IsNaN'),
  IsInf: test((x) => Math.abs(x) === Number.POSITIVE_INFINITY, 'IsInf'),
  IsFinite: test((x) => Number.isFinite(x), finite),
  Identity: { ...unary((x) => x, { takes: ANY, flops: 0, onnx: 'Identity', device: VIEW }), isView: true },
  LeakyRelu: {
    ...real(null, { flops: 2, onnx: leakyRelu }),
    ...toReal,
    attrs: (raw) => ({ alpha: raw.alpha ?? 0.2 }),
  },
  EluGrad: {
    inputs: ['dy', 'y'],
    infer: ([dy, y]) => {
      expectsDtypes([dy!, y!], FLOAT);
      expects(sameShape(dy!.shape, y!.shape), 'two tensors of one shape', [dy, y]);
      return [spec(dy!.shape, 'float32')];
    },
    flops: perOutputElement(3),
    factors: elementwise,
    onnx: eluGrad,
    device: MAP,
  },
  Step: { ...unary(null, { onnx: step }), attrs: (raw) => ({ alpha: raw.alpha ?? 0 }) },
  ClipByValue: {
    ...unary(null, { flops: 2, onnx: clip(({ min, max }) => [min as number, max as number]) }),
    attrs: (raw) => ({ min: raw.clipValueMin, max: raw.clipValueMax }),
  },
  Cast: {
    inputs: ['x'],
    attrs: (raw) => ({ dtype: raw.dtype }),
    infer: ([x], attrs) => {
      expects(ANY.includes(attrs.dtype as DType), 'dtype float32, int32 or bool', attrs.dtype);
      return [spec(x!.shape, attrs.dtype as DType)];
    },
    fold: ([x], attrs) => {
      const dtype = attrs.dtype as DType;
      return foldElementwise(
        [x!],
        dtype,
        dtype === 'bool' ? (v) => Number(v !== 0) : dtype === 'int32' ? Math.trunc : (v) => v,
      );
    },
    factors: elementwise,
    onnx: cast,
    device: CHEAP,
  },
  Select: {
    inputs: ['condition', 't', 'e'],
    call: 'where',
    takes: ([c, t, e]) => {
      const widest = ANY.find((dtype) => t!.dtype === dtype || e!.dtype === dtype)!;
      return [c!.dtype, widest, widest];
    },
    infer: ([c, t, e]) => {
      expects(c!.dtype === 'bool', 'a condition of dtype bool', c);
      expectsOneDtype([t!, e!]);
      return [spec([c!, t!, e!].map((x) => x.shape).reduce(broadcastShapes), t!.dtype)];
    },
    flops: perOutputElement(),
    fold: ([c, t, e]) => foldElementwise([c!, t!, e!], t!.dtype, (cond, a, b) => (cond ? a : b)),
    factors: elementwise,
    onnx: select,
    device: MAP,
  },
  AddN: {
    inputs: 'list',
    infer: (inputs) => {
      const [x] = inputs;
      expectsOneDtype(inputs, NUMBERS);
      expects(
        x !== undefined && inputs.every(({ shape }) => sameShape(shape, x.shape)),
        'tensors of one shape',
        inputs,
      );
      return [spec(x.shape, x.dtype)];
    },
    flops: (inputs, outputs) => (inputs.length - 1) * sizeOf(outputs[0]!.shape),
    factors: elementwise,
    onnx: addAll,
    device: MAP,
  },
};
