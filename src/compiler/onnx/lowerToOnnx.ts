/** @file Lowering of a graph to an ONNX model. */

import { eliminateDeadCode, expandComposites, fuseMatMulAdd, optimize } from '../passes/index.js';
import { type Graph, mapBodies, type Node, producers, type Value } from '../program/ir.js';
import { CompilerError, sizeOf } from '../program/tensors.js';
import { ruleOf } from '../rules/index.js';
import { type Lowering, OnnxBuilder } from './builder.js';
import { onnxTypeOf } from './controlLowerings.js';
import type { OnnxModel } from './proto.js';

/** ONNX name of input `i` of a program. */
export const inputName = (i: number): string => `in${i}`;

/**
 * An optimized graph prepared for ONNX Runtime: composites without a kernel are expanded, and the result is simplified.
 */
export function prepareForOnnx(graph: Graph): Graph {
  return fetchUnshaped(expandForOnnx(graph));
}

/** An optimized graph without the composites that ONNX has no kernel for, simplified. */
export function expandForOnnx(graph: Graph): Graph {
  const expanded = optimize(expandComposites(graph, ({ op }) => ruleOf(op).onnx !== undefined));
  return optimize(fuseMatMulAdd(mapBodies(expanded, expandForOnnx)));
}

/**
 * Removes reshapes before outputs, which would only copy: gradients of weights that are multiplied in another shape
 * than stored are returned as computed. The output's shape changes, its elements and their order do not.
 */
function fetchUnshaped(graph: Graph): Graph {
  const made = producers(graph);
  const source = (value: Value): Value => {
    const node = made.get(value);
    return node?.op === 'Reshape' || node?.op === 'ExpandDims' ? source(node.inputs[0]!) : value;
  };
  return eliminateDeadCode({ ...graph, outputs: graph.outputs.map(source) });
}

/** The lowering of a node, in its operation's record. */
export function loweringOf({ op, scope, inputs, outputs }: Node): Lowering {
  const { onnx } = ruleOf(op);
  if (onnx !== undefined) return onnx;
  throw new CompilerError(
    `The operation '${op}'${scope ? ` of layer '${scope}'` : ''} has no ONNX lowering. ` +
      `Shapes: ${inputs.map(({ shape }) => `[${shape.join(',')}]`).join(', ')}, ${sizeOf(outputs[0]!.shape)} elements out.`,
  );
}

/**
 * The ONNX model of a prepared graph. Inputs are named by `nameOf`, outputs by position. ONNX requires a node behind
 * every output, so inputs, constants and repeated outputs pass through an Identity.
 */
export function lowerToOnnx(
  graph: Graph,
  { builder = new OnnxBuilder(loweringOf), nameOf = inputName } = {},
): OnnxModel {
  const taken = new Set<string>();
  graph.inputs.forEach((input, i) => {
    builder.bind(input, nameOf(i));
    taken.add(nameOf(i));
  });
  for (const node of graph.nodes) builder.write(node);
  builder.scope = '';
  const outputs = graph.outputs.map((output) => {
    const name = builder.name(output);
    const own = output.data === undefined && !taken.has(name) ? name : builder.emit('Identity', [name]);
    taken.add(own);
    return { name: own, type: onnxTypeOf(output), shape: output.shape };
  });
  const inputs = graph.inputs.map((input, i) => ({
    name: nameOf(i),
    type: onnxTypeOf(input),
    shape: input.shape,
  }));
  return builder.finish(inputs, outputs);
}
