/** @file Traces: a function called once, under a backend that records what it computes as a graph. */
import { DILATING_BACKENDS } from './convolutionGradients.js';
import { prepareBackends } from './eager/rounding.js';
import { carryScopes } from './gradientScopes.js';
import { refuseHostDraws } from './hostDraws.js';
import { type Graph, newValue, type Value } from './ir.js';
import { type Precision, runInPrecision } from './precision.js';
import { kernelRules, ruleOf } from './rules/index.js';
import type { RawAttrs } from './rules/rule.js';
import { saveWithoutOperations } from './savedTensors.js';
import { aroundGradients, currentScope, explain, withinGradient } from './scopes.js';
import { CompilerError, type TensorSpec } from './tensors.js';
import * as tf from './tfjs.js';
import { type Trace, TraceBackend } from './traceBackend.js';
import { DEEP } from './usersFrame.js';

/** Name under which the tracing backend is known to tfjs. */
const TRACE_BACKEND = 'luthier-trace';

let backend: TraceBackend | null = null;

/** The backend, registered with tfjs at first use; a tfjs kernel without a rule stays unknown to it. */
function traceBackend(): TraceBackend {
  if (backend !== null) return backend;
  backend = new TraceBackend();
  carryScopes({
    current: () => (isTracing() ? currentScope() : null),
    within: withinGradient,
    around: aroundGradients,
  });
  saveWithoutOperations(isTracing);
  refuseHostDraws(isTracing);
  tf.registerBackend(TRACE_BACKEND, () => backend!, 0);
  DILATING_BACKENDS.add(TRACE_BACKEND);
  for (const kernelName of Object.keys(kernelRules)) {
    tf.registerKernel({
      kernelName,
      backendName: TRACE_BACKEND,
      kernelFunc: ({ inputs, attrs }) => recordKernel(kernelName, inputs, attrs as RawAttrs),
    });
  }
  return backend;
}

function recordKernel(
  op: string,
  inputs: tf.NamedTensorInfoMap,
  attrs: RawAttrs,
): tf.TensorInfo | tf.TensorInfo[] {
  if (!isTracing()) {
    throw new CompilerError(
      `The operation '${op}' was called outside of a function that is compiled, and no backend that computes is loaded. ` +
        "Call it in the function given to jit or compile, or import '@tensorflow/tfjs-backend-cpu' first.",
    );
  }
  const trace = traceBackend();
  const { inputs: names, listOfOutputs } = ruleOf(op);
  const infos = names === 'list' ? Object.values(inputs) : names.map((name) => inputs[name]!);
  const outputs = trace.record(
    op,
    infos.map((info) => trace.unwrap(info!)),
    attrs ?? {},
  );
  const wrapped = outputs.map((output) => trace.wrap(output));
  return wrapped.length === 1 && !listOfOutputs ? wrapped[0]! : wrapped;
}

/** Whether tf operations are being recorded now. */
export const isTracing = (): boolean => backend !== null && backend.current !== null;

const tensorOf = (value: Value): tf.Tensor =>
  tf.engine().makeTensorFromTensorInfo(traceBackend().wrap(value)) as tf.Tensor;

/**
 * Runs `f`; matrix products that it calls, and their gradients, multiply in this precision on every engine: in
 * 'bfloat16', operands are rounded to nearest even and sums are float32. The innermost call decides.
 */
export function withPrecision<T>(precision: Precision, f: () => T): T {
  if (precision !== 'float32' && !isTracing()) prepareBackends(TRACE_BACKEND);
  return runInPrecision(precision, f);
}

/**
 * A tensor of values that the host works out, such as a mask or a table of positions. A program has it once, however
 * often its layers ask for it, and where only shapes are asked for it is not worked out at all.
 *
 * @param key the same for the same values, and for no others.
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

/** The same values in a tensor that no tidy disposes of: in a trace until it ends, eagerly until its owner does. */
export function keepCopy(tensor: tf.Tensor): tf.Tensor {
  // Not an operation in a trace.
  const copy = tf.keep((tf.engine() as unknown as { clone(x: tf.Tensor): tf.Tensor }).clone(tensor));
  backend?.current?.kept.push(copy);
  return copy;
}

/** Records one operation on traced tensors, outside tfjs's gradient tape. For composites. */
export function recordOp(op: string, inputs: readonly tf.Tensor[], attrs: RawAttrs): tf.Tensor[] {
  const trace = traceBackend();
  const given = inputs.map((input) => trace.unwrap(input));
  return trace.record(op, given, attrs).map(tensorOf);
}

/** Runs `f` with tfjs switched to the backend `name`, which must be ready, and switches back. */
export function withBackend<T>(name: string, f: () => T): T {
  const engine = tf.engine();
  const before = engine.backendName;
  if (before === name) return f();
  // setBackend is declared async, but awaits nothing for a backend that is made synchronously.
  void engine.setBackend(name);
  try {
    return f();
  } finally {
    const after = before || (tf.findBackend('cpu') ? 'cpu' : null);
    if (after) void engine.setBackend(after);
    // None was chosen before, and none computes: operations outside of a trace are refused.
    else Object.assign(engine, { backendName: null, backendInstance: null });
  }
}

/**
 * The graph of `f`, called once on symbolic tensors of the given specs.
 *
 * @param options.abstract whether only shapes are asked for: the graph's large constants then have no data, and look like
 *   values that nobody makes.
 */
export function traceGraph(
  inputs: readonly { readonly name: string; readonly spec: TensorSpec }[],
  f: (inputs: readonly tf.Tensor[]) => readonly tf.Tensor[],
  { abstract = false }: { readonly abstract?: boolean } = {},
): Graph {
  const trace = traceBackend();
  const values = inputs.map(({ name, spec }) => newValue(spec, { name }));
  let outputs: Value[] = [];
  const current: Trace = { abstract, nodes: [], constants: new Map(), kept: [] };
  const { current: enclosing } = trace;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = DEEP;
  trace.current = current;
  try {
    withBackend(TRACE_BACKEND, () =>
      // The graph leaves through variables: tidy walks over whatever its function returns.
      tf.engine().tidy(() => {
        outputs = f(values.map(tensorOf)).map((tensor) => trace.unwrap(tensor));
      }),
    );
  } catch (error) {
    throw explain(error, '');
  } finally {
    for (const tensor of current.kept) tensor.dispose();
    trace.current = enclosing;
    Error.stackTraceLimit = stackTraceLimit;
  }
  return { inputs: values, outputs, nodes: current.nodes };
}
