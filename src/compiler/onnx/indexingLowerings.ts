/** @file ONNX lowerings of gathers, scatters, cross-entropy and random bits: all handling of indices and words. */
import { foldWords, MIX_1, MIX_2 } from '../ops/randomOps.js';
import { type Shape, sizeOf } from '../tensors.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { MICROSOFT } from './builder.js';
import { OnnxType } from './proto.js';

/**
 * A segment sum as a one-hot product is parallel and fast for few segments, but its cost grows with their number; a
 * scatter's does not. On two Zen 4 cores they break even near this many segments.
 */
const ONE_HOT_SEGMENTS = 512;

const oneHot = (b: OnnxBuilder, indices: string, depth: number, off = 0, on = 1): string =>
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

const segmentSum: Lowering = ({ inputs: [x], outputs: [out], attrs }, [name, ids], b) => {
  const segments = attrs.numSegments as number;
  const rows = x!.shape[0]!;
  const flatSize = sizeOf(x!.shape) / rows;
  if (segments > ONE_HOT_SEGMENTS || x!.dtype !== 'float32' || attrs.isExact) {
    const zeros = b.emit('Expand', [b.scalar(0, x!.dtype), b.ints(out!.shape)]);
    return [scatterAddRows(b, zeros, name!, ids!, x!.shape)];
  }
  const flat = x!.shape.length === 2 ? name! : b.emit('Reshape', [name!, b.ints([rows, flatSize])]);
  const sum = b.emit('FusedMatMul', [oneHot(b, ids!, segments), flat], {
    domain: MICROSOFT,
    attrs: { transA: 1 },
  });
  return [x!.shape.length === 2 ? sum : b.emit('Reshape', [sum, b.ints(out!.shape)])];
};

const column = (b: OnnxBuilder, x: string, shape: Shape): string =>
  b.emit('Reshape', [x, b.ints([...shape, 1])]);

const crossEntropy: Lowering = ({ inputs: [logits, labels] }, [x, ids], b) => {
  const axis = logits!.shape.length - 1;
  const logProbs = b.emit('LogSoftmax', [x!], { attrs: { axis } });
  const picked = b.emit('GatherElements', [logProbs, column(b, ids!, labels!.shape)], { attrs: { axis } });
  return [b.emit('Reshape', [b.emit('Neg', [picked]), b.ints(labels!.shape)]), logProbs];
};

/** exp(logProbs) * dy, minus dy at the label: scatters one element per row instead of a one-hot matrix. */
const crossEntropyGrad: Lowering = ({ inputs: [dy, logProbs] }, [d, lp, ids], b) => {
  const dyColumn = column(b, d!, dy!.shape);
  const scaled = b.emit('Mul', [b.emit('Exp', [lp!]), dyColumn]);
  const labels = column(b, ids!, dy!.shape);
  const attrs = { axis: logProbs!.shape.length - 1, reduction: 'add' };
  return [b.emit('ScatterElements', [scaled, labels, b.emit('Neg', [dyColumn])], { attrs })];
};

/** x ^ (x >>> bits); ONNX shifts only unsigned words. */
function xorShift(b: OnnxBuilder, x: string, bits: number): string {
  const shifted = b.emit('BitShift', [b.cast(x, OnnxType.uint32), b.word(bits, 'uint32')], {
    attrs: { direction: 'RIGHT' },
  });
  return b.emit('BitwiseXor', [x, b.cast(shifted, OnnxType.int32)]);
}

/** mix32 of ops/random.ts over an int32 tensor. */
function mix32(b: OnnxBuilder, x: string): string {
  const first = b.emit('Mul', [xorShift(b, x, 16), b.scalar(MIX_1, 'int32')]);
  const second = b.emit('Mul', [xorShift(b, first, 15), b.scalar(MIX_2, 'int32')]);
  return xorShift(b, second, 16);
}

/** A word of a key, as a scalar. */
const keyWord = (b: OnnxBuilder, key: string, index: number): string =>
  b.emit('Gather', [key, b.word(index, 'int64')], { attrs: { axis: 0 } });

const randomUniform: Lowering = ({ outputs: [out] }, [key], b) => {
  const size = sizeOf(out!.shape);
  const positions = b.emit('Range', [b.scalar(0, 'int32'), b.scalar(size, 'int32'), b.scalar(1, 'int32')]);
  const first = mix32(b, b.emit('Add', [positions, keyWord(b, key!, 0)]));
  const bits = mix32(b, b.emit('BitwiseXor', [first, keyWord(b, key!, 1)]));
  const high = b.emit('BitShift', [b.cast(bits, OnnxType.uint32), b.word(8, 'uint32')], {
    attrs: { direction: 'RIGHT' },
  });
  const uniform = b.emit('Mul', [b.cast(high, OnnxType.float32), b.scalar(2 ** -24)]);
  return [b.emit('Reshape', [uniform, b.ints(out!.shape)])];
};

const foldIn: Lowering = ({ attrs }, [key], b) => {
  const [d0, d1] = foldWords(attrs.data as number);
  const k0 = mix32(b, b.emit('BitwiseXor', [keyWord(b, key!, 0), b.scalar(d0, 'int32')]));
  const sum = b.emit('Add', [b.emit('Add', [keyWord(b, key!, 1), k0]), b.scalar(d1, 'int32')]);
  const words = [k0, mix32(b, sum)].map((word) => b.emit('Reshape', [word, b.ints([1])]));
  return [b.emit('Concat', words, { attrs: { axis: 0 } })];
};

export const indexingLowerings: Readonly<Record<string, Lowering>> = {
  GatherV2: ({ inputs: [x, ids], attrs }, [table, indices], b) => {
    const axis = attrs.axis as number;
    const at = ids!.data ? indices! : unwrapped(b, indices!, x!.shape[axis]!);
    return [b.emit('Gather', [table!, at], { attrs: { axis } })];
  },
  UnsortedSegmentSum: segmentSum,
  OneHot: ({ inputs, outputs, attrs }, [indices], b) => {
    // ONNX accepts no scalar indices.
    const isScalar = inputs[0]!.shape.length === 0;
    const ids = isScalar ? b.emit('Reshape', [indices!, b.ints([1])]) : indices!;
    const depth = attrs.depth as number;
    const row = oneHot(b, unwrapped(b, ids, depth), depth, attrs.offValue as number, attrs.onValue as number);
    const hot = isScalar ? b.emit('Reshape', [row, b.ints(outputs[0]!.shape)]) : row;
    return [attrs.dtype === 'float32' ? hot : b.cast(hot, OnnxType[attrs.dtype as 'int32' | 'bool'])];
  },
  SoftmaxCrossEntropy: crossEntropy,
  SoftmaxCrossEntropyGrad: crossEntropyGrad,
  RandomUniform: randomUniform,
  FoldIn: foldIn,
};
