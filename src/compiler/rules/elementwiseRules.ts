/** @file Rules of elementwise operations with broadcasting. */
import { type DType, type HostTensor, newHostArray, type Shape, sameShape, sizeOf } from '../tensors.js';
import {
  ANY,
  BOOL,
  expects,
  expectsDtypes,
  expectsOneDtype,
  FLOAT,
  INT,
  Misfit,
  NUMBERS,
  type OpRule,
  perOutputElement,
  type RuleTable,
  spec,
} from './rule.js';

/** Broadcasts two shapes by NumPy's rule. @throws Misfit where they do not broadcast. */
export function broadcastShapes(a: Shape, b: Shape): number[] {
  if (sameShape(a, b)) return [...a];
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const da = a[i - rank + a.length] ?? 1;
    const db = b[i - rank + b.length] ?? 1;
    if (da !== db && da !== 1 && db !== 1) {
      throw new Misfit(
        `expected shapes that broadcast, got [${a.join(',')}] and [${b.join(',')}], of ${da} and ${db} in dimension ${i}`,
      );
    }
    return da === 1 ? db : da;
  });
}

/** Row-major element strides for reading `from` as `to`; 0 along broadcast dimensions. */
export function broadcastStrides(from: Shape, to: Shape): number[] {
  const strides = new Array<number>(to.length).fill(0);
  let stride = 1;
  for (let i = from.length - 1; i >= 0; i--) {
    if (from[i] !== 1) strides[i + to.length - from.length] = stride;
    stride *= from[i]!;
  }
  return strides;
}

/** Calls `visit(flat index, offsets into each operand)` for every element of `shape`. */
export function forEachElement(
  shape: Shape,
  strides: readonly (readonly number[])[],
  visit: (index: number, offsets: readonly number[]) => void,
): void {
  const size = sizeOf(shape);
  const position = new Array<number>(shape.length).fill(0);
  const offsets = new Array<number>(strides.length).fill(0);
  for (let index = 0; index < size; index++) {
    visit(index, offsets);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const next = position[axis]! + 1;
      const wrapped = next === shape[axis];
      position[axis] = wrapped ? 0 : next;
      for (let k = 0; k < offsets.length; k++) {
        const stride = strides[k]![axis]!;
        offsets[k]! += wrapped ? -stride * (shape[axis]! - 1) : stride;
      }
      if (!wrapped) break;
    }
  }
}

function foldElementwise(
  inputs: readonly HostTensor[],
  dtype: DType,
  f: (...xs: number[]) => number,
): HostTensor {
  const shape = inputs.map((x) => x.shape).reduce(broadcastShapes);
  const data = newHostArray(dtype, sizeOf(shape));
  const strides = inputs.map((x) => broadcastStrides(x.shape, shape));
  forEachElement(shape, strides, (index, offsets) => {
    data[index] = f(...inputs.map((x, k) => x.data[offsets[k]!]!));
  });
  return { shape, dtype, data };
}

/** Accepted dtypes, and the result's dtype where it differs. */
interface Types {
  readonly takes?: readonly DType[];
  readonly gives?: DType;
  readonly flops?: number;
  readonly commutes?: boolean;
}

const unary = (
  f: ((x: number) => number) | null,
  { takes = NUMBERS, gives, flops = 1 }: Types = {},
): OpRule => ({
  inputs: ['x'],
  infer: ([x]) => {
    expectsDtypes([x!], takes);
    return [spec(x!.shape, gives ?? x!.dtype)];
  },
  flops: perOutputElement(flops),
  ...(f && { fold: ([x]: readonly HostTensor[]) => foldElementwise([x!], gives ?? x!.dtype, f) }),
});

/** float32 only: integers would be truncated. */
const real = (f: ((x: number) => number) | null, flops = 1): OpRule => unary(f, { takes: FLOAT, flops });

/** Also accepts int32 and bool, which become float32 first, as in tfjs's kernels. */
const toReal = { takes: () => FLOAT } as const;

const binary = (
  f: (a: number, b: number) => number,
  { takes = NUMBERS, gives, flops = 1, commutes = false }: Types = {},
): OpRule => ({
  inputs: ['a', 'b'],
  commutes,
  infer: ([a, b]) => {
    expectsOneDtype([a!, b!], takes);
    return [spec(broadcastShapes(a!.shape, b!.shape), gives ?? a!.dtype)];
  },
  flops: perOutputElement(flops),
  fold: ([a, b]) => foldElementwise([a!, b!], gives ?? a!.dtype, f),
});

