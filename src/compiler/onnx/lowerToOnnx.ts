/** @file Lowering of a graph to an ONNX model. */
import { type Graph, producers, type Value } from '../ir.js';
import { eliminateDeadCode, expandComposites, fuseMatMulAdd, optimize } from '../passes/index.js';
import { OnnxBuilder } from './builder.js';
import { loweringOf, lowerings } from './lowerings.js';
import { encodeModel, type OnnxModel } from './proto.js';

/** The name of input `i` of a program in ONNX. */
export const inputName = (i: number): string => `in${i}`;

/** An optimized graph as ONNX Runtime gets it: composites without a kernel expanded, and simplified again. */
export function prepareForOnnx(graph: Graph): Graph {
  const expanded = optimize(expandComposites(graph, (node) => node.op in lowerings));
  return fetchUnshaped(optimize(fuseMatMulAdd(expanded)));
}

/**
 * Outputs are bare memory to the caller, so a reshape in front of one would only copy: gradients of weights that are
 * stored in another shape than they are multiplied in are fetched as they come. The output's shape changes, its
 * elements and their order do not.
 */
function fetchUnshaped(graph: Graph): Graph {
  const made = producers(graph);
  const source = (value: Value): Value => {
    const node = made.get(value);
    return node?.op === 'Reshape' || node?.op === 'ExpandDims' ? source(node.inputs[0]!) : value;
  };
  return eliminateDeadCode({ ...graph, outputs: graph.outputs.map(source) });
}

/**
 * The ONNX model of a prepared graph. Inputs are named by `inputName`, outputs by their place in `outputs`. ONNX wants
 * a node of its own behind every output, so inputs, constants and repeated outputs pass through an Identity.
 */
export function lowerToOnnx(graph: Graph): OnnxModel {
  const builder = new OnnxBuilder();
  const taken = new Set<string>();
  graph.inputs.forEach((input, i) => {
    builder.bind(input, inputName(i));
    taken.add(inputName(i));
  });
  for (const node of graph.nodes) {
    builder.scope = node.scope;
    const outputs = loweringOf(node)(
      node,
      node.inputs.map((input) => builder.name(input)),
      builder,
    );
    node.outputs.forEach((output, i) => {
      builder.bind(output, outputs[i]!);
    });
  }
  builder.scope = '';
  const outputs = graph.outputs.map((output) => {
    const name = builder.name(output);
    const own = output.data === undefined && !taken.has(name) ? name : builder.emit('Identity', [name]);
    taken.add(own);
    return { name: own, type: output.dtype, shape: output.shape };
  });
  const inputs = graph.inputs.map((input, i) => ({
    name: inputName(i),
    type: input.dtype,
    shape: input.shape,
  }));
  return builder.finish(inputs, outputs);
}

/** The bytes of the ONNX model of a traced graph. */
export function exportGraph(graph: Graph): Uint8Array {
  return encodeModel(lowerToOnnx(prepareForOnnx(optimize(graph))));
}
