/** @file C expressions of elementwise operations: one entry per operation, on loaded operands. */

import type { DType } from '../../program/tensors.js';
import { foldWords } from '../../random/randomWords.js';
import type { PlacedOp } from '../plan/placedOps.js';

/** Input of an expression. */
interface ExpressionContext {
  /** C expressions of the operands. */
  readonly args: readonly string[];
  /** dtypes of the operands; numbers have the result's. */
  readonly types: readonly DType[];
  readonly attrs: PlacedOp['attrs'];
  readonly result: DType;
  /** C expression of the column. */
  readonly column: string;
}

type Expression = (context: ExpressionContext) => string;

/** A number as a C constant of a dtype. Of a program, only numbers reach the C text. */
export function literal(value: number, dtype: DType): string {
  if (dtype !== 'float32') {
    const word = value | 0;
    return word === -(2 ** 31) ? '(-2147483647 - 1)' : String(word);
  }
  const x = Math.fround(value);
  if (Number.isNaN(x)) return 'NAN';
  if (!Number.isFinite(x)) return x > 0 ? 'INFINITY' : '-INFINITY';
  if (Object.is(x, -0)) return '-0.f';
  const text = String(x);
  return `${/[.e]/.test(text) ? text : `${text}.`}f`;
}

const isFloat = ({ types, result }: ExpressionContext): boolean => (types[0] ?? result) === 'float32';

/** Selects `float` for float32 operands, `integer` for others. */
const either =
  (float: (...args: string[]) => string, integer: (...args: string[]) => string): Expression =>
  (context) =>
    (isFloat(context) ? float : integer)(...context.args);

/** One text for every dtype. */
const any =
  (text: (...args: string[]) => string): Expression =>
  ({ args }) =>
    text(...args);

const call = (name: string): Expression => any((...args) => `${name}(${args.join(', ')})`);

/** Signed overflow is undefined in C but wraps in typed arrays. */
const wrapping = (operator: string): Expression =>
  either(
    (a, b) => `(${a} ${operator} ${b})`,
    (a, b) => `((int32_t)((uint32_t)${a} ${operator} (uint32_t)${b}))`,
  );

const compare = (operator: string): Expression => any((a, b) => `(${a} ${operator} ${b})`);

/** One of several lines at each element, chosen two by two. */
const alongLines =
  (choice: string): Expression =>
  ({ args: [x], attrs }) =>
    (attrs.slopes as number[])
      .map((slope, i) => {
        const at0 = literal((attrs.offsets as number[])[i]!, 'float32');
        return `(${x} * ${literal(slope, 'float32')} + ${at0})`;
      })
      .reduce((chosen, line) => `${choice}(${chosen}, ${line})`);

const number = (context: ExpressionContext, name: string): string =>
  literal(context.attrs[name] as number, context.types[0] ?? context.result);

