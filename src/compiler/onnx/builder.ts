/** @file ONNX model builder: value names, constants, and index type conversions. */
import type { Graph, Node, Value } from '../program/ir.js';
import {
  type DType,
  hostArrayFrom,
  type NarrowFloat,
  type Shape,
  type TensorSpec,
} from '../program/tensors.js';
import type { OnnxAttr, OnnxInitializer, OnnxModel, OnnxNode, OnnxTypeName, OnnxValueInfo } from './proto.js';
import { OnnxType } from './proto.js';

/** Domain of ONNX Runtime's own operators. */
export const MICROSOFT = 'com.microsoft';

/** Options of one ONNX node. */
export interface EmitOptions {
  readonly attrs?: Readonly<Record<string, OnnxAttr>>;
  readonly domain?: string;
  /** Number of outputs; 1 by default. */
  readonly outputs?: number;
}

/** Collects nodes and constants while a lowering walks the graph. */
export class OnnxBuilder {
  private nodes: OnnxNode[] = [];
  private readonly initializers: OnnxInitializer[] = [];
  private readonly names = new Map<Value, string>();
  private constants = new Map<string, string>();
  private next = 0;
  /** Path of the layer that new nodes belong to. */
  scope = '';

  /**
   * @param loweringOf the lowering of a node's operation.
   * @param isPortable whether the model is for other programs: it then has ONNX's own operators only, and a constant of
   *   its own for each use.
   */
  constructor(
    private readonly loweringOf: (node: Node) => Lowering,
    readonly isPortable = false,
  ) {}

  /** Writes a node, and binds its outputs. */
  write(node: Node): void {
    this.scope = node.scope;
    const inputs = node.inputs.map((input) => this.name(input));
    const outputs = this.loweringOf(node)(node, inputs, this);
    node.outputs.forEach((output, i) => {
      this.bind(output, outputs[i]!);
    });
  }

  private fresh(): string {
    // Arrays of users hardly begin with a slash.
    return `${this.isPortable ? '/v' : 'v'}${this.next++}`;
  }

  /** ONNX name of a value; constants become initializers at first use. */
  name(value: Value): string {
    const known = this.names.get(value);
    if (known !== undefined) return known;
    const name = value.data ? this.initializer(value.dtype, value.shape, value.data) : this.fresh();
    this.names.set(value, name);
    return name;
  }

  /** Binds a value to an ONNX name. */
  bind(value: Value, name: string): void {
    this.names.set(value, name);
  }

  private initializer(type: OnnxTypeName, shape: Shape, data: OnnxInitializer['data']): string {
    const name = this.fresh();
    this.initializers.push({ name, type, shape, data });
    return name;
  }

  private constant(key: string, make: () => string): string {
    const known = this.isPortable ? undefined : this.constants.get(key);
    if (known !== undefined) return known;
    const name = make();
    this.constants.set(key, name);
    return name;
  }

  /** An int64 list constant, as ONNX expects for shapes and axes. */
  ints(values: readonly number[]): string {
    return this.constant(`ints ${values}`, () =>
      this.initializer('int64', [values.length], BigInt64Array.from(values, BigInt)),
    );
  }

  /** A scalar constant. */
  scalar(value: number, type: DType = 'float32'): string {
    return this.constant(`${type} ${Object.is(value, -0) ? '-0' : value}`, () =>
      this.initializer(type, [], hostArrayFrom(type, [value])),
    );
  }

  /** A scalar constant of an index or word type. */
  word(value: number, type: 'int64' | 'uint32'): string {
    return this.constant(`${type} ${value}`, () =>
      this.initializer(type, [], type === 'int64' ? BigInt64Array.of(BigInt(value)) : Int32Array.of(value)),
    );
  }

  /** A scalar constant of double precision. */
  double(value: number): string {
    return this.constant(`double ${value}`, () => this.initializer('double', [], Float64Array.of(value)));
  }

  /** An array constant of double precision; each list of values once. */
  doubles(values: Float64Array): string {
    return this.constant(`doubles ${values}`, () => this.initializer('double', [values.length], values));
  }

  /** An array constant. */
  array(shape: Shape, data: Float32Array | Int32Array): string {
    return this.initializer(data instanceof Float32Array ? 'float32' : 'int32', shape, data);
  }

  /** Adds a node; returns the names of its outputs. */
  emitAll(
    op: string,
    inputs: readonly string[],
    { attrs = {}, domain = '', outputs = 1 }: EmitOptions = {},
  ): string[] {
    const names = Array.from({ length: outputs }, () => this.fresh());
    this.nodes.push({
      op,
      domain,
      inputs,
      outputs: names,
      attrs,
      name: `${this.scope}/${op}_${this.nodes.length}`,
    });
    return names;
  }

  /** Adds a node with one output; returns its name. */
  emit(op: string, inputs: readonly string[], options: EmitOptions = {}): string {
    return this.emitAll(op, inputs, options)[0]!;
  }

  cast(input: string, type: number): string {
    return this.emit('Cast', [input], { attrs: { to: type } });
  }

  /** Selects between two values of `spec` by a single-element condition. */
  choose(condition: string, choices: readonly [string, string], { dtype, shape }: TensorSpec): string {
    const [then_branch, else_branch] = choices.map((choice) => {
      const name = this.fresh();
      const copy = { op: 'Identity', domain: '', inputs: [choice], outputs: [name], attrs: {}, name };
      const outputs = [{ name, type: dtype, shape }];
      return { graph: { inputs: [], outputs, initializers: [], nodes: [copy] } };
    });
    return this.emit('If', [condition], { attrs: { then_branch: then_branch!, else_branch: else_branch! } });
  }

  /**
   * A body that reads the names around it. Constants are initializers of the whole model.
   *
   * @param inputs the body's own inputs; others have names already.
   */
  body(graph: Graph, inputs: readonly Value[]): OnnxModel {
    const [{ nodes, constants }, { scope }] = [this, this];
    [this.nodes, this.constants] = [[], new Map(constants)];
    const given = inputs.map((input) => ({ name: this.name(input), type: input.dtype, shape: input.shape }));
    for (const node of graph.nodes) this.write(node);
    const made = new Set(this.nodes.flatMap(({ outputs }) => outputs));
    this.scope = scope;
    const outputs = graph.outputs.map((output) => {
      const name = this.name(output);
      // Each result is a value of the body, and of its own.
      const own = made.delete(name) ? name : this.emit('Identity', [name]);
      return { name: own, type: output.dtype, shape: output.shape };
    });
    const body = { inputs: given, outputs, initializers: [], nodes: this.nodes };
    [this.nodes, this.constants] = [nodes, constants];
    return body;
  }

  /** A float32 value rounded to what a storage holds, as float32; shared by all users. */
  rounded(input: string, storage: NarrowFloat): string {
    return this.constant(`${storage} ${input}`, () =>
      this.cast(this.cast(input, OnnxType[storage]), OnnxType.float32),
    );
  }

  finish(inputs: readonly OnnxValueInfo[], outputs: readonly OnnxValueInfo[]): OnnxModel {
    return { inputs, outputs, initializers: this.initializers, nodes: this.nodes };
  }
}

/** Writes one node; returns the ONNX names of its outputs. */
export type Lowering = (node: Node, inputs: readonly string[], builder: OnnxBuilder) => readonly string[];
