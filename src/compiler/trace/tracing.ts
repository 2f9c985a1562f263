/** @file Traces: calls of a function under a backend that records its computation as a graph. */

import { prepareBackends } from '../eager/rounding.js';
import { rematerialize } from '../passes/rematerialize.js';
import { type Attrs, type Graph, type Node, newValue, type Value } from '../program/ir.js';
import { operandStorage, type Precision, runInPrecision } from '../program/precision.js';
import { CompilerError, type TensorSpec } from '../program/tensors.js';
import type { RawAttrs } from '../rules/operation.js';
import { DILATING_BACKENDS } from '../tfjs/convolutionGradients.js';
import { saveWithoutOperations } from '../tfjs/savedTensors.js';
import * as tf from '../tfjs/tfjs.js';
import { keepingCalls, keepsCalls } from './callSites.js';
import { carryScopes } from './gradientScopes.js';
import { replaceHostDraws } from './hostDraws.js';
import { mostOperations } from './programSize.js';
import type { Mark } from './regions.js';
import { aroundGradients, currentPlace, explain, isUnplaced, withinGradient } from './scopes.js';
import { type Trace, TraceBackend } from './traceBackend.js';
import { registerKernels } from './tracedKernels.js';
import { DEEP } from './usersFrame.js';

/** tfjs's name of the tracing backend. */
const TRACE_BACKEND = 'luthier-trace';

let backend: TraceBackend | null = null;

/** The backend, registered with tfjs at first use, without kernels for operations that have no rule. */
function traceBackend(): TraceBackend {
  if (backend !== null) return backend;
  backend = new TraceBackend();
  carryScopes({
    current: () => (isTracing() || keepsCalls() ? currentPlace() : null),
    within: withinGradient,
    around: aroundGradients,
  });
  saveWithoutOperations(isTracing);
  replaceHostDraws(() => isTracing() && !isLazy());
  tf.registerBackend(TRACE_BACKEND, () => backend!, 0);
  DILATING_BACKENDS.add(TRACE_BACKEND);
  registerKernels(backend, TRACE_BACKEND);
  return backend;
}

/** Whether tf operations are being recorded now. */
export const isTracing = (): boolean => backend !== null && backend.current !== null;

const isLazy = (): boolean => backend?.current?.read !== undefined;

/** Has a trace record all tf operations until the returned function is called. */
export function recordLazily(trace: Trace): () => void {
  if (isTracing()) {
    const where = isLazy() ? 'in lazy execution: dispose of that first' : 'within a traced function';
    throw new CompilerError(`lazy was called ${where}.`);
  }
  const current = traceBackend();
  const before = tf.engine().backendName;
  current.current = trace;
  void tf.engine().setBackend(TRACE_BACKEND);
  return () => {
    current.current = null;
    enterBackend(before);
  };
}

/** Makes a backend current again; null where there was none. */
function enterBackend(before: string | null): void {
  const engine = tf.engine();
  const after = before || (tf.findBackend('cpu') ? 'cpu' : null);
  if (after) void engine.setBackend(after);
  // There was no backend before, and this one can't compute: operations outside of traces stay errors.
  else Object.assign(engine, { backendName: null, backendInstance: null });
}

/** Whether all elements of a traced tensor are seen to be 0. */
export const isZeros = (tensor: tf.Tensor): boolean => traceBackend().isZeros(traceBackend().unwrap(tensor));

const tensorOf = (value: Value): tf.Tensor =>
  tf.engine().makeTensorFromTensorInfo(traceBackend().wrap(value)) as tf.Tensor;

/**
 * Runs `f` with matrix products, and their gradients, in this precision on every engine: 'bfloat16' rounds operands to
 * nearest even and sums in float32. The innermost call wins.
 */
export function withPrecision<T>(precision: Precision, f: () => T): T {
  if (operandStorage(precision) !== undefined && !isTracing()) prepareBackends(TRACE_BACKEND);
  return runInPrecision(precision, f);
}

/**
 * A tensor of values computed on the host, such as a mask or a table of positions. A program contains it once, however
 * often layers request it; where only shapes are needed, it is not computed.
 *
 * @param key identifies the values uniquely.
 * @param make the values, row-major.
 */
export function hostConstant(
  key: string,
  { shape, dtype }: TensorSpec,
  make: () => Float32Array | Int32Array,
): tf.Tensor {
  const current = backend?.current;
  if (!current) return tf.tensor(make(), [...shape], dtype);
  let value = current.constants.get(key);
  if (value === undefined) {
    value = newValue({ shape, dtype }, current.abstract ? {} : { data: make() });
    current.constants.set(key, value);
  }
  return tensorOf(value);
}

/**
 * The same values in a tensor that tidy never disposes of: it lives until the trace ends or, in eager execution, until
 * its owner disposes of it.
 */
export function keepCopy(tensor: tf.Tensor): tf.Tensor {
  // Records no operation.
  const copy = tf.keep((tf.engine() as unknown as { clone(x: tf.Tensor): tf.Tensor }).clone(tensor));
  backend?.current?.kept?.push(copy);
  return copy;
}

