/** @file Graph breaks: in lazy execution, kernels that no program can hold run on tfjs's cpu backend. */
import { REFUSED } from './decompositions/refused.js';
import { loadCpuBackend } from './eager/eagerBackend.js';
import type { RawAttrs } from './rules/rule.js';
import { CompilerError } from './tensors.js';
import * as tf from './tfjs.js';
import type { RunsOutside, TraceBackend } from './traceBackend.js';
import { withBackend } from './tracing.js';

/** What tfjs gives a kernel: some inputs are lists of tensors, and images of the browser are no tensors. */
type Input = tf.TensorInfo | readonly tf.TensorInfo[] | null | undefined;

const isTensor = (input: Input): input is tf.TensorInfo => (input as tf.TensorInfo)?.dataId !== undefined;

/** Whether no program can hold this call. */
function mustBreak(kernelName: string, inputs: tf.NamedTensorInfoMap, attrs: RawAttrs): boolean {
  const strings = (): boolean =>
    Object.values(inputs)
      .flat()
      .some((info) => info?.dtype === 'string');
  return kernelName in REFUSED || attrs.dtype === 'string' || strings();
}

/** The kernel of the cpu backend; tfjs reads images itself. */
function kernelOf(kernelName: string): tf.KernelFunc {
  const kernel = tf.getKernel(kernelName, 'cpu');
  if (kernel !== undefined) return kernel.kernelFunc;
  return ({ inputs, attrs }) =>
    withBackend('cpu', () =>
      tf.browser.fromPixels(inputs.pixels as unknown as tf.PixelData, attrs!.numChannels as number),
    );
}

/** Runs such kernels on host memory, and counts them. */
export class GraphBreaks implements RunsOutside {
  private readonly counts = new Map<string, number>();

  /** How often each kernel has run, by name. */
  get counted(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.counts);
  }

  /**
   * Runs a kernel on the cpu backend; its results are constants of what is recorded next.
   *
   * @throws CompilerError for an input that is recorded and was not read.
   */
  run(
    kernelName: string,
    inputs: tf.NamedTensorInfoMap,
    attrs: RawAttrs,
    trace: TraceBackend,
  ): tf.TensorInfo | tf.TensorInfo[] | undefined {
    if (!mustBreak(kernelName, inputs, attrs)) return undefined;
    const call = REFUSED[kernelName]?.call ?? `The operation '${kernelName}' on strings`;
    const cpu = tf.findBackend(loadCpuBackend()) as tf.KernelBackend;
    const copies: tf.TensorInfo[] = [];
    const copied = (input: Input): unknown => {
      if (Array.isArray(input)) return input.map(copied);
      if (!isTensor(input)) return input;
      const copy = onCpu(input, call, trace, cpu);
      copies.push(copy);
      return copy;
    };
    try {
      const given = Array.isArray(inputs)
        ? inputs.map(copied)
        : Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, copied(input)]));
      const made = kernelOf(kernelName)({ inputs: given as tf.NamedTensorInfoMap, attrs, backend: cpu });
      const taken = [made].flat().map((info) => onTrace(info, trace, cpu));
      this.counts.set(kernelName, (this.counts.get(kernelName) ?? 0) + 1);
      return Array.isArray(made) ? taken : taken[0]!;
    } finally {
      for (const { dataId } of copies) cpu.disposeData(dataId);
    }
  }
}

/** A copy of a traced tensor with known values. */
function onCpu(info: tf.TensorInfo, call: string, trace: TraceBackend, cpu: tf.KernelBackend): tf.TensorInfo {
  const { shape, dtype } = info;
  const values = trace.known(info.dataId);
  if (values === null)
    throw new CompilerError(
      `${call} runs outside of programs, and needs the value of a lazy tensor ${dtype}[${shape}] at once. ` +
        'Compute that first: await x.data().',
    );
  return { dataId: cpu.write(values, shape, dtype), shape, dtype };
}

/** Takes a result of the cpu backend, whose copy goes. */
function onTrace(info: tf.TensorInfo, trace: TraceBackend, cpu: tf.KernelBackend): tf.TensorInfo {
  const { shape, dtype } = info;
  const dataId = trace.write(cpu.readSync(info.dataId), shape, dtype);
  if (info instanceof tf.Tensor) info.dispose();
  else cpu.disposeData(info.dataId);
  return { dataId, shape, dtype };
}
