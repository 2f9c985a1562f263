/** @file tfjs's tracing backend: kernels that record a graph instead of computing. */
import { type Attrs, type Graph, type Node, newValue, type Value } from '../program/ir.js';
import { notePrecision } from '../program/precision.js';
import {
  CompilerError,
  type DType,
  type HostArray,
  hostArrayFrom,
  MAX_UNIFORM_ELEMENTS,
  sizeOf,
} from '../program/tensors.js';
import { inferOutputs, ruleOf, withinRule } from '../rules/index.js';
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { checkSize } from './programSize.js';
import { currentMark, type Mark } from './regions.js';
import { currentCall, currentScope } from './scopes.js';
import { isUniform, isZero, type Parts, Stored } from './tracedData.js';

/** In an abstract trace, larger constants have only a shape. */
const MAX_ABSTRACT_ELEMENTS = 1 << 12;

const noStrings = (): CompilerError =>
  new CompilerError('Tensors of dtype string cannot be compiled; use float32, int32 or bool.');

/** The message for a real tensor where a complex one is due. */
export const expectsComplex = ({ dtype, shape }: tf.TensorInfo): string =>
  `Expected complex64, got ${dtype}[${shape}]: tf.complex(real, imag) makes complex numbers.`;

/** Runs kernels outside of programs. */
export interface RunsOutside {
  /** The results of a call that no program can hold; undefined for others. */
  run(
    kernelName: string,
    inputs: tf.NamedTensorInfoMap,
    attrs: RawAttrs,
    trace: TraceBackend,
  ): tf.TensorInfo | tf.TensorInfo[] | undefined;
}

/** State of one trace. */
export interface Trace {
  /** Whether only shapes are needed: large constants are then dropped, or never made. */
  readonly abstract: boolean;
  /** Takes the nodes in order. */
  readonly nodes: { push(node: Node): unknown };
  /** Most nodes; absent where they are computed in between. */
  readonly mostNodes?: number;
  /** Constants made by `hostConstant`, by key. */
  readonly constants: Map<string, Value>;
  /** Tensors that live until the trace ends; null where their owners dispose of them. */
  readonly kept: tf.Tensor[] | null;
  /** Computes a value; absent where values are only known when the program runs. */
  read?(value: Value): Promise<HostArray>;
  /** A value that is computed already. */
  known?(value: Value): HostArray | undefined;
  /** Runs kernels that no program can hold; absent where they are errors. */
  readonly breaks?: RunsOutside;
  /** The checkpointed regions of nodes. */
  readonly marks: { set(node: Node, mark: Mark): unknown };
  /** Names of values for the policies of checkpoints. */
  readonly names: { set(value: Value, name: string): unknown };
  /** Value of a tensor in the body of a loop or of a branch; absent in the trace of a whole program. */
  within?(tensor: tf.TensorInfo, value: Value): Value;
}

export class TraceBackend extends tf.KernelBackend {
  /** Tensors made by other backends. */
  private readonly storage = new tf.DataStorage<Stored>(this, tf.engine() as unknown as tf.DataMover);
  /** Data of tensors made here that were not disposed of. */
  private live = 0;
  /** The active trace. */
  current: Trace | null = null;
  /** Values of nodes whose elements are all seen to be 0. */
  private readonly zeros = new WeakSet<Value>();

  record(op: string, given: readonly Value[], raw: RawAttrs, bodies?: readonly Graph[]): readonly Value[] {
    const rule = ruleOf(op);
    const dtypes = rule.takes?.(given);
    const inputs = dtypes === undefined ? given : given.map((value, i) => this.cast(value, dtypes[i]!));
    const attrs: Attrs = withinRule(op, () => rule.attrs?.(raw, inputs)) ?? {};
    if (attrs.precision !== undefined) notePrecision(raw);
    const outputs = inferOutputs(op, inputs, attrs, bodies).map((output) => newValue(output));
    const call = currentCall();
    const node: Node = {
      ...{ op, inputs, outputs, attrs, scope: currentScope() },
      ...(call && { call }),
      ...(bodies && { bodies }),
    };
    const { nodes, mostNodes } = this.current!;
    nodes.push(node);
    if (mostNodes !== undefined) checkSize(nodes as Node[], mostNodes);
    const mark = currentMark();
    if (mark !== null) this.current!.marks.set(node, mark);
    if (isZero(node, (value) => this.isZeros(value))) for (const output of outputs) this.zeros.add(output);
    return outputs;
  }

