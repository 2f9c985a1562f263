/** @file The parts of tfjs's engine that keep track of tensors, which its types leave out. */
import { type Tensor, tf } from '../compiler/index.js';

/** tfjs's record of a tensor's data. */
interface TensorInfo {
  readonly backend: tf.KernelBackend;
}

/** Counts behind `tf.memory()`. */
interface Counts {
  numBytes: number;
  numTensors: number;
  numStringTensors: number;
  numDataBuffers: number;
}

interface Engine {
  readonly state: Counts & { readonly tensorInfo: WeakMap<object, TensorInfo> };
  makeVariable(initial: Tensor, trainable?: boolean, name?: string, dtype?: tf.DataType): tf.Variable;
  makeTensor(values: unknown, shape: readonly number[], dtype: string): Tensor;
  makeTensorFromDataId(dataId: object, shape: readonly number[], dtype: string): Tensor;
  incRef(tensor: Tensor, backend: tf.KernelBackend | null): void;
  disposeTensor(tensor: Tensor): void;
  readonly registeredVariables: Readonly<Record<string, tf.Variable>>;
  backendNames(): string[];
}

/** tfjs's engine. */
export const engine = (): Engine => tf.engine() as unknown as Engine;

/** A tensor whose data can be exchanged. */
type Holder = { dataId: object };

/** The backend that has the data of a tensor. */
export const backendOf = (tensor: Tensor): tf.KernelBackend | undefined =>
  engine().state.tensorInfo.get(tensor.dataId)?.backend;

/** Another tensor of the same data. */
export function aliasOf({ dataId, shape, dtype }: Tensor): Tensor {
  backendOf({ dataId } as Tensor)?.incRef(dataId);
  return engine().makeTensorFromDataId(dataId, shape, dtype);
}

/** Runs `f` without counting its new and disposed tensors in `tf.memory()`. */
export function uncounted<T>(f: () => T): T {
  const { state } = engine();
  const { numBytes, numTensors, numStringTensors, numDataBuffers } = state;
  try {
    return f();
  } finally {
    Object.assign(state, { numBytes, numTensors, numStringTensors, numDataBuffers });
  }
}

/** Runs `f` with the data of stand-ins in place of tensors' own, which are out of reach meanwhile. */
export function withData<T>(tensors: readonly Tensor[], standIns: readonly Tensor[], f: () => T): T {
  const own = tensors.map(({ dataId }) => dataId);
  const exchange = (dataIds: readonly object[]): void =>
    tensors.forEach((tensor, i) => {
      (tensor as Holder).dataId = dataIds[i]!;
    });
  exchange(standIns.map(({ dataId }) => dataId));
  try {
    return f();
  } finally {
    exchange(own);
  }
}

/** Gives `tensor` the data of a new tensor that nothing else refers to. */
export function replaceData(tensor: Tensor, fresh: Tensor, disposeOld = true): void {
  if (disposeOld) engine().disposeTensor(tensor);
  // The fresh tensor's place in tfjs's counts is now that of `tensor`; no tidy may dispose of it.
  fresh.kept = true;
  (tensor as Holder).dataId = fresh.dataId;
}