export const EXPRESSIONS: Readonly<Record<string, Expression>> = {
  Copy: any((x) => x),
  Overwrite: any((x) => x),
  Add: wrapping('+'),
  Sub: wrapping('-'),
  Multiply: wrapping('*'),
  RealDiv: either(
    (a, b) => `(${a} / ${b})`,
    (a, b) => `lt_floordiv(${a}, ${b})`,
  ),
  FloorDiv: either(
    (a, b) => `lt_to_int(lt_floorf(${a} / ${b}))`,
    (a, b) => `lt_floordiv(${a}, ${b})`,
  ),
  Mod: either(
    (a, b) => `lt_floormodf(${a}, ${b})`,
    (a, b) => `lt_floormod(${a}, ${b})`,
  ),
  Pow: either(
    (a, b) => `lt_powf(${a}, ${b})`,
    (a, b) => `lt_ipow(${a}, ${b})`,
  ),
  Maximum: either(
    (a, b) => `lt_maxf(${a}, ${b})`,
    (a, b) => `lt_maxi(${a}, ${b})`,
  ),
  Minimum: either(
    (a, b) => `lt_minf(${a}, ${b})`,
    (a, b) => `lt_mini(${a}, ${b})`,
  ),
  SquaredDifference: either(
    (a, b) => `lt_squaref(${a} - ${b})`,
    (a, b) => `lt_squarei((int32_t)((uint32_t)${a} - (uint32_t)${b}))`,
  ),
  Greater: compare('>'),
  GreaterEqual: compare('>='),
  Less: compare('<'),
  LessEqual: compare('<='),
  Equal: compare('=='),
  NotEqual: compare('!='),
  BitwiseAnd: any((a, b) => `(${a} & ${b})`),
  LogicalAnd: any((a, b) => `((${a} != 0) & (${b} != 0))`),
  LogicalOr: any((a, b) => `((${a} != 0) | (${b} != 0))`),
  LogicalNot: any((x) => `(${x} == 0)`),
  Neg: either(
    (x) => `(-${x})`,
    (x) => `((int32_t)(0u - (uint32_t)${x}))`,
  ),
  Abs: either(
    (x) => `lt_absf(${x})`,
    (x) => `lt_absi(${x})`,
  ),
  Sign: either(
    (x) => `lt_signf(${x})`,
    (x) => `((${x} > 0) - (${x} < 0))`,
  ),
  Floor: either(
    (x) => `lt_floorf(${x})`,
    (x) => x,
  ),
  Ceil: either(
    (x) => `lt_ceilf(${x})`,
    (x) => x,
  ),
  Round: either(
    (x) => `lt_roundf(${x})`,
    (x) => x,
  ),
  Exp: call('lt_expf'),
  Expm1: call('lt_expm1f'),
  Log: call('lt_logf'),
  Log1p: call('lt_log1pf'),
  Sqrt: call('lt_sqrtf'),
  Rsqrt: any((x) => `(1.f / lt_sqrtf(${x}))`),
  Square: either(
    (x) => `lt_squaref(${x})`,
    (x) => `lt_squarei(${x})`,
  ),
  Reciprocal: any((x) => `(1.f / ${x})`),
  Sin: call('lt_sinf'),
  Cos: call('lt_cosf'),
  Tan: call('lt_tanf'),
  Asin: call('lt_asinf'),
  Acos: call('lt_acosf'),
  Atan: call('lt_atanf'),
  Sinh: call('lt_sinhf'),
  Cosh: call('lt_coshf'),
  Tanh: call('lt_tanhf'),
  Asinh: call('lt_asinhf'),
  Acosh: call('lt_acoshf'),
  Atanh: call('lt_atanhf'),
  Sigmoid: call('lt_sigmoidf'),
  Softplus: call('lt_softplusf'),
  Erf: call('lt_erff'),
  GeluGrad: any((dy, x) => `(${dy} * lt_gelu_slopef(${x}))`),
  PowerOfTwo: call('lt_power_of_twof'),
  MaxAffine: alongLines('lt_above'),
  MinAffine: alongLines('lt_below'),
  NearestInteger: ({ args: [x], attrs }) =>
    `lt_nearest_integer(${x}, ${literal(attrs.least as number, 'float32')}, ${literal(attrs.most as number, 'float32')})`,
  Relu: either(
    (x) => `lt_reluf(${x})`,
    (x) => `lt_maxi(${x}, 0)`,
  ),
  Relu6: any((x) => `lt_relu6f(${x})`),
  Elu: any((x) => `lt_eluf(${x})`),
  EluGrad: any((dy, y) => `lt_elugradf(${dy}, ${y})`),
  LeakyRelu: (context) => `lt_leakyf(${context.args[0]}, ${number(context, 'alpha')})`,
  Step: (context) => `lt_stepf(${context.args[0]}, ${number(context, 'alpha')})`,
  ClipByValue: (context) =>
    `lt_clip${isFloat(context) ? 'f' : 'i'}(${context.args[0]}, ${number(context, 'min')}, ${number(context, 'max')})`,
  IsNan: any((x) => `(${x} != ${x})`),
  IsInf: any((x) => `(lt_absf(${x}) == INFINITY)`),
  IsFinite: any((x) => `(lt_absf(${x}) < INFINITY)`),
  Select: any((c, t, e) => `(${c} ? ${t} : ${e})`),
  AddN: ({ args, result }) =>
    args.reduce((sum, x) =>
      result === 'float32' ? `(${sum} + ${x})` : `((int32_t)((uint32_t)${sum} + (uint32_t)${x}))`,
    ),
  Cast: ({ args: [x], types, result }) => {
    const from = types[0]!;
    if (result === 'bool') return `(${x} != 0)`;
    if (result === 'int32') return from === 'float32' ? `lt_to_int(${x})` : x!;
    return from === 'float32' ? x! : `((float)${x})`;
  },
  OneHot: ({ args: [index], attrs, result, column }) =>
    `(${index} == (int32_t)${column} ? ${literal(attrs.onValue as number, result)} : ${literal(attrs.offValue as number, result)})`,
  RandomUniform: ({ args: [k0, k1], attrs, column }) =>
    `lt_uniformf((uint32_t)(r * ${attrs.columns} + ${column}), (uint32_t)${k0}, (uint32_t)${k1})`,
  RandomInt: ({ args: [k0, k1], attrs, column }) =>
    `lt_random_int((uint32_t)(r * ${attrs.columns} + ${column}), (uint32_t)${k0}, (uint32_t)${k1}, ` +
    `(uint32_t)${literal(attrs.low as number, 'int32')}, ${(attrs.high as number) - (attrs.low as number)}ull)`,
  Range: ({ attrs, result, column }) => {
    const value = `${attrs.start} + (double)(r * ${attrs.columns} + ${column}) * ${attrs.step}`;
    return result === 'float32' ? `((float)(${value}))` : `((int32_t)(${value}))`;
  },
  FoldInFirst: ({ args: [k0], attrs }) => `lt_fold_first(${k0}, ${foldWords(attrs.data as number)[0]})`,
  FoldInSecond: ({ args: [k0, k1], attrs }) =>
    `lt_fold_second(${k0}, ${k1}, ${foldWords(attrs.data as number)
      .map((word) => literal(word, 'int32'))
      .join(', ')})`,
};

