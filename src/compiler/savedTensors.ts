/**
 * @file Tensors that tfjs saves for gradients. It copies each by an operation of its own, so that the gradient survives its
 * disposal; in a trace nothing is disposed, and a third of all operations would be such copies. It also records the copy of a
 * result before the operation that made it, and gradients of gradients then find no way back from the copy: those of exp,
 * tanh, sigmoid, softmax and others that save their result would be wrong.
 */
import * as tf from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

/** What of tfjs's engine copies tensors. */
interface Copier {
  readonly state: { readonly tensorInfo: WeakMap<object, { readonly backend: tf.KernelBackend }> };
  clone(x: tf.Tensor): tf.Tensor;
  makeTensorFromTensorInfo(info: tf.TensorInfo): tf.Tensor;
  runKernel(name: string, inputs: { readonly x: tf.Tensor }, attrs: object): tf.Tensor;
  addTapeNode(
    name: string,
    inputs: { readonly x: tf.Tensor },
    outputs: readonly tf.Tensor[],
    gradient: (dy: tf.Tensor) => { readonly x: () => tf.Tensor },
    saved: readonly tf.Tensor[],
    attrs: object,
  ): void;
}

/** Has tfjs's engine write down copies of a result behind the operation that gave it. */
function keepTapeInOrder(): void {
  const engine = tf.engine() as unknown as TapeKeeper;
  const original = engine.addTapeNode.bind(engine);
  engine.addTapeNode = (name, inputs, outputs, ...rest) => {
    original(name, inputs, outputs, ...rest);
    const tape = engine.state.activeTape;
    const node = tape.pop()!;
    let at = tape.length;
    while (at > 0 && Object.values(tape[at - 1]!.inputs).some((input) => outputs.includes(input))) at--;
    tape.splice(at, 0, node);
  };
}

/** Has gradients that are asked for within a gradient, or that fail, leave the tape as it was. */
function restoreTape(): void {
  const engine = tf.engine() as unknown as TapeKeeper;
  const original = engine.gradients.bind(engine);
  engine.gradients = (...args) => {
    const { state } = engine;
    const tape = state.activeTape;
    try {
      return original(...args);
    } catch (error) {
      if (state.gradientDepth === 0 && state.activeTape !== tape)
        for (const { saved } of state.activeTape ?? []) for (const tensor of saved ?? []) tensor.dispose();
      throw error;
    } finally {
      state.activeTape = tape;
    }
  };
}

keepTapeInOrder();
restoreTape();

/** Has tfjs's engine copy tensors, while it traces, by another name for the same data. Called once. */
export function saveWithoutOperations(isTracing: () => boolean): void {
  const engine = tf.engine() as unknown as Copier;
  const original = engine.clone.bind(engine);
  engine.clone = (x) => {
    if (!isTracing()) return original(x);
    const { dataId, shape, dtype } = x;
    // The copy goes away with the tape, and x may be the caller's.
    engine.state.tensorInfo.get(dataId)?.backend.incRef(dataId);
    const copy = engine.makeTensorFromTensorInfo({ dataId, shape, dtype });
    // Gradients of gradients go through what is saved.
    const gradient = (dy: tf.Tensor) => ({
      x: () => engine.runKernel('Cast', { x: dy }, { dtype: 'float32' }),
    });
    engine.addTapeNode('saved', { x }, [copy], gradient, [], {});
    return copy;
  };
}
