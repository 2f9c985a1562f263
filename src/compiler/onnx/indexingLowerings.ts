/** @file ONNX lowerings of gathers, scatters and cross-entropy: all handling of indices. */
import { type Shape, sizeOf } from '../program/tensors.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { MICROSOFT } from './builder.js';
import { OnnxType } from './proto.js';

/**
 * A segment sum as a one-hot product is parallel and fast for few segments, but its cost grows with their number; a
 * scatter's does not. On two Zen 4 cores they break even near this many segments.
 */
const ONE_HOT_SEGMENTS = 512;

const hotRows = (b: OnnxBuilder, indices: string, depth: number, off = 0, on = 1): string =>
  b.emit(
    'OneHot',
    [b.cast(indices, OnnxType.int64), b.ints([depth]), b.array([2], Float32Array.of(off, on))],
    { attrs: { axis: -1 } },
  );

/** Maps negative indices, which ONNX counts from the end, to out-of-range ones. */
const unwrapped = (b: OnnxBuilder, indices: string, count: number): string =>
  b.emit('Where', [b.emit('Less', [indices, b.scalar(0, 'int32')]), b.scalar(count, 'int32'), indices]);

/**
 * Sums rows into `data`. ONNX Runtime's ScatterND with reduction adds from several threads at once and loses sums of
 * duplicate indices; ScatterElements runs on one thread, in order.
 */
function scatterAddRows(b: OnnxBuilder, data: string, rows: string, ids: string, shape: Shape): string {
  const column = b.emit('Reshape', [
    b.cast(ids, OnnxType.int64),
    b.ints([shape[0]!, ...shape.slice(1).map(() => 1)]),
  ]);
  const indices = b.emit('Expand', [column, b.ints(shape)]);
  return b.emit('ScatterElements', [data, indices, rows], { attrs: { axis: 0, reduction: 'add' } });
}

export const segmentSum: Lowering = ({ inputs: [x], outputs: [out], attrs }, [name, ids], b) => {
  const segments = attrs.numSegments as number;
  const rows = x!.shape[0]!;
  const flatSize = sizeOf(x!.shape) / rows;
  if (segments > ONE_HOT_SEGMENTS || x!.dtype !== 'float32' || attrs.isExact) {
    const zeros = b.emit('Expand', [b.scalar(0, x!.dtype), b.ints(out!.shape)]);
    return [scatterAddRows(b, zeros, name!, ids!, x!.shape)];
  }
  const flat = x!.shape.length === 2 ? name! : b.emit('Reshape', [name!, b.ints([rows, flatSize])]);
  const sum = b.emit('FusedMatMul', [hotRows(b, ids!, segments), flat], {
    domain: MICROSOFT,
    attrs: { transA: 1 },
  });
  return [x!.shape.length === 2 ? sum : b.emit('Reshape', [sum, b.ints(out!.shape)])];
};

const column = (b: OnnxBuilder, x: string, shape: Shape): string =>
  b.emit('Reshape', [x, b.ints([...shape, 1])]);

export const crossEntropy: Lowering = ({ inputs: [logits, labels] }, [x, ids], b) => {
  const axis = logits!.shape.length - 1;
  const logProbs = b.emit('LogSoftmax', [x!], { attrs: { axis } });
  const picked = b.emit('GatherElements', [logProbs, column(b, ids!, labels!.shape)], { attrs: { axis } });
  return [b.emit('Reshape', [b.emit('Neg', [picked]), b.ints(labels!.shape)]), logProbs];
};

/** exp(logProbs) * dy, minus dy at the label: scatters one element per row instead of a one-hot matrix. */
export const crossEntropyGrad: Lowering = ({ inputs: [dy, logProbs] }, [d, lp, ids], b) => {
  const dyColumn = column(b, d!, dy!.shape);
  const scaled = b.emit('Mul', [b.emit('Exp', [lp!]), dyColumn]);
  const labels = column(b, ids!, dy!.shape);
  const attrs = { axis: logProbs!.shape.length - 1, reduction: 'add' };
  return [b.emit('ScatterElements', [scaled, labels, b.emit('Neg', [dyColumn])], { attrs })];
};

export const gather: Lowering = ({ inputs: [x, ids], attrs }, [table, indices], b) => {
  const axis = attrs.axis as number;
  const at = ids!.data ? indices! : unwrapped(b, indices!, x!.shape[axis]!);
  return [b.emit('Gather', [table!, at], { attrs: { axis } })];
};

export const oneHot: Lowering = ({ inputs, outputs, attrs }, [indices], b) => {
  // ONNX accepts no scalar indices.
  const isScalar = inputs[0]!.shape.length === 0;
  const ids = isScalar ? b.emit('Reshape', [indices!, b.ints([1])]) : indices!;
  const depth = attrs.depth as number;
  const row = hotRows(b, unwrapped(b, ids, depth), depth, attrs.offValue as number, attrs.onValue as number);
  const hot = isScalar ? b.emit('Reshape', [row, b.ints(outputs[0]!.shape)]) : row;
  return [attrs.dtype === 'float32' ? hot : b.cast(hot, OnnxType[attrs.dtype as 'int32' | 'bool'])];
};
