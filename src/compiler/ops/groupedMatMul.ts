/** @file Products of groups of rows by a matrix each, as experts multiply the tokens that are routed to them. */
import { currentPrecision, precisionAttr } from '../program/precision.js';
import { CompilerError, formatSpec, type TensorSpec } from '../program/tensors.js';
import type { CallForm, Shaped } from '../rules/deviceForm.js';
import { lettered } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, INT, type RawAttrs, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { recordOp } from '../trace/tracing.js';
import { callComposite } from './composite.js';

/** Whether each row is in each group, bool [E, R, 1]. Rows behind the last group are in none. */
function members(rows: number, sizes: tf.Tensor): tf.Tensor {
  const ends = tf.reshape(tf.cumsum(tf.maximum(sizes, tf.scalar(0, 'int32'))), [-1, 1, 1]);
  const begins = tf.sub(ends, tf.reshape(tf.maximum(sizes, tf.scalar(0, 'int32')), [-1, 1, 1]));
  const row = tf.reshape(tf.range(0, rows, 1, 'int32'), [1, rows, 1]);
  return tf.logicalAnd(tf.greaterEqual(row, begins), tf.less(row, ends));
}

/** x for each group, [E, R, K], 0 in the rows of others. */
const inGroups = (x: tf.Tensor, isMember: tf.Tensor): tf.Tensor =>
  tf.where(isMember, tf.expandDims(x, 0), tf.scalar(0));

const common = {
  kind: 'call',
  inRows: 2,
  contiguousInts: true,
  usesWorkspace: true,
  part: 'product',
} as const satisfies Partial<CallForm>;

/** Of as many rows by one matrix: all of them may be in groups. */
const work = ([x, w]: Shaped, k: number, n: number): number => 2 * x!.shape[0]! * w!.shape[k]! * w!.shape[n]!;

const attrsOf = (raw: RawAttrs) => ({ transposeB: raw.transposeB === true, ...precisionAttr(raw) });

function checkShapes([x, w, sizes]: readonly TensorSpec[], transposeB: boolean): void {
  const [groups, inner] = [w!.shape[0], w!.shape[transposeB ? 2 : 1]];
  expects(
    x!.shape.length === 2 && w!.shape.length === 3 && x!.shape[1] === inner,
    `rows [R, K] and a matrix ${transposeB ? '[E, N, K]' : '[E, K, N]'} for each group`,
    [x, w],
  );
  expects(sizes!.shape.length === 1 && sizes!.shape[0] === groups, `${groups} sizes of groups`, sizes);
  expectsDtypes([x!, w!], FLOAT);
  expectsDtypes([sizes!], INT);
}

defineOperation('GroupedMatMul', {
  inputs: ['x', 'w', 'sizes'],
  isProduct: true,
  attrs: attrsOf,
  infer: (inputs, { transposeB }) => {
    checkShapes(inputs, transposeB as boolean);
    const [x, w] = inputs;
    return [spec([x!.shape[0]!, w!.shape[transposeB ? 1 : 2]!], 'float32')];
  },
  factors: (inputs, outputs, { transposeB }) =>
    lettered(['.k', transposeB ? '.nk' : '.kn', '.'], ['.n'], { inputs, outputs }),
  flops: (inputs) => work(inputs, 1, 2),
  device: {
    ...common,
    name: 'groupedMatMul',
    writesRows: true,
    rounds: { operands: 2, results: 1 },
    work: (inputs) => work(inputs, 1, 2),
  },
  decompose: ([x, w, sizes], { transposeB }) => {
    const isMember = members(x!.shape[0]!, sizes!);
    const products = tf.matMul(inGroups(x!, isMember), w!, false, transposeB as boolean);
    return [tf.sum(tf.where(isMember, products, tf.scalar(0)), 0)];
  },
  gradient: (dy, [x, w, sizes], _, attrs) => {
    const { transposeB } = attrs;
    const [rows, columns] = transposeB ? [dy, x!] : [x!, dy];
    return [
      recordOp('GroupedMatMul', [dy, w!, sizes!], { ...attrs, transposeB: !transposeB })[0]!,
      recordOp('GroupedMatMulGrad', [rows, columns, sizes!], attrs)[0]!,
    ];
  },
});

/** The gradient by the matrices: for each group, the product xᵀ dy of its rows, [E, K, N]; 0 for an empty group. */
defineOperation('GroupedMatMulGrad', {
  inputs: ['x', 'dy', 'sizes'],
  isProduct: true,
  attrs: precisionAttr,
  infer: ([x, dy, sizes]) => {
    const fits = x!.shape.length === 2 && dy!.shape.length === 2 && x!.shape[0] === dy!.shape[0];
    expects(fits && sizes!.shape.length === 1, 'as many rows of each, and the sizes of groups', [
      x,
      dy,
      sizes,
    ]);
    return [spec([sizes!.shape[0]!, x!.shape[1]!, dy!.shape[1]!], 'float32')];
  },
  factors: (inputs, outputs) => lettered(['.k', '.n', '.'], ['.kn'], { inputs, outputs }),
  flops: ([x, dy]) => 2 * x!.shape[0]! * x!.shape[1]! * dy!.shape[1]!,
  device: {
    ...common,
    name: 'groupedMatMulGrad',
    rounds: { operands: 2, results: 0 },
    work: ([x, dy]) => 2 * x!.shape[0]! * x!.shape[1]! * dy!.shape[1]!,
  },
  decompose: ([x, dy, sizes]) => {
    const isMember = members(x!.shape[0]!, sizes!);
    return [tf.matMul(inGroups(x!, isMember), inGroups(dy!, isMember), true, false)];
  },
});

/**
 * Rows of group e times matrix e: the first sizes[0] rows by w[0], the next sizes[1] by w[1], and so on. The native engine
 * multiplies each row once, whatever the sizes; others multiply all rows by each matrix, and choose.
 *
 * @param x float32 [R, K].
 * @param w float32 [E, K, N].
 * @param sizes int32 [E]; rows behind the last group give 0, and a sum over R counts as R.
 * @returns float32 [R, N].
 */
export function groupedMatMul(x: tf.Tensor, w: tf.Tensor, sizes: tf.Tensor): tf.Tensor {
  const inputs = [x, w, sizes] as unknown as TensorSpec[];
  const isFit =
    x.rank === 2 &&
    w.rank === 3 &&
    sizes.rank === 1 &&
    x.shape[1] === w.shape[1] &&
    sizes.shape[0] === w.shape[0];
  if (!isFit || sizes.dtype !== 'int32')
    throw new CompilerError(
      'groupedMatMul: expected rows [R, K], a matrix for each group [E, K, N] and int32 sizes [E], got ' +
        `${inputs.slice(0, 2).map(formatSpec).join(', ')} and ${formatSpec(inputs[2]!)}.`,
    );
  return callComposite(
    'GroupedMatMul',
    [x, w, sizes],
    { transposeB: false, precision: currentPrecision() },
    2,
  );
}