/** Expressions of operations that programs define. */
const foreign = new Map<string, Expression>();

/** Adds the expression of an operation that a program defines. */
export const defineExpression = (op: string, expression: Expression): void =>
  void foreign.set(op, expression);

/** The expression of an operation, if it has one. */
export const expressionOf = (op: string): Expression | undefined => EXPRESSIONS[op] ?? foreign.get(op);

/** A reduction: its initial value, its step, and the combination of two threads' results. */
export interface Reducer {
  readonly start: (dtype: DType) => string;
  readonly step: (a: string, x: string, dtype: DType) => string;
  /** The OpenMP reduction for floats; vectormath.h declares those that are not built in. */
  readonly simd: (dtype: DType) => string;
}

const byType = (float: string, integer: string) => (dtype: DType) => (dtype === 'float32' ? float : integer);

export const REDUCERS: Readonly<Record<string, Reducer>> = {
  Sum: {
    start: byType('0.f', '0'),
    step: (a, x, dtype) =>
      dtype === 'float32' ? `${a} + ${x}` : `(int32_t)((uint32_t)${a} + (uint32_t)${x})`,
    simd: () => '+',
  },
  Prod: {
    start: byType('1.f', '1'),
    step: (a, x, dtype) =>
      dtype === 'float32' ? `${a} * ${x}` : `(int32_t)((uint32_t)${a} * (uint32_t)${x})`,
    simd: () => '*',
  },
  Max: {
    start: byType('-INFINITY', '(-2147483647 - 1)'),
    step: (a, x, dtype) => `lt_max${dtype === 'float32' ? 'f' : 'i'}(${a}, ${x})`,
    simd: byType('lt_maximum', 'max'),
  },
  Min: {
    start: byType('INFINITY', '2147483647'),
    step: (a, x, dtype) => `lt_min${dtype === 'float32' ? 'f' : 'i'}(${a}, ${x})`,
    simd: byType('lt_minimum', 'min'),
  },
  All: { start: () => '1', step: (a, x) => `${a} & (${x} != 0)`, simd: () => '&' },
  Any: { start: () => '0', step: (a, x) => `${a} | (${x} != 0)`, simd: () => '|' },
};
