/** @file ONNX lowerings of operations along an axis: softmax, norms, cumulative sums, the largest elements. */
import type { Lowering, OnnxBuilder } from './builder.js';
import { OnnxType } from './proto.js';

/** Softmax, or its logarithm. */
export const softmax =
  (op: 'Softmax' | 'LogSoftmax'): Lowering =>
  ({ attrs }, [x], b) => [b.emit(op, [x!], { attrs: { axis: attrs.axis as number } })];

export const cumsum: Lowering = ({ attrs }, [x], b) => [
  b.emit('CumSum', [x!, b.word(attrs.axis as number, 'int64')], {
    attrs: { exclusive: Number(attrs.exclusive), reverse: Number(attrs.reverse) },
  }),
];

/** NaN counts as the largest, above infinity; ONNX Runtime leaves its place open, so float32 is ranked in doubles. */
export const topK: Lowering = ({ attrs, inputs: [x] }, [name], b) => {
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
export const layerNorm: Lowering = ({ attrs, inputs: [x] }, inputs, b) => {
  const depth = x!.shape.at(-1)!;
  const scale = attrs.hasScale ? inputs[1]! : b.array([depth], new Float32Array(depth).fill(1));
  const bias = attrs.hasBias ? [inputs.at(-1)!] : [];
  return b.emitAll('LayerNormalization', [inputs[0]!, scale, ...bias], {
    attrs: { axis: -1, epsilon: { float: attrs.epsilon as number } },
    outputs: 3,
  });
};
