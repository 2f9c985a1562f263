/**
 * @file The few protobuf messages of ONNX that a model needs, written straight to bytes. Field numbers are those of
 * onnx.proto (ONNX IR version 10). Only writing is needed, and weights never pass through here.
 */
import type { HostArray, Shape } from '../types.js';

/** ONNX element types (TensorProto.DataType). */
export const OnnxType = { float32: 1, uint32: 12, int32: 6, int64: 7, bool: 9, bfloat16: 16 } as const;
export type OnnxTypeName = keyof typeof OnnxType;

const utf8 = new TextEncoder();

/** A growing buffer of protobuf wire format. */
class Writer {
  private bytes = new Uint8Array(256);
  private length = 0;

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more));
    grown.set(this.bytes);
    this.bytes = grown;
  }

  private varint(value: number | bigint): void {
    this.reserve(10);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 127n) {
      this.bytes[this.length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  int(field: number, value: number): this {
    this.varint(field << 3);
    this.varint(value);
    return this;
  }

  float(field: number, value: number): this {
    this.varint((field << 3) | 5);
    this.reserve(4);
    new DataView(this.bytes.buffer).setFloat32(this.length, value, true);
    this.length += 4;
    return this;
  }

  blob(field: number, data: Uint8Array): this {
    this.varint((field << 3) | 2);
    this.varint(data.length);
    this.reserve(data.length);
    this.bytes.set(data, this.length);
    this.length += data.length;
    return this;
  }

  string(field: number, text: string): this {
    return this.blob(field, utf8.encode(text));
  }

  message(field: number, inner: Writer): this {
    return this.blob(field, inner.finish());
  }

  finish(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }
}

/** An attribute's value: integers are INT, `{ float }` is FLOAT, lists are INTS, `{ graph }` is the body of a control-flow operator. */
export type OnnxAttr =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | { readonly graph: OnnxModel };

const AttrType = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;

function writeAttr(name: string, value: OnnxAttr): Writer {
  const writer = new Writer().string(1, name);
  if (typeof value === 'number') return writer.int(3, value).int(20, AttrType.int);
  if (typeof value === 'string') return writer.string(4, value).int(20, AttrType.string);
  if ('float' in value) return writer.float(2, value.float).int(20, AttrType.float);
  if ('graph' in value) return writer.message(6, writeGraph(value.graph, 'body')).int(20, AttrType.graph);
  for (const item of value) writer.int(8, item);
  return writer.int(20, AttrType.ints);
}

/** A node of the model. */
export interface OnnxNode {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attrs: Readonly<Record<string, OnnxAttr>>;
  /** Shown by ONNX Runtime's profiler. */
  readonly name: string;
}

/** A constant of the model. */
export interface OnnxInitializer {
  readonly name: string;
  readonly type: OnnxTypeName;
  readonly shape: Shape;
  readonly data: HostArray | BigInt64Array;
}

/** Name, type and shape of an input or output. */
export interface OnnxValueInfo {
  readonly name: string;
  readonly type: OnnxTypeName;
  readonly shape: Shape;
}

/** A whole model. */
export interface OnnxModel {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly initializers: readonly OnnxInitializer[];
  readonly nodes: readonly OnnxNode[];
}

/** Operator-set versions that the lowering is written for. */
const OPSET = 20;
const MICROSOFT_OPSET = 1;
const IR_VERSION = 10;

function writeNode(node: OnnxNode): Writer {
  const writer = new Writer();
  for (const input of node.inputs) writer.string(1, input);
  for (const output of node.outputs) writer.string(2, output);
  writer.string(3, node.name).string(4, node.op);
  for (const [name, value] of Object.entries(node.attrs)) writer.message(5, writeAttr(name, value));
  return node.domain === '' ? writer : writer.string(7, node.domain);
}

function writeInitializer({ name, type, shape, data }: OnnxInitializer): Writer {
  const writer = new Writer();
  for (const dim of shape) writer.int(1, dim);
  return writer
    .int(2, OnnxType[type])
    .string(8, name)
    .blob(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function writeValueInfo({ name, type, shape }: OnnxValueInfo): Writer {
  const dims = new Writer();
  for (const dim of shape) dims.message(1, new Writer().int(1, dim));
  const tensorType = new Writer().int(1, OnnxType[type]).message(2, dims);
  return new Writer().string(1, name).message(2, new Writer().message(1, tensorType));
}

function writeGraph(model: OnnxModel, name: string): Writer {
  const graph = new Writer();
  for (const node of model.nodes) graph.message(1, writeNode(node));
  graph.string(2, name);
  for (const initializer of model.initializers) graph.message(5, writeInitializer(initializer));
  for (const input of model.inputs) graph.message(11, writeValueInfo(input));
  for (const output of model.outputs) graph.message(12, writeValueInfo(output));
  return graph;
}

/** The bytes of a ModelProto. */
export function encodeModel(model: OnnxModel): Uint8Array {
  return new Writer()
    .int(1, IR_VERSION)
    .message(7, writeGraph(model, 'program'))
    .message(8, new Writer().string(1, '').int(2, OPSET))
    .message(8, new Writer().string(1, 'com.microsoft').int(2, MICROSOFT_OPSET))
    .finish();
}
