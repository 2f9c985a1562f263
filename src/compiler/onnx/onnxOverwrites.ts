/** @file Outputs of ONNX programs that may share an input's memory. */
import { type Graph, producers, type Value } from '../program/ir.js';
import { sameShape } from '../program/tensors.js';
import { elementwiseRules } from '../rules/elementwiseRules.js';

/**
 * Whether an output may overwrite an input. ONNX Runtime reorders and fuses operations, so only data dependences are
 * certain: all readers of the input must be elementwise on its shape, and the output must depend on each of them.
 *
 * @returns a function of the numbers of an output and an input.
 */
export function overwritesOf(graph: Graph): (output: number, input: number) => boolean {
  const made = producers(graph);
  const isElementwise = (value: Value, { shape }: Value): boolean => {
    const { op } = made.get(value)!;
    return (op in elementwiseRules || op === 'Load' || op === 'Store') && sameShape(value.shape, shape);
  };
  return (output, input) => {
    const target = graph.outputs[output]!;
    const source = graph.inputs[input]!;
    if (graph.outputs.includes(source) || !made.has(target) || !isElementwise(target, source)) return false;
    const needed = new Set([target]);
    for (const node of [...graph.nodes].reverse())
      if (node.outputs.some((value) => needed.has(value))) for (const value of node.inputs) needed.add(value);
    return graph.nodes
      .filter(({ inputs }) => inputs.includes(source))
      .every(({ outputs: [result] }) => needed.has(result!) && isElementwise(result!, source));
  };
}
