/** @file Kernels of tfjs's tracing backend, of real numbers and of complex ones. */

import {
  allDecompositions,
  allVariants,
  COMPLEX_KERNELS,
  complexCall,
  type Decomposition,
  isComplex,
} from '../decompositions/decomposition.js';
import { REFUSED, refusalError } from '../decompositions/refused.js';
import { notePrecision } from '../program/precision.js';
import { CompilerError } from '../program/tensors.js';
import { kernelNames, ruleOf, withinRule } from '../rules/index.js';
import type { RawAttrs } from '../rules/operation.js';
import { reveal } from '../tfjs/complexGradients.js';
import * as tf from '../tfjs/tfjs.js';
import { runOnCpu } from './onCpu.js';
import { expectsComplex, type TraceBackend } from './traceBackend.js';

/** The tracing backend, and its name in tfjs. */
interface Registered {
  readonly backend: TraceBackend;
  readonly backendName: string;
}

type TracedKernel = (inputs: tf.NamedTensorInfoMap, attrs: RawAttrs) => tf.TensorInfo | tf.TensorInfo[];

/** Registers a kernel that only traces can run. */
function registerTraced({ backend, backendName }: Registered, kernelName: string, run: TracedKernel): void {
  const kernelFunc: tf.KernelFunc = ({ inputs, attrs }) => {
    const given = (attrs ?? {}) as RawAttrs;
    const trace = backend.current;
    if (trace) {
      const broken = trace.breaks?.run(kernelName, inputs, given, backend);
      if (broken) return broken;
      const made = run(inputs, given);
      if (trace.read === undefined) rememberConstants(backend, kernelName, inputs, given, [made].flat());
      return made;
    }
    throw new CompilerError(
      `The operation '${kernelName}' was called outside of a function that is compiled, and no backend that computes is loaded. ` +
        "Call it in the function given to jit or compile, or import '@tensorflow/tfjs-backend-cpu' first.",
    );
  };
  tf.registerKernel({ kernelName, backendName, kernelFunc });
}

/** Lets code read results that depend on constants alone, such as the shapes in graph models: tfjs's cpu backend has them. */
function rememberConstants(
  backend: TraceBackend,
  kernelName: string,
  inputs: tf.NamedTensorInfoMap,
  attrs: RawAttrs,
  results: readonly tf.TensorInfo[],
): void {
  const kernel = tf.getKernel(kernelName, 'cpu');
  const cpu = tf.findBackend('cpu');
  // Its complex tensors are made of two others.
  const areReal = ![...Object.values(inputs), ...results].some((info) => info && isComplex(info));
  if (!areReal || !kernel || !cpu) return;
  // tfjs passes undefined for what a kernel may do without.
  const names = Object.keys(inputs).filter((name) => inputs[name]);
  const given = names.map((name) => inputs[name]!);
  backend.remember(given, results, (constants) => {
    const infos = given.map(({ shape, dtype }, i) => {
      return { dataId: cpu.write(constants[i]!, shape, dtype), shape, dtype };
    });
    // Kernels of any number of inputs take a list.
    const named = Array.isArray(inputs)
      ? (infos as unknown as tf.NamedTensorInfoMap)
      : Object.fromEntries(names.map((name, i) => [name, infos[i]!]));
    const computed = [kernel.kernelFunc({ inputs: named, attrs, backend: cpu })].flat();
    const values = computed.map(({ dataId }) => cpu.readSync(dataId));
    for (const { dataId } of [...infos, ...computed]) cpu.disposeData(dataId, true);
    return values;
  });
}

/** A kernel of real numbers that, part by part, also takes complex ones. */
const realOrComplex =
  (kernelName: string, run: TracedKernel): TracedKernel =>
  (inputs, attrs) => {
    // tfjs's tape adds gradients.
    if (kernelName === 'Add') reveal(Object.values(inputs));
    const ofParts = withinRule(kernelName, () => complexCall(kernelName, inputs, attrs));
    return ofParts === undefined ? run(inputs, attrs) : decomposeKernel(kernelName, ofParts, inputs, attrs);
  };

