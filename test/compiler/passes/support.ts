/** @file Builds graphs by hand and runs them as they stand, without any pass of the product. */
import * as ort from 'onnxruntime-node';
import type { DType, HostArray, HostTensor, Shape } from '../../../src/compiler/index.js';
import { inputName, lowerToOnnx } from '../../../src/compiler/onnx/lowerToOnnx.js';
import { encodeModel } from '../../../src/compiler/onnx/proto.js';
import { expandComposites } from '../../../src/compiler/passes/index.js';
import type { Attrs, Graph, Node, Value } from '../../../src/compiler/program/ir.js';
import { mapBodies, newValue } from '../../../src/compiler/program/ir.js';
import { hostArrayFrom } from '../../../src/compiler/program/tensors.js';
import { ruleOf } from '../../../src/compiler/rules/index.js';

/** A graph under construction. */
export class GraphBuilder {
  private readonly inputs: Value[] = [];
  private readonly nodes: Node[] = [];

  input(shape: Shape, dtype: DType = 'float32'): Value {
    const value = newValue({ shape, dtype }, { name: `in${this.inputs.length}` });
    this.inputs.push(value);
    return value;
  }

  constant(shape: Shape, values: number[], dtype: DType = 'float32'): Value {
    return newValue({ shape, dtype }, { data: hostArrayFrom(dtype, values) });
  }

  /** Adds a node; its outputs are what the rule infers. */
  all(op: string, inputs: Value[], attrs: Attrs = {}): Value[] {
    const outputs = ruleOf(op)
      .infer(inputs, attrs, [])
      .map((spec) => newValue(spec));
    this.nodes.push({ op, inputs, outputs, attrs, scope: '' });
    return outputs;
  }

  node(op: string, inputs: Value[], attrs: Attrs = {}): Value {
    return this.all(op, inputs, attrs)[0]!;
  }

  graph(...outputs: Value[]): Graph {
    return { inputs: this.inputs, outputs, nodes: this.nodes };
  }
}

/** `Multiply in0 2 -> #0`: inputs by place, constants by value, results by the order of their making. */
export function describeGraph(graph: Graph): string[] {
  const names = new Map(graph.inputs.map((value, i) => [value, `in${i}`]));
  const nameOf = (value: Value): string =>
    value.data
      ? value.data.length === 1
        ? String(value.data[0])
        : `[${value.data}]`
      : (names.get(value) ?? '?');
  let next = 0;
  const lines = graph.nodes.map((node) => {
    const inputs = node.inputs.map(nameOf);
    for (const output of node.outputs) names.set(output, `#${next++}`);
    const attrs = Object.entries(node.attrs).map(([key, value]) => `${key}=${value}`);
    return [node.op, ...inputs, ...attrs, '->', ...node.outputs.map(nameOf)].join(' ');
  });
  return [...lines, `return ${graph.outputs.map(nameOf).join(' ')}`];
}

/** Asserts that every value is made before it is read, and once. */
function checkOrder(graph: Graph): void {
  const known = new Set<Value>(graph.inputs);
  const read = (value: Value): void => {
    if (!known.has(value) && !value.data) throw new Error(`value ${value.id} is read before it is made`);
  };
  for (const node of graph.nodes) {
    node.inputs.forEach(read);
    for (const output of node.outputs) {
      if (known.has(output)) throw new Error(`value ${output.id} is made twice`);
      known.add(output);
    }
  }
  graph.outputs.forEach(read);
}

/** A graph without the composites that ONNX has no kernel for, those in bodies included. */
const plain = (graph: Graph): Graph =>
  mapBodies(
    expandComposites(graph, ({ op }) => ruleOf(op).onnx !== undefined),
    plain,
  );

/** The outputs of a graph, lowered node by node; ONNX Runtime's own optimizations are off. */
export async function runGraph(graph: Graph, inputs: readonly HostTensor[]): Promise<HostTensor[]> {
  checkOrder(graph);
  const model = lowerToOnnx(plain(graph));
  const session = await ort.InferenceSession.create(encodeModel(model), {
    graphOptimizationLevel: 'disabled',
    intraOpNumThreads: 1,
    logSeverityLevel: 3,
  });
  const feeds = inputs.map(({ dtype, data, shape }, i) => [
    inputName(i),
    new ort.Tensor(dtype, data as Float32Array, shape),
  ]);
  const results = await session.run(Object.fromEntries(feeds));
  await session.release();
  return graph.outputs.map(({ shape, dtype }, i) => ({
    shape,
    dtype,
    data: results[model.outputs[i]!.name]!.data as HostArray,
  }));
}
