/** @file The tracing backend of tfjs: kernels that record a graph instead of computing. */

import { DILATING_BACKENDS } from './convolutionGradients.js';
import { prepareBackends } from './eager/rounding.js';
import { carryScopes, GRADIENT, readScope } from './gradientScopes.js';
import { type Attrs, type Graph, type Node, newValue, type Value } from './graph.js';
import { refuseHostDraws } from './hostDraws.js';
import { notePrecision, type Precision, runInPrecision } from './precision.js';
import { inferOutputs, kernelRules, ruleOf, withinRule } from './rules/index.js';
import type { RawAttrs } from './rules/rule.js';
import { saveWithoutOperations } from './savedTensors.js';
import * as tf from './tfjs.js';
import { CompilerError, type DType, formatSpec, hostArrayFrom, sizeOf, type TensorSpec } from './types.js';
import { DEEP, showUsersFrame } from './usersFrame.js';

/** Name under which the tracing backend is known to tfjs. */
const TRACE_BACKEND = 'luthier-trace';

/** What a tensor stands for; of those that are made here it is the identity of their data as well. */
class Stored {
  refCount = 1;

  constructor(
    readonly dtype: DType,
    readonly shape: number[],
    /** Host values of a constant; null for traced tensors. */
    readonly values: tf.BackendValues | null,
    /** The traced value; made at first use for constants. */
    public value: Value | null,
  ) {}
}

const scopes: string[] = [];

/** Where the last gradient belonged: what tfjs adds up between two gradients belongs there as well. */
let lastGradient = '';

/** Constants of an abstract trace that are larger than this many elements have a shape only. */
const MAX_ABSTRACT_ELEMENTS = 1 << 12;

/** What belongs to the trace under way. */
interface Trace {
  /** Whether only shapes are asked for: large constants are not kept, or not even made. */
  readonly abstract: boolean;
  /** The constants made by `hostConstant`, by key. */
  readonly constants: Map<string, Value>;
  /** Tensors that live until the trace ends. */
  readonly kept: tf.Tensor[];
}

let current: Trace | null = null;

/** Runs `f`; nodes recorded meanwhile carry `scope` (a layer's path), which errors and profiles name. */
export function withScope<T>(scope: string, f: () => T): T {
  scopes.push(scope);
  try {
    return f();
  } catch (error) {
    throw explain(error, scope);
  } finally {
    scopes.pop();
  }
}

/** Runs `f`, which works gradients out: these belong to the layers of what they are gradients of, as 'grad lm/softmax'. */
function aroundGradients<T>(f: () => T): T {
  const outer = lastGradient;
  try {
    return f();
  } finally {
    lastGradient = outer;
  }
}

/** Runs `f` as the gradient of what was recorded in `scope`. */
function withinGradient<T>(scope: string, f: () => T): T {
  const { layer } = readScope(scope);
  lastGradient = layer === '' ? GRADIENT : `${GRADIENT} ${layer}`;
  return withScope(lastGradient, f);
}

/**
 * Runs `f`; matrix products that it calls, and their gradients, multiply in this precision on every engine: in
 * 'bfloat16', operands are rounded to nearest even and sums are float32. The innermost call decides.
 */
export function withPrecision<T>(precision: Precision, f: () => T): T {
  if (precision !== 'float32' && !isTracing()) prepareBackends(TRACE_BACKEND);
  return runInPrecision(precision, f);
}

class TraceBackend extends tf.KernelBackend {
  /** Of tensors that other backends have made. */
  private readonly storage = new tf.DataStorage<Stored>(this, tf.engine() as unknown as tf.DataMover);
  private nodes: Node[] = [];

  /** Forgets the last program's nodes. */
  reset(): Node[] {
    const nodes = this.nodes;
    this.nodes = [];
    return nodes;
  }

  /** Goes on with the nodes of an enclosing trace. */
  restore(nodes: Node[]): void {
    this.nodes = nodes;
  }

