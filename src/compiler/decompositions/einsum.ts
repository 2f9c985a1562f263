/** @file Einstein sums as one matrix product between transposes. */

import { sizeOf } from '../program/tensors.js';
import { expects } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { type DecompositionTable, differentiate } from './decomposition.js';

/** A tensor with a label for each axis. */
interface Labeled {
  readonly x: tf.Tensor;
  readonly labels: readonly string[];
}

/** Sums over the axes whose labels are not kept. */
function summed({ x, labels }: Labeled, isKept: (label: string) => boolean): Labeled {
  const axes = labels.flatMap((label, axis) => (isKept(label) ? [] : [axis]));
  return axes.length === 0 ? { x, labels } : { x: tf.sum(x, axes), labels: labels.filter(isKept) };
}

/** The axes in the order of other labels. */
const ordered = ({ x, labels }: Labeled, order: readonly string[]): tf.Tensor =>
  tf.transpose(
    x,
    order.map((label) => labels.indexOf(label)),
  );

/** The product of two, over the labels that both have and the result has not. */
function product(a: Labeled, b: Labeled, result: ReadonlySet<string>): Labeled {
  const shared = a.labels.filter((label) => b.labels.includes(label));
  const [batch, contracted] = [
    shared.filter((label) => result.has(label)),
    shared.filter((label) => !result.has(label)),
  ];
  const [left, right] = [a, b].map(({ labels }) => labels.filter((label) => !shared.includes(label)));
  const sizes = new Map(
    [a, b].flatMap(({ x, labels }) => labels.map((label, axis) => [label, x.shape[axis]!])),
  );
  const size = (labels: readonly string[]): number => sizeOf(labels.map((label) => sizes.get(label)!));
  const rows = tf.reshape(ordered(a, [...batch, ...left!, ...contracted]), [
    size(batch),
    size(left!),
    size(contracted),
  ]);
  const columns = tf.reshape(ordered(b, [...batch, ...contracted, ...right!]), [
    size(batch),
    size(contracted),
    size(right!),
  ]);
  // A sum of one term is a product.
  const made = contracted.length === 0 ? tf.mul(rows, columns) : tf.matMul(rows, columns);
  const labels = [...batch, ...left!, ...right!];
  return {
    x: tf.reshape(
      made,
      labels.map((label) => sizes.get(label)!),
    ),
    labels,
  };
}

function einsum(xs: readonly tf.Tensor[], equation: string): tf.Tensor {
  const { allDims, summedDims, idDims } = tf.backend_util.decodeEinsumEquation(equation, xs.length);
  tf.backend_util.checkEinsumDimSizes(allDims.length, idDims, [...xs]);
  const result = allDims.slice(0, allDims.length - summedDims.length);
  const written = equation.replaceAll(/\s/g, '').split('->')[1]!.length;
  expects(written === result.length, 'labels of the result that differ', equation);
  const dtype = xs.map((x) => x.dtype).reduce((a, b) => tf.upcastType(a, b));
  const operands = xs.map(
    (x, i): Labeled => ({
      x: tf.cast(x, dtype),
      labels: idDims[i]!.map((dim) => allDims[dim]!),
    }),
  );
  const needed = (i: number) => (label: string) =>
    result.includes(label) || operands.some(({ labels }, k) => k !== i && labels.includes(label));
  const [a, b] = operands.map((operand, i) => summed(operand, needed(i)));
  return ordered(b === undefined ? a! : product(a!, b, new Set(result)), result);
}

const decompose = (
  inputs: Readonly<Record<string, tf.Tensor>>,
  { equation }: { equation?: string },
): tf.Tensor => einsum(Object.values(inputs), equation!);

export const einsumDecompositions: DecompositionTable = { Einsum: decompose };

differentiate('Einsum', decompose, 'list');
