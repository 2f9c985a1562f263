/** @file Precisions of products and convolutions on tfjs backends, which multiply float32: the host rounds the operands. */
import { currentPrecision, notePrecision, operandStorage, roundOperand } from '../program/precision.js';
import { kernelNames, ruleOf } from '../rules/index.js';
import * as tf from '../tfjs/tfjs.js';

const prepared = new Set<string>();

/** Makes the products of every registered backend but `except` heed the current precision. */
export function prepareBackends(except: string): void {
  for (const backendName of Object.keys(tf.engine().registryFactory)) {
    if (backendName === except || prepared.has(backendName)) continue;
    for (const kernelName of kernelNames().filter((name) => ruleOf(name).isProduct)) {
      const kernel = tf.getKernel(kernelName, backendName);
      if (kernel === undefined) continue;
      prepared.add(backendName);
      tf.unregisterKernel(kernelName, backendName);
      tf.registerKernel({ ...kernel, kernelFunc: rounding(kernel.kernelFunc) });
    }
  }
}

/** Wraps a product kernel: rounds its operands as the current precision does. */
function rounding(kernelFunc: tf.KernelFunc): tf.KernelFunc {
  return (args) => {
    notePrecision(args.attrs);
    const precision = currentPrecision();
    if (operandStorage(precision) === undefined) return kernelFunc(args);
    const backend = args.backend as tf.KernelBackend;
    const own: tf.TensorInfo[] = [];
    const operands = Object.entries(args.inputs).map(([name, input]) => {
      if (input!.dtype !== 'float32') return [name, input];
      // The cpu backend keeps some results as plain arrays.
      const values = Float32Array.from(backend.readSync(input!.dataId) as ArrayLike<number>);
      const dataId = backend.write(roundOperand(values, precision), input!.shape, 'float32');
      own.push({ ...input!, dataId });
      return [name, own.at(-1)!];
    });
    const result = kernelFunc({ ...args, inputs: Object.fromEntries(operands) });
    for (const { dataId } of own) backend.disposeData(dataId);
    return result;
  };
}