const compare = (f: (a: number, b: number) => boolean, { takes = ANY, commutes = false } = {}): OpRule =>
  binary((a, b) => Number(f(a, b)), { takes, gives: 'bool', commutes });

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

/** Transcendental functions count as one FLOP, as in XLA's and PyTorch's counters. */
export const elementwiseRules: RuleTable = {
  Add: binary((a, b) => a + b, { commutes: true }),
  Sub: binary((a, b) => a - b),
  Multiply: {
    ...binary((a, b) => a * b, { commutes: true }),
    fold: ([a, b]) => foldElementwise([a!, b!], a!.dtype, productOf(a!.dtype)),
  },
  RealDiv: binary((a, b) => a / b, { takes: FLOAT }),
  /** int32 even for float32 operands, as in tfjs's kernels. */
  FloorDiv: binary((a, b) => Math.floor(a / b), { gives: 'int32' }),
  Mod: binary(floorMod),
  Pow: binary(power),
  Maximum: binary((a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : Math.max(a, b)), {
    commutes: true,
  }),
  Minimum: binary((a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : Math.min(a, b)), {
    commutes: true,
  }),
  SquaredDifference: binary((a, b) => (a - b) * (a - b), { flops: 2 }),
  Greater: compare((a, b) => a > b),
  GreaterEqual: compare((a, b) => a >= b),
  Less: compare((a, b) => a < b),
  LessEqual: compare((a, b) => a <= b),
  Equal: compare((a, b) => a === b, { commutes: true }),
  NotEqual: compare((a, b) => a !== b, { commutes: true }),
  LogicalAnd: compare((a, b) => a !== 0 && b !== 0, { takes: BOOL, commutes: true }),
  LogicalOr: compare((a, b) => a !== 0 || b !== 0, { takes: BOOL, commutes: true }),
  BitwiseAnd: binary((a, b) => a & b, { takes: INT, commutes: true }),
  LogicalNot: unary((x) => Number(x === 0), { takes: BOOL }),
  Neg: unary((x) => -x),
  Abs: unary(Math.abs),
  Sign: unary(sign),
  Floor: real(Math.floor),
  Ceil: real(Math.ceil),
  Round: unary(roundHalfEven),
  Exp: { ...real(Math.exp), ...toReal },
  Expm1: real(Math.expm1, 2),
  Log: real(Math.log),
  Log1p: real(Math.log1p, 2),
  Sqrt: real(Math.sqrt),
  Rsqrt: real((x) => 1 / Math.sqrt(x), 2),
  Square: {
    ...unary((x) => x * x),
    fold: ([x]) => foldElementwise([x!, x!], x!.dtype, productOf(x!.dtype)),
  },
  Reciprocal: real((x) => 1 / x),
  Sin: real(Math.sin),
  Cos: real(Math.cos),
  Tan: real(Math.tan),
  Asin: real(Math.asin),
  Acos: real(Math.acos),
  Atan: real(Math.atan),
  Sinh: real(Math.sinh),
  Cosh: real(Math.cosh),
  Tanh: real(Math.tanh),
  Asinh: real(Math.asinh),
  Acosh: real(Math.acosh),
  Atanh: real(Math.atanh),
  Sigmoid: real((x) => 1 / (1 + Math.exp(-x)), 3),
  Softplus: real((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), 3),
  Erf: real(null),
  Relu: unary((x) => Math.max(x, 0)),
  Relu6: unary((x) => Math.min(Math.max(x, 0), 6)),
  Elu: real((x) => (x >= 0 ? x : Math.expm1(x)), 2),
  IsNan: { ...unary((x) => Number(Number.isNaN(x)), { takes: FLOAT, gives: 'bool' }), ...toReal },
  IsInf: {
    ...unary((x) => Number(Math.abs(x) === Number.POSITIVE_INFINITY), { takes: FLOAT, gives: 'bool' }),
    ...toReal,
  },
  IsFinite: { ...unary((x) => Number(Number.isFinite(x)), { takes: FLOAT, gives: 'bool' }), ...toReal },
  Identity: unary((x) => x, { takes: ANY, flops: 0 }),
  LeakyRelu: {
    ...real(null, 2),
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
  },
  Step: { ...unary(null), attrs: (raw) => ({ alpha: raw.alpha ?? 0 }) },
  ClipByValue: {
    ...unary(null, { flops: 2 }),
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
  },
  Select: {
    inputs: ['condition', 't', 'e'],
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
  },
};
