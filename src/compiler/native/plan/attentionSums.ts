/** @file Logarithms of sums in place of attention's weights, where only gradients read these, in the turns of another loop too. */
import { GRADIENT_WEIGHTS, GRADIENTS } from '../../ops/attentionForms.js';
import { type Graph, mapValues, type Node, newValue, type Value } from '../../program/ir.js';

/** An operand of a node. */
interface Read {
  readonly node: Node;
  readonly at: number;
}

/** Reads of values, those in bodies of loops and choices among them. */
class Reads {
  private readonly ofValue = new Map<Value, Read[]>();
  /** Stacks of what turns of a loop return; undefined for other results. */
  private readonly results = new Map<Value, (Value | undefined)[]>();
  readonly attentions: Node[] = [];

  constructor(graph: Graph) {
    this.add(graph, () => undefined);
  }

  private add(graph: Graph, stackOf: (i: number) => Value | undefined): void {
    for (const node of graph.nodes) {
      if (node.op === 'Attention') this.attentions.push(node);
      node.inputs.forEach((input, at) => {
        this.ofValue.set(input, [...(this.ofValue.get(input) ?? []), { node, at }]);
      });
      const isStacked = (i: number): boolean => node.op === 'Scan' && i >= (node.attrs.carries as number);
      for (const body of node.bodies ?? [])
        this.add(body, (i) => (isStacked(i) ? node.outputs[i] : undefined));
    }
    graph.outputs.forEach((output, i) => {
      this.results.set(output, [...(this.results.get(output) ?? []), stackOf(i)]);
    });
  }

  /**
   * Weights, their stacks over the turns of loops, and the slices of these in other loops; undefined where anything but a
   * gradient reads them.
   */
  hidden(weights: Value): Value[] | undefined {
    const found = [weights];
    for (const value of found) {
      for (const { node, at } of this.ofValue.get(value) ?? []) {
        if (GRADIENTS.includes(node.op) && at === GRADIENT_WEIGHTS) continue;
        const { carries, xs } = node.attrs as { carries: number; xs: number };
        const isSliced = node.op === 'Scan' && at >= carries && at < carries + xs;
        if (!isSliced) return undefined;
        found.push(node.bodies![0]!.inputs[at]!);
      }
      for (const stack of this.results.get(value) ?? []) {
        if (stack === undefined) return undefined;
        found.push(stack);
      }
    }
    return found;
  }
}

/**
 * Replaces weights [B, N, T, S] by the logarithms of the sums of exponentials [B, N, T], from which gradients compute them
 * again. Attention of which anything else reads the weights is left, and will be expanded.
 */
export function withLogSums(graph: Graph): Graph {
  const reads = new Reads(graph);
  const stands = new Map<Value, Value>();
  for (const { outputs } of reads.attentions)
    for (const value of reads.hidden(outputs[1]!) ?? [])
      stands.set(value, newValue({ ...value, shape: value.shape.slice(0, -1) }));
  return stands.size === 0 ? graph : mapValues(graph, (value) => stands.get(value) ?? value);
}
