/**
 * @file Tensors that tfjs saves for gradients. tfjs copies each by an operation, so that the gradient survives its
 * disposal; a trace disposes of nothing, and such copies would be a third of all operations. tfjs also records the copy
 * of a result before the operation behind it, so that gradients of gradients lose the path back: those of exp, tanh,
 * sigmoid, softmax and others that save their result would be wrong.
 */
import * as tf from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

/** The part of tfjs's engine that copies tensors. */
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

/** Makes tfjs's engine record copies of a result after the operation behind it. */
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

/** Restores the tape after nested and failed gradients. */
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

/** Makes tfjs's engine copy tensors while tracing by aliasing their data. Called once. */
export function saveWithoutOperations(isTracing: () => boolean): void {
  const engine = tf.engine() as unknown as Copier;
  const original = engine.clone.bind(engine);
  engine.clone = (x) => {
    if (!isTracing()) return original(x);
    const { dataId, shape, dtype } = x;
    // The tape disposes of the copy, while x may belong to the caller.
    engine.state.tensorInfo.get(dataId)?.backend.incRef(dataId);
    const copy = engine.makeTensorFromTensorInfo({ dataId, shape, dtype });
    // Gradients of gradients pass through saved tensors.
    const gradient = (dy: tf.Tensor) => ({
      x: () => engine.runKernel('Cast', { x: dy }, { dtype: dtype === 'complex64' ? dtype : 'float32' }),
    });
    engine.addTapeNode('saved', { x }, [copy], gradient, [], {});
    return copy;
  };
}