  record(op: string, given: readonly Value[], raw: RawAttrs): readonly Value[] {
    const rule = ruleOf(op);
    const dtypes = rule.takes?.(given);
    const inputs = dtypes === undefined ? given : given.map((value, i) => this.cast(value, dtypes[i]!));
    const attrs: Attrs = withinRule(op, () => rule.attrs?.(raw, inputs)) ?? {};
    if (attrs.precision !== undefined) notePrecision(raw);
    const outputs = inferOutputs(op, inputs, attrs).map((output) => newValue(output));
    this.nodes.push({ op, inputs, outputs, attrs, scope: scopes.at(-1) ?? lastGradient });
    return outputs;
  }

  private cast(value: Value, dtype: DType): Value {
    return value.dtype === dtype ? value : this.record('Cast', [value], { dtype })[0]!;
  }

  /** A tensor that stands for `value`. */
  wrap(value: Value): tf.TensorInfo {
    const { shape, dtype } = value;
    return { dataId: new Stored(dtype, [...shape], null, value), shape: [...shape], dtype };
  }

  /** The value that `info` stands for; a tensor made on the host becomes a constant of the program. */
  unwrap(info: tf.TensorInfo): Value {
    const stored = this.storedOf(info.dataId);
    if (stored.value === null) {
      const data = hostArrayFrom(stored.dtype, stored.values as unknown as ArrayLike<number>);
      stored.value = newValue({ shape: stored.shape, dtype: stored.dtype }, { data });
    }
    return stored.value;
  }

  private storedOf(dataId: tf.DataId): Stored {
    return dataId instanceof Stored ? dataId : this.storage.get(dataId);
  }

  override write(values: tf.BackendValues, shape: number[], dtype: tf.DataType): tf.DataId {
    return this.store(values, shape, dtype);
  }

  override move(
    dataId: tf.DataId,
    values: tf.BackendValues,
    shape: number[],
    dtype: tf.DataType,
    refCount: number,
  ): void {
    const stored = this.store(values, shape, dtype);
    stored.refCount = refCount;
    this.storage.set(dataId, stored);
  }

  private store(values: tf.BackendValues, shape: number[], dtype: tf.DataType): Stored {
    if (dtype === 'string' || dtype === 'complex64') {
      throw new CompilerError(`Tensors of dtype ${dtype} cannot be compiled; use float32, int32 or bool.`);
    }
    const large = current?.abstract === true && sizeOf(shape) > MAX_ABSTRACT_ELEMENTS;
    return large
      ? new Stored(dtype, [...shape], null, this.abstracted(values as ArrayLike<number>, shape, dtype))
      : new Stored(dtype, [...shape], values, null);
  }

  /** What stands for a large constant where only shapes are asked for: equal elements can still be simplified away. */
  private abstracted(values: ArrayLike<number>, shape: number[], dtype: DType): Value {
    return isUniform(values)
      ? this.record('Fill', [], { shape, value: values[0]!, dtype })[0]!
      : newValue({ shape: [...shape], dtype });
  }

  override readSync(dataId: tf.DataId): tf.BackendValues {
    const { values, value } = this.storedOf(dataId);
    if (values === null) {
      throw new CompilerError(
        `The value of a traced tensor ${formatSpec(value!)} was read. ` +
          'Inside jit only shapes and dtypes are known: return the tensor from the function, or compute with tf operations (tf.where instead of if).',
      );
    }
    return values;
  }

  override async read(dataId: tf.DataId): Promise<tf.BackendValues> {
    return this.readSync(dataId);
  }

  /**
   * Whether no tensor has these data any more. tf.tidy and tf.customGrad drop tensors that the program still needs: what a
   * tensor stands for lives as long as anybody knows it.
   */
  override disposeData(dataId: tf.DataId, force = false): boolean {
    const stored = this.storedOf(dataId);
    stored.refCount--;
    if (!force && stored.refCount > 0) return false;
    // Other backends' data may come back, with other values.
    if (!(dataId instanceof Stored)) this.storage.delete(dataId);
    return true;
  }

  override incRef(dataId: tf.DataId): void {
    this.storedOf(dataId).refCount++;
  }

  override refCount(dataId: tf.DataId): number {
    return dataId instanceof Stored || this.storage.has(dataId) ? this.storedOf(dataId).refCount : 0;
  }

  override numDataIds(): number {
    return this.storage.numDataIds();
  }

  override memory(): { unreliable: boolean } {
    return { unreliable: true };
  }

