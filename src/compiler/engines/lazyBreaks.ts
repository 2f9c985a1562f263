/** @file Graph breaks: in lazy execution, kernels that no program can hold run on tfjs's cpu backend. */
import { REFUSED } from '../decompositions/refused.js';
import { loadCpuBackend } from '../eager/eagerBackend.js';
import { CompilerError } from '../program/tensors.js';
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { runOnCpu } from '../trace/onCpu.js';
import type { RunsOutside, TraceBackend } from '../trace/traceBackend.js';
import { withBackend } from '../trace/tracing.js';

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
   * Runs a kernel on the cpu backend; its results are constants of the next recording.
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
    loadCpuBackend();
    const made = runOnCpu({
      kernel: kernelOf(kernelName),
      inputs,
      attrs,
      trace,
      unknown: ({ shape, dtype }) =>
        new CompilerError(
          `${call} runs outside of programs, and needs the value of a lazy tensor ${dtype}[${shape}] at once. ` +
            'Compute that first: await x.data().',
        ),
    });
    this.counts.set(kernelName, (this.counts.get(kernelName) ?? 0) + 1);
    return made;
  }
}