/** Names a tensor for the policies of checkpoints. Records no operation; in eager execution it does nothing. */
export function nameTensor(tensor: tf.Tensor, name: string): void {
  const current = backend?.current;
  if (current) current.names.set(backend!.unwrap(tensor), name);
}

/** Records an operation on traced tensors, outside of tfjs's gradient tape; for composites. */
export function recordOp(op: string, inputs: readonly tf.Tensor[], attrs: RawAttrs): tf.Tensor[] {
  const trace = traceBackend();
  const given = inputs.map((input) => trace.unwrap(input));
  return trace.record(op, given, attrs).map(tensorOf);
}

/** Records a loop or a choice with its bodies. */
export function recordBodies(
  op: string,
  inputs: readonly tf.Tensor[],
  attrs: Attrs,
  bodies: readonly Graph[],
): tf.Tensor[] {
  const trace = traceBackend();
  const given = inputs.map((input) => trace.unwrap(input));
  return trace.record(op, given, attrs, bodies).map(tensorOf);
}

/** The recording of a body: nodes, in order, and their checkpoints. */
export interface Recording {
  readonly nodes: Node[];
  readonly marks: Map<Node, Mark>;
  readonly names: Map<Value, string>;
}

/** Has the operations that `f` calls recorded as those of a body within the current trace. */
export function recordWithin(
  recording: Recording,
  within: NonNullable<Trace['within']>,
  f: (trace: { unwrap(tensor: tf.Tensor): Value; wrap(value: Value): tf.Tensor }) => void,
): void {
  const trace = traceBackend();
  const { abstract, constants, kept, mostNodes } = trace.current!;
  const { current: enclosing } = trace;
  trace.current = { abstract, constants, kept, within, ...(mostNodes && { mostNodes }), ...recording };
  try {
    // Results leave through variables, since tidy walks its function's result.
    tf.engine().tidy(() => f({ unwrap: (tensor) => trace.unwrap(tensor), wrap: tensorOf }));
  } finally {
    trace.current = enclosing;
  }
}

/** The nodes that the current trace, or the body within it, has recorded; undefined where none records a whole program. */
export function tracedNodes():
  | { readonly nodes: readonly Node[]; unwrap(tensor: tf.Tensor): Value; wrap(value: Value): tf.Tensor }
  | undefined {
  const nodes = backend?.current?.nodes;
  if (!Array.isArray(nodes)) return undefined;
  return { nodes, unwrap: (tensor) => traceBackend().unwrap(tensor), wrap: tensorOf };
}

/** Runs `f` with tfjs's backend `name`, which must be ready, then switches back. */
export function withBackend<T>(name: string, f: () => T): T {
  const engine = tf.engine();
  const before = engine.backendName;
  if (before === name) return f();
  // setBackend is declared async, but awaits nothing for a backend that is created synchronously.
  void engine.setBackend(name);
  try {
    return f();
  } finally {
    enterBackend(before);
  }
}

function traceOnce(
  inputs: readonly { readonly name: string; readonly spec: TensorSpec }[],
  f: (inputs: readonly tf.Tensor[]) => readonly tf.Tensor[],
  { abstract = false }: { readonly abstract?: boolean } = {},
): Graph {
  const trace = traceBackend();
  const values = inputs.map(({ name, spec }) => newValue(spec, { name }));
  const loads: Node[] = [];
  const loaded = values.map((value) => {
    if (value.storage === undefined) return value;
    const output = newValue({ shape: value.shape, dtype: value.dtype });
    loads.push({ op: 'Load', inputs: [value], outputs: [output], attrs: {}, scope: '' });
    return output;
  });
  let outputs: Value[] = [];
  const current = {
    abstract,
    nodes: loads,
    mostNodes: mostOperations(process.env),
    constants: new Map<string, Value>(),
    kept: [] as tf.Tensor[],
    marks: new Map<Node, Mark>(),
    names: new Map<Value, string>(),
  };
  const { current: enclosing } = trace;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = DEEP;
  trace.current = current;
  try {
    withBackend(TRACE_BACKEND, () =>
      // The graph is returned through variables, since tidy walks its function's result.
      tf.engine().tidy(() => {
        outputs = f(loaded.map(tensorOf)).map((tensor) => trace.unwrap(tensor));
      }),
    );
  } catch (error) {
    throw explain(error, '');
  } finally {
    for (const tensor of current.kept) tensor.dispose();
    trace.current = enclosing;
    Error.stackTraceLimit = stackTraceLimit;
  }
  return rematerialize({ ...current, inputs: values, outputs });
}

/**
 * Traces `f` on symbolic tensors of these specs.
 *
 * @param options.abstract whether only shapes are needed: the graph's large constants then have no data, and look like
 *   values without a node.
 */
export const traceGraph: typeof traceOnce = (...traced) => {
  try {
    return traceOnce(...traced);
  } catch (error) {
    // Calls are only kept where an error in a gradient has to name one.
    if (isUnplaced(error)) keepingCalls(() => traceOnce(...traced));
    throw error;
  }
};

/** Runs `f` with the layers and calls of operations known to errors in gradients, in eager execution too. */
export function withCallsKept<T>(f: () => T): T {
  traceBackend();
  return keepingCalls(f);
}
