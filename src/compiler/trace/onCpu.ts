/** @file Kernels that tfjs's cpu backend runs while a program is traced, on values that the trace knows. */
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import type { TraceBackend } from './traceBackend.js';

/** Inputs of a kernel by tfjs: some inputs are lists of tensors, and images of the browser are no tensors. */
type Input = tf.TensorInfo | readonly tf.TensorInfo[] | null | undefined;

/** A kernel's call; results of the cpu backend become constants of what is recorded next. */
interface CpuCall {
  readonly kernel: tf.KernelFunc;
  readonly inputs: tf.NamedTensorInfoMap;
  readonly attrs: RawAttrs;
  readonly trace: TraceBackend;
  /** Called for an input that the trace does not know. */
  readonly unknown: (info: tf.TensorInfo) => Error;
}

const isTensor = (input: Input): input is tf.TensorInfo => (input as tf.TensorInfo)?.dataId !== undefined;

/** tfjs's cpu backend, which is loaded, without its advertisement for tfjs-node at first use. */
export function cpuBackend(): tf.KernelBackend {
  const backend = tf.findBackend('cpu') as tf.KernelBackend & { firstUse: boolean };
  backend.firstUse = false;
  return backend;
}

/**
 * Runs a kernel on the cpu backend, which is loaded.
 *
 * @throws what `unknown` makes of an input that the trace does not know.
 */
export function runOnCpu({
  kernel,
  inputs,
  attrs,
  trace,
  unknown,
}: CpuCall): tf.TensorInfo | tf.TensorInfo[] {
  const cpu = cpuBackend();
  const copies: tf.TensorInfo[] = [];
  const copied = (input: Input): unknown => {
    if (Array.isArray(input)) return input.map(copied);
    if (!isTensor(input)) return input;
    const { shape, dtype } = input;
    const values = trace.known(input.dataId);
    if (values === null) throw unknown(input);
    copies.push({ dataId: cpu.write(values, shape, dtype), shape, dtype });
    return copies.at(-1);
  };
  try {
    const given = Array.isArray(inputs)
      ? inputs.map(copied)
      : Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, copied(input)]));
    const made = kernel({ inputs: given as tf.NamedTensorInfoMap, attrs, backend: cpu });
    const taken = [made].flat().map((info) => onTrace(info, trace, cpu));
    return Array.isArray(made) ? taken : taken[0]!;
  } finally {
    for (const { dataId } of copies) cpu.disposeData(dataId);
  }
}

/** Takes a result of the cpu backend, whose copy goes. */
function onTrace(info: tf.TensorInfo, trace: TraceBackend, cpu: tf.KernelBackend): tf.TensorInfo {
  const { shape, dtype } = info;
  const dataId = trace.write(cpu.readSync(info.dataId), shape, dtype);
  if (info instanceof tf.Tensor) info.dispose();
  else cpu.disposeData(info.dataId);
  return { dataId, shape, dtype };
}
