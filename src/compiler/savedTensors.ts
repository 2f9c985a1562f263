/**
 * @file What tfjs saves for gradients. It copies every such tensor by an operation of its own, so that one that is disposed
 * of stays for the gradient; in a trace nothing goes away, and a third of all operations would be such copies.
 */
import * as tf from './tfjs.js';

/** What of tfjs's engine copies tensors. */
interface Copier {
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

/** Has tfjs's engine copy tensors, while it traces, by another name for the same data. Called once. */
export function saveWithoutOperations(isTracing: () => boolean): void {
  const engine = tf.engine() as unknown as Copier;
  const original = engine.clone.bind(engine);
  engine.clone = (x) => {
    if (!isTracing()) return original(x);
    const { dataId, shape, dtype } = x;
    const copy = engine.makeTensorFromTensorInfo({ dataId, shape, dtype });
    // Gradients of gradients go through what is saved.
    const gradient = (dy: tf.Tensor) => ({
      x: () => engine.runKernel('Cast', { x: dy }, { dtype: 'float32' }),
    });
    engine.addTapeNode('saved', { x }, [copy], gradient, [], {});
    return copy;
  };
}