  override timerAvailable(): boolean {
    return false;
  }

  override floatPrecision(): 32 {
    return 32;
  }

  override epsilon(): number {
    return 1e-7;
  }
}

let backend: TraceBackend | null = null;

/** A loop of its own: a callback for each element would take most of the time of tracing a large model. */
function isUniform(values: ArrayLike<number>): boolean {
  const first = values[0];
  for (let i = 1; i < values.length; i++) if (values[i] !== first) return false;
  return true;
}

/** The backend, registered with tfjs at first use; a tfjs kernel without a rule stays unknown to it. */
function traceBackend(): TraceBackend {
  if (backend !== null) return backend;
  backend = new TraceBackend();
  carryScopes({
    current: () => (isTracing() ? (scopes.at(-1) ?? '') : null),
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
export function isTracing(): boolean {
  return current !== null;
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
  if (current === null) return tf.tensor(make(), [...shape], dtype);
  const trace = traceBackend();
  let value = current.constants.get(key);
  if (value === undefined) {
    value = newValue({ shape, dtype }, current.abstract ? {} : { data: make() });
    current.constants.set(key, value);
  }
  return tf.engine().makeTensorFromTensorInfo(trace.wrap(value)) as tf.Tensor;
}

/** The same values in a tensor that no tidy disposes of: in a trace until it ends, eagerly until its owner does. */
export function keepCopy(tensor: tf.Tensor): tf.Tensor {
  // Not an operation in a trace.
  const copy = tf.keep((tf.engine() as unknown as { clone(x: tf.Tensor): tf.Tensor }).clone(tensor));
  current?.kept.push(copy);
  return copy;
}

/** Records one operation on traced tensors, outside tfjs's gradient tape. For composites. */
export function recordOp(op: string, inputs: readonly tf.Tensor[], attrs: RawAttrs): tf.Tensor[] {
  const trace = traceBackend();
  return trace
    .record(
      op,
      inputs.map((input) => trace.unwrap(input)),
      attrs,
    )
    .map((value) => tf.engine().makeTensorFromTensorInfo(trace.wrap(value)) as tf.Tensor);
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
  let nodes: Node[] = [];
  const enclosing = trace.reset();
  const outer = current;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = DEEP;
  current = { abstract, constants: new Map(), kept: [] };
  try {
    withBackend(TRACE_BACKEND, () =>
      // The graph leaves through variables: tidy walks over whatever its function returns.
      tf.engine().tidy(() => {
        const tensors = values.map(
          (value) => tf.engine().makeTensorFromTensorInfo(trace.wrap(value)) as tf.Tensor,
        );
        outputs = f(tensors).map((tensor) => trace.unwrap(tensor));
      }),
    );
  } catch (error) {
    throw explain(error, '');
  } finally {
    for (const tensor of current.kept) tensor.dispose();
    current = outer;
    Error.stackTraceLimit = stackTraceLimit;
    nodes = trace.reset();
    trace.restore(enclosing);
  }
  return { inputs: values, outputs, nodes };
}

/** The layer of a scope, behind a message; '' outside any. */
export function placeOf(scope: string): string {
  const { layer, isGradient } = readScope(scope);
  if (layer === '') return '';
  return isGradient ? ` (in the gradient of layer '${layer}')` : ` (in layer '${layer}')`;
}

/** Adds to an error where it came from, once, and shows the user's line; tells tfjs's message for a missing kernel in our terms. */
function explain(error: unknown, scope: string): unknown {
  if (!(error instanceof Error)) return error;
  const where = placeOf(scope);
  const missing = /Kernel '(\w+)' not registered/.exec(error.message);
  if (missing) {
    const told = new CompilerError(
      `The compiler has no rule for the operation '${missing[1]}'${where}. Write it with operations that have one ` +
        '(src/compiler/rules), or add a rule there and its lowering in src/compiler/onnx.',
    );
    showUsersFrame(told, error);
    return told;
  }
  // tfjs's own checks throw plain errors.
  const ours = error instanceof CompilerError || error.constructor === Error;
  if (!ours) return error;
  if (where !== '' && !/ \((in layer '|in the gradient of|where)/.test(error.message)) error.message += where;
  showUsersFrame(error);
  return error;
}
