/**
 * @file Bodies of loops and branches: functions traced apart, with a tape of their own. Outer tensors that they use become
 * inputs.
 */
import { copyGraph, type Graph, newValue, type Value } from '../program/ir.js';
import { newHostArray, sizeOf, type TensorSpec } from '../program/tensors.js';
import { onTape, type TapeNode, taping } from '../tfjs/tape.js';
import type * as tf from '../tfjs/tfjs.js';
import { currentMark } from '../trace/regions.js';
import { type Recording, recordWithin } from '../trace/tracing.js';
import type { MarkedBody } from './residuals.js';

/** The outer tensors that a body uses, each with the input that stands for it. */
class Closure {
  private readonly byTensor: Map<number, Value>;
  private readonly byValue: Map<Value, Value>;
  readonly tensors: tf.Tensor[];
  readonly inputs: Value[];

  /** @param known a closure to start from; tensors and values that are older than it are outer ones. */
  constructor(
    private readonly oldest: { readonly tensor: number; readonly value: number },
    known?: Closure,
  ) {
    this.byTensor = new Map(known?.byTensor);
    this.byValue = new Map(known?.byValue);
    this.tensors = [...(known?.tensors ?? [])];
    this.inputs = [...(known?.inputs ?? [])];
  }

  extended(): Closure {
    return new Closure(this.oldest, this);
  }

  isOuter({ id }: tf.Tensor): boolean {
    return id < this.oldest.tensor;
  }

  within(info: tf.TensorInfo, value: Value): Value {
    const tensor = info as tf.Tensor;
    const known = this.byTensor.get(tensor.id);
    if (known !== undefined) return known;
    const { shape, dtype } = value;
    if (sizeOf(shape) === 0) return newValue({ shape, dtype }, { data: newHostArray(dtype, 0) });
    // tfjs follows gradients by tensors, so that even a constant is an input where a gradient may be asked for.
    if (this.isOuter(tensor) && (value.data === undefined || (dtype === 'float32' && taping.isTapeOn())))
      return this.add(tensor, value);
    if (value.data !== undefined || value.id >= this.oldest.value) return value;
    return this.byValue.get(value) ?? this.add(tensor, value);
  }

  private add(tensor: tf.Tensor, value: Value): Value {
    const input = newValue({ shape: value.shape, dtype: value.dtype });
    this.byTensor.set(tensor.id, input);
    if (!this.byValue.has(value)) this.byValue.set(value, input);
    this.tensors.push(tensor);
    this.inputs.push(input);
    return input;
  }
}

/** A traced body. */
export interface Body {
  readonly inputs: readonly tf.Tensor[];
  readonly outputs: readonly tf.Tensor[];
  /** Outer tensors that it uses. */
  readonly outer: readonly tf.Tensor[];
  /** Its gradient tape; null where no gradient was recorded. */
  readonly tape: readonly TapeNode[] | null;
  /** The recording. Inputs are its own and those that stand for `outer`. */
  recorded(outputs?: readonly tf.Tensor[]): MarkedBody;
  /** Its graph, with values of its own. */
  graph(outputs?: readonly tf.Tensor[]): Graph;
  /** A body that goes on from this one, with its tape; `f` may read all of its tensors. */
  extended(f: (input: (spec: TensorSpec) => tf.Tensor) => Pick<Body, 'inputs' | 'outputs'>): Body;
}

/** Results of the recording, before they are put together. */
interface Recorded extends Pick<Body, 'inputs' | 'outputs'> {
  readonly values: Map<tf.Tensor, Value>;
}

function record(
  f: (input: (spec: TensorSpec) => tf.Tensor) => Pick<Body, 'inputs' | 'outputs'>,
  recording: Recording,
  closure: Closure,
  tape: TapeNode[] | null,
  region = currentMark()?.region ?? null,
): Body {
  let recorded: Recorded | undefined;
  const within = (info: tf.TensorInfo, value: Value): Value => closure.within(info, value);
  recordWithin(recording, within, ({ unwrap, wrap }) =>
    onTape(tape, () => {
      const { inputs, outputs } = f(({ shape, dtype }) => wrap(newValue({ shape, dtype })));
      // Gradients follow tensors that no operation has read yet, too.
      for (const node of tape ?? [])
        for (const input of Object.values(node.inputs)) if (closure.isOuter(input)) unwrap(input);
      const values = new Map([...inputs, ...outputs].map((tensor) => [tensor, unwrap(tensor)]));
      recorded = { inputs, outputs, values };
    }),
  );
  const { inputs, outputs, values } = recorded!;
  const all = (some: readonly tf.Tensor[] = outputs): MarkedBody => ({
    ...{ ...recording, region },
    inputs: [...inputs.map((input) => values.get(input)!), ...closure.inputs],
    outputs: some.map((output) => values.get(output)!),
  });
  return {
    ...{ inputs, outputs, tape, outer: closure.tensors, recorded: all },
    graph: (some) => copyGraph(all(some)),
    extended: (f) => {
      const { nodes, marks, names } = recording;
      const copy = { nodes: [...nodes], marks: new Map(marks), names: new Map(names) };
      return record(f, copy, closure.extended(), [...(tape ?? [])], region);
    },
  };
}

/** Traces `f` on inputs of these specs as a body of the program that is being traced. */
export function traceBody(
  specs: readonly TensorSpec[],
  f: (inputs: readonly tf.Tensor[]) => readonly tf.Tensor[],
): Body {
  const oldest = {
    tensor: taping.state.nextTensorId,
    value: newValue({ shape: [], dtype: 'bool' }).id,
  };
  const call = (input: (spec: TensorSpec) => tf.Tensor): Pick<Body, 'inputs' | 'outputs'> => {
    const inputs = specs.map(input);
    return { inputs, outputs: f(inputs) };
  };
  const recording = { nodes: [], marks: new Map(), names: new Map() };
  return record(call, recording, new Closure(oldest), taping.isTapeOn() ? [] : null);
}
