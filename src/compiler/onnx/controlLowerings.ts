/** @file ONNX lowerings of loops and choices, whose bodies read the values around them by name, and of narrow memory. */
import type { Graph } from '../program/ir.js';
import { NARROW, type TensorSpec } from '../program/tensors.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { OnnxType, type OnnxTypeName } from './proto.js';

/**
 * The type of a model's input or output. ONNX Runtime's binding for Node has no arrays of bfloat16: sessions convert
 * them on the host.
 */
export const onnxTypeOf = ({ dtype, storage }: TensorSpec): OnnxTypeName =>
  storage === undefined || storage === 'bfloat16' ? dtype : storage;

export const load: Lowering = ({ inputs: [input] }, [x], b) => [b.cast(x!, OnnxType[input!.dtype])];

/** Rounds floats to nearest even, as the host does; Cast takes integers modulo 256, which are bounded before. */
export const store: Lowering = ({ outputs: [output] }, [x], b) => {
  const type = onnxTypeOf(output!);
  if (type !== 'int8' && type !== 'uint8') return [b.cast(x!, OnnxType[type])];
  const { dtype, range } = NARROW[type];
  const [least, most] = range;
  const bounded = b.emit('Min', [b.emit('Max', [x!, b.scalar(least, dtype)]), b.scalar(most, dtype)]);
  return [b.cast(bounded, OnnxType[type])];
};

const bindAll = (body: Graph, first: number, names: readonly string[], b: OnnxBuilder): void =>
  names.forEach((name, i) => {
    b.bind(body.inputs[first + i]!, name);
  });

export const scan: Lowering = ({ attrs, bodies, outputs }, names, b) => {
  const [body] = bodies as [Graph];
  const { carries, xs, length } = attrs as { carries: number; xs: number; length: number };
  const own = carries + xs;
  bindAll(body, own, names.slice(own), b);
  const written = b.body(body, body.inputs.slice(0, own));
  // ONNX has no loop without slices.
  const counted = xs > 0 ? [] : [b.array([length], new Int32Array(length))];
  const turn = { name: `${counted[0]}_turn`, type: 'int32', shape: [] } as const;
  const graph = xs > 0 ? written : { ...written, inputs: [...written.inputs, turn] };
  const direction = Number(attrs.reverse);
  return b.emitAll('Scan', [...names.slice(0, own), ...counted], {
    outputs: outputs.length,
    attrs: {
      body: { graph },
      num_scan_inputs: xs + counted.length,
      scan_input_directions: new Array<number>(xs + counted.length).fill(direction),
      scan_output_directions: new Array<number>(outputs.length - carries).fill(direction),
    },
  });
};

export const cond: Lowering = ({ bodies, outputs }, [predicate, ...names], b) => {
  const [onTrue, onFalse] = bodies!.map((body) => {
    bindAll(body, 0, names, b);
    return { graph: b.body(body, []) };
  });
  const attrs = { then_branch: onTrue!, else_branch: onFalse! };
  return b.emitAll('If', [predicate!], { outputs: outputs.length, attrs });
};
