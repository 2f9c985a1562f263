/**
 * @file Protobuf messages of an ONNX model and their encoding, with the field numbers of onnx.proto (ONNX IR version
 * 10).
 */
import { ProtobufMessage } from '../../files/index.js';
import type { HostArray, Shape } from '../program/tensors.js';

/** ONNX element types (TensorProto.DataType). */
export const OnnxType = {
  float32: 1,
  double: 11,
  uint32: 12,
  int32: 6,
  int64: 7,
  bool: 9,
  bfloat16: 16,
  float16: 10,
  int8: 3,
  uint8: 2,
} as const;
export type OnnxTypeName = keyof typeof OnnxType;

/**
 * Attribute values: integers are INT, `{ float }` is FLOAT, lists are INTS, `{ graph }` is the body of a control-flow
 * operator.
 */
export type OnnxAttr =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | { readonly graph: OnnxModel };

const AttrType = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;

function writeAttr(name: string, value: OnnxAttr): ProtobufMessage {
  const message = new ProtobufMessage().string(1, name);
  if (typeof value === 'number') return message.int(3, value).int(20, AttrType.int);
  if (typeof value === 'string') return message.string(4, value).int(20, AttrType.string);
  if ('float' in value) return message.float(2, value.float).int(20, AttrType.float);
  if ('graph' in value) return message.message(6, writeGraph(value.graph, 'body')).int(20, AttrType.graph);
  for (const item of value) message.int(8, item);
  return message.int(20, AttrType.ints);
}

/** A node of the model. */
export interface OnnxNode {
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attrs: Readonly<Record<string, OnnxAttr>>;
  /** Displayed by ONNX Runtime's profiler. */
  readonly name: string;
}

/** A constant of the model. */
export interface OnnxInitializer {
  readonly name: string;
  readonly type: OnnxTypeName;
  readonly shape: Shape;
  readonly data: HostArray | BigInt64Array | Float64Array;
}

/** Name, type and shape of an input or output. */
export interface OnnxValueInfo {
  readonly name: string;
  readonly type: OnnxTypeName;
  readonly shape: Shape;
  /** The shape with names in the place of dimensions that may have any size; default: `shape`. */
  readonly dims?: readonly (number | string)[];
}

/** A complete model. */
export interface OnnxModel {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly initializers: readonly OnnxInitializer[];
  readonly nodes: readonly OnnxNode[];
}

/** Operator-set versions that the lowering targets. */
const OPSET = 20;
const MICROSOFT_OPSET = 1;
const IR_VERSION = 10;

function writeNode(node: OnnxNode): ProtobufMessage {
  const message = new ProtobufMessage();
  for (const input of node.inputs) message.string(1, input);
  for (const output of node.outputs) message.string(2, output);
  message.string(3, node.name).string(4, node.op);
  for (const [name, value] of Object.entries(node.attrs)) message.message(5, writeAttr(name, value));
  return node.domain === '' ? message : message.string(7, node.domain);
}

function writeInitializer({ name, type, shape, data }: OnnxInitializer): ProtobufMessage {
  const message = new ProtobufMessage();
  for (const dim of shape) message.int(1, dim);
  return message
    .int(2, OnnxType[type])
    .string(8, name)
    .blob(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function writeValueInfo({ name, type, shape, dims = shape }: OnnxValueInfo): ProtobufMessage {
  const written = new ProtobufMessage();
  for (const dim of dims) {
    const message = new ProtobufMessage();
    written.message(1, typeof dim === 'number' ? message.int(1, dim) : message.string(2, dim));
  }
  const tensorType = new ProtobufMessage().int(1, OnnxType[type]).message(2, written);
  return new ProtobufMessage().string(1, name).message(2, new ProtobufMessage().message(1, tensorType));
}

function writeGraph(model: OnnxModel, name: string): ProtobufMessage {
  const graph = new ProtobufMessage();
  for (const node of model.nodes) graph.message(1, writeNode(node));
  graph.string(2, name);
  for (const initializer of model.initializers) graph.message(5, writeInitializer(initializer));
  for (const input of model.inputs) graph.message(11, writeValueInfo(input));
  for (const output of model.outputs) graph.message(12, writeValueInfo(output));
  return graph;
}

/** The bodies of a node of control flow; none of others. */
export const nodeBodies = ({ attrs }: OnnxNode): OnnxModel[] =>
  Object.values(attrs).flatMap((attr) => (typeof attr === 'object' && 'graph' in attr ? [attr.graph] : []));

/** The domains of a model's operators, those of bodies included. */
const domainsOf = ({ nodes }: OnnxModel): Set<string> =>
  new Set(
    nodes.flatMap((node) => [node.domain, ...nodeBodies(node).flatMap((body) => [...domainsOf(body)])]),
  );

/** A file's description of its model. */
export interface OnnxOrigin {
  /** Name of the graph; 'program' by default. */
  readonly name?: string;
  readonly description?: string;
  /** The program that wrote the file, and its version. */
  readonly producer?: { readonly name: string; readonly version?: string };
  /** Further facts by name. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Encodes a ModelProto. It names ONNX Runtime's operators only if it has any. */
export function encodeModel(
  model: OnnxModel,
  { name = 'program', description, producer, metadata = {} }: OnnxOrigin = {},
): Uint8Array {
  const message = new ProtobufMessage().int(1, IR_VERSION);
  if (producer !== undefined) message.string(2, producer.name);
  if (producer?.version !== undefined) message.string(3, producer.version);
  if (description !== undefined) message.string(6, description);
  message.message(7, writeGraph(model, name)).message(8, new ProtobufMessage().string(1, '').int(2, OPSET));
  const domains = domainsOf(model);
  domains.delete('');
  for (const domain of domains)
    message.message(8, new ProtobufMessage().string(1, domain).int(2, MICROSOFT_OPSET));
  for (const [key, value] of Object.entries(metadata))
    message.message(14, new ProtobufMessage().string(1, key).string(2, value));
  return message.bytes();
}