  private cast(value: Value, dtype: DType): Value {
    return value.dtype === dtype ? value : this.record('Cast', [value], { dtype })[0]!;
  }

  /** A tensor that stands for `value`. */
  wrap(value: Value): tf.TensorInfo {
    const { shape, dtype } = value;
    return { dataId: this.own(new Stored(dtype, [...shape], null, value)), shape: [...shape], dtype };
  }

  /** A complex tensor of two parts, float32 of one shape. */
  wrapParts(parts: Parts): tf.TensorInfo {
    const shape = [...parts[0].shape];
    return { dataId: this.own(new Stored('complex64', shape, null, null, parts)), shape, dtype: 'complex64' };
  }

  /** The value behind `info`; a tensor made on the host becomes a constant of the program. */
  unwrap(info: tf.TensorInfo): Value {
    const stored = this.storedOf(info.dataId);
    const { dtype, shape, values } = stored;
    if (dtype === 'string') throw noStrings();
    if (dtype === 'complex64')
      throw new CompilerError(
        `Expected real numbers, got complex64[${shape}]: take tf.real(x) and tf.imag(x).`,
      );
    if (stored.value === null) {
      const given = values as unknown as ArrayLike<number>;
      if (
        this.current !== null &&
        !this.current.read &&
        sizeOf(shape) > MAX_UNIFORM_ELEMENTS &&
        isUniform(given)
      )
        return this.fill(given, shape, dtype);
      const data = hostArrayFrom(dtype, given);
      stored.value = newValue({ shape, dtype }, { data });
    }
    return this.current?.within?.(info, stored.value) ?? stored.value;
  }

  /**
   * Remembers how to compute results that depend on constants alone, such as shapes of tensors: code may read these.
   *
   * @param compute computes the values of each result.
   */
  remember(
    given: readonly tf.TensorInfo[],
    results: readonly tf.TensorInfo[],
    compute: (constants: tf.BackendValues[]) => tf.BackendValues[],
  ): void {
    const sources = given.map(({ dataId }) => this.storedOf(dataId));
    if (sources.some(({ values, compute }) => values === null && compute === undefined)) return;
    let computed: tf.BackendValues[] | undefined;
    const all = (): tf.BackendValues[] =>
      (computed ??= compute(sources.map((source) => (source.values ??= source.compute!()))));
    results.forEach(({ dataId }, i) => {
      const stored = this.storedOf(dataId);
      if (stored.values === null) stored.compute ??= () => all()[i]!;
    });
  }

  /** The parts of a complex tensor. */
  partsOf(info: tf.TensorInfo): Parts {
    const stored = this.storedOf(info.dataId);
    const { dtype, shape, values } = stored;
    if (dtype !== 'complex64') throw new CompilerError(expectsComplex(info));
    const part = (which: number): Value => {
      const data = new Float32Array(sizeOf(shape));
      for (let i = 0; i < data.length; i++) data[i] = (values as Float32Array)[2 * i + which]!;
      return newValue({ shape, dtype: 'float32' }, { data });
    };
    stored.parts ??= [part(0), part(1)];
    return stored.parts;
  }

  /** Whether all elements are seen to be 0. */
  isZeros(value: Value): boolean {
    return this.zeros.has(value) || (value.data?.every((x) => x === 0) ?? false);
  }

  private storedOf(dataId: tf.DataId): Stored {
    return dataId instanceof Stored ? dataId : this.storage.get(dataId);
  }

  override write(values: tf.BackendValues, shape: number[], dtype: tf.DataType): tf.DataId {
    return this.own(this.store(values, shape, dtype));
  }