/** Registers the kernels that make complex numbers, take them apart, or take no others. */
function registerComplex(registered: Registered): void {
  const { backend: trace } = registered;
  const makers: Readonly<Record<string, TracedKernel>> = {
    Complex: ({ real, imag }) => {
      const [a, b] = [real!, imag!].map((x) => trace.unwrap(tf.cast(x as tf.Tensor, 'float32')));
      return trace.wrapParts([a!, b!]);
    },
    Real: ({ input }) => trace.wrap(trace.partsOf(input!)[0]),
    Imag: ({ input }) => trace.wrap(trace.partsOf(input!)[1]),
  };
  for (const [kernelName, run] of Object.entries(makers)) registerTraced(registered, kernelName, run);
  for (const kernelName of COMPLEX_KERNELS.filter((name) => !(name in makers))) {
    const run: TracedKernel = ({ input, x }) => {
      throw new CompilerError(`${kernelName}: ${expectsComplex((input ?? x)!)}`);
    };
    registerTraced(registered, kernelName, realOrComplex(kernelName, run));
  }
}

/** Records a kernel's decomposition. Nothing here reaches tfjs's gradient tape, which is off inside of kernels. */
function decomposeKernel<T extends tf.Tensor | tf.Tensor[] | null>(
  kernelName: string,
  decompose: (...call: Parameters<Decomposition>) => T,
  inputs: tf.NamedTensorInfoMap,
  attrs: RawAttrs,
): tf.Tensor | tf.Tensor[] | (T & null) {
  // tfjs hands its tensors to kernels.
  const tensors = inputs as Record<string, tf.Tensor>;
  const given = new Set(Object.values(tensors));
  const own = (tensor: tf.Tensor): tf.Tensor => (given.has(tensor) ? tensor.clone() : tensor);
  const run = (): tf.Tensor | tf.Tensor[] | (T & null) => {
    const made = withinRule(kernelName, () => decompose(tensors, attrs));
    if (made === null) return made;
    notePrecision(attrs);
    return Array.isArray(made) ? made.map(own) : own(made);
  };
  return tf.tidy(run as () => tf.Tensor);
}

function recordKernel(
  trace: TraceBackend,
  op: string,
  inputs: tf.NamedTensorInfoMap,
  attrs: RawAttrs,
): tf.TensorInfo | tf.TensorInfo[] {
  const { inputs: names, listOfOutputs } = ruleOf(op);
  const infos = names === 'list' ? Object.values(inputs) : names.map((name) => inputs[name]!);
  const outputs = trace.record(
    op,
    infos.map((info) => trace.unwrap(info!)),
    attrs,
  );
  const wrapped = outputs.map((output) => trace.wrap(output));
  return wrapped.length === 1 && !listOfOutputs ? wrapped[0]! : wrapped;
}

/** Registers the kernels of the tracing backend: those with a rule or a decomposition, and those that are refused. */
export function registerKernels(backend: TraceBackend, backendName: string): void {
  const registered: Registered = { backend, backendName };
  for (const [kernelName, refusal] of Object.entries(REFUSED))
    registerTraced(registered, kernelName, (inputs, attrs) => {
      const unknown = () => refusalError(refusal);
      // Constants have no size that depends on a run; the kernel is there once tfjs's cpu backend is loaded.
      const kernel = tf.getKernel(kernelName, 'cpu')?.kernelFunc;
      if (!refusal.takesConstants || kernel === undefined) throw unknown();
      return runOnCpu({ kernel, inputs, attrs, trace: backend, unknown });
    });
  for (const kernelName of kernelNames()) {
    const vary = allVariants().get(kernelName) ?? (() => null);
    const run: TracedKernel = (inputs, attrs) =>
      decomposeKernel(kernelName, vary, inputs, attrs) ?? recordKernel(backend, kernelName, inputs, attrs);
    registerTraced(registered, kernelName, realOrComplex(kernelName, run));
  }
  registerComplex(registered);
  for (const [kernelName, decompose] of allDecompositions()) {
    const run: TracedKernel = (inputs, attrs) => decomposeKernel(kernelName, decompose, inputs, attrs);
    registerTraced(registered, kernelName, realOrComplex(kernelName, run));
  }
}