  /** Counts data that only this backend has. */
  private own(stored: Stored): Stored {
    this.live++;
    return stored;
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
    if (dtype === 'string') {
      if (!this.current?.breaks) throw noStrings();
      return new Stored(dtype, [...shape], values, null);
    }
    if (dtype === 'complex64') return new Stored(dtype, [...shape], values, null);
    const large = this.current?.abstract === true && sizeOf(shape) > MAX_ABSTRACT_ELEMENTS;
    return large
      ? new Stored(dtype, [...shape], null, this.abstracted(values as ArrayLike<number>, shape, dtype))
      : new Stored(dtype, [...shape], values, null);
  }

  /** A node that makes a constant of one number. */
  private fill(values: ArrayLike<number>, shape: readonly number[], dtype: DType): Value {
    const [value] = hostArrayFrom(dtype, [values[0]!]);
    return this.record('Fill', [], { shape: [...shape], value: value!, dtype })[0]!;
  }

  /** Replaces a large constant in an abstract trace; constants with equal elements can still be simplified away. */
  private abstracted(values: ArrayLike<number>, shape: number[], dtype: DType): Value {
    return isUniform(values) ? this.fill(values, shape, dtype) : newValue({ shape: [...shape], dtype });
  }

  /** The values of a tensor; null where they are not computed yet. */
  known(dataId: tf.DataId): tf.BackendValues | null {
    const stored = this.storedOf(dataId);
    if (stored.compute !== undefined && !this.current?.read) stored.values ??= stored.compute();
    const { values, value } = stored;
    return values ?? (value && this.current?.known?.(value)) ?? null;
  }

  override readSync(dataId: tf.DataId): tf.BackendValues {
    const { dtype, shape } = this.storedOf(dataId);
    const values = this.known(dataId);
    if (values === null && this.current?.read) {
      throw new CompilerError(
        `The value of a lazy tensor ${dtype}[${shape}] was read at once. await x.data() or x.array() computes it.`,
      );
    }
    if (values === null) {
      throw new CompilerError(
        `The value of a traced tensor ${dtype}[${shape}] was read. ` +
          'Inside jit only shapes and dtypes are known: return the tensor from the function, or compute with tf operations (tf.where instead of if). ' +
          "jit's option graphBreaks runs such a function operation by operation; " +
          '--debug=eager does so for a training whose layers read values, and --tap prints them.',
      );
    }
    return values;
  }

  override async read(dataId: tf.DataId): Promise<tf.BackendValues> {
    const stored = this.storedOf(dataId);
    if (stored.values === null && this.current?.read)
      stored.values = stored.parts
        ? await this.readParts(stored.parts)
        : await this.current.read(stored.value!);
    return this.readSync(dataId);
  }

  private async readParts(parts: Parts): Promise<Float32Array> {
    const [real, imag] = [await this.current!.read!(parts[0]), await this.current!.read!(parts[1])];
    return Float32Array.from({ length: 2 * real.length }, (_, i) => (i % 2 === 0 ? real : imag)[i >> 1]!);
  }

  /**
   * Whether no tensor refers to these data any more. tf.tidy and tf.customGrad dispose of tensors that the program
   * still needs, so the traced value lives as long as anything refers to it.
   */
  override disposeData(dataId: tf.DataId, force = false): boolean {
    const stored = this.storedOf(dataId);
    stored.refCount--;
    if (!force && stored.refCount > 0) return false;
    // Other backends' data may return, with other values.
    if (dataId instanceof Stored) this.live--;
    else this.storage.delete(dataId);
    return true;
  }

  override incRef(dataId: tf.DataId): void {
    this.storedOf(dataId).refCount++;
  }

  override refCount(dataId: tf.DataId): number {
    return dataId instanceof Stored || this.storage.has(dataId) ? this.storedOf(dataId).refCount : 0;
  }

  override numDataIds(): number {
    return this.live + this.storage.numDataIds();
  }

  override memory(): { unreliable: boolean } {
    return { unreliable: true };
  }

  /** Traces and what they recorded need nothing of tfjs. */
  override dispose(): void {}

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
