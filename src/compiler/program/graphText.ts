/** @file Text form of a graph, one line per value. */
import type { Attrs, Graph, Node, Value } from './ir.js';
import { formatSpec } from './tensors.js';

/** Value names in program order: v0, v1, …. */
class ValueNames {
  private readonly names = new Map<Value, string>();

  of(value: Value): string {
    let name = this.names.get(value);
    if (name === undefined) {
      name = `v${this.names.size}`;
      this.names.set(value, name);
    }
    return name;
  }
}

/** Most elements of a constant that are printed. */
const SHOWN = 4;

function constantText({ data }: Value): string {
  const values = Array.from(data!.subarray(0, SHOWN), String).join(', ');
  return data!.length > SHOWN ? `${values}, … (${data!.length})` : values;
}

/** `{axis: 1, keepDims: true}`, without false attributes; '' if none are left. */
export function attrsText(attrs: Attrs): string {
  const entries = Object.entries(attrs).filter(([, value]) => value !== false);
  const text = ([name, value]: [string, unknown]): string =>
    `${name}: ${Array.isArray(value) ? `[${value.join(',')}]` : String(value)}`;
  return entries.length === 0 ? '' : ` {${entries.map(text).join(', ')}}`;
}

/** Appends the layer's scope to a line. */
export const withScopeText = (line: string, scope: string): string =>
  scope === '' ? line : `${line}  # ${scope}`;

/** Prints inputs, constants, nodes in order with their bodies, and outputs. @param specText tells the form of a value. */
export const graphText = (graph: Graph, specText: (value: Value) => string = formatSpec): string =>
  `${linesOf(graph, new ValueNames(), specText).join('\n')}\n`;

function linesOf(
  { inputs, nodes, outputs }: Graph,
  names: ValueNames,
  specText: (value: Value) => string,
): string[] {
  const given = (value: Value, what: string): string => `${names.of(value)} = ${specText(value)} ${what}`;
  const lines = inputs.map((value) => given(value, `input ${value.name ?? ''}`.trimEnd()));
  const constants = new Set(
    [...nodes.flatMap((node) => node.inputs), ...outputs].filter(({ data }) => data !== undefined),
  );
  lines.push(...[...constants].map((value) => given(value, `constant ${constantText(value)}`)));
  const nodeText = (node: Node): string => {
    const results = node.outputs.map((output) => names.of(output)).join(', ');
    const types = node.outputs.map(specText).join(', ');
    const operands = node.inputs.map((input) => names.of(input)).join(', ');
    return withScopeText(`${results} = ${types} ${node.op}(${operands})${attrsText(node.attrs)}`, node.scope);
  };
  for (const node of nodes) {
    lines.push(nodeText(node));
    for (const body of node.bodies ?? [])
      lines.push(...linesOf(body, names, specText).map((line) => `  ${line}`));
  }
  lines.push(`return ${outputs.map((output) => names.of(output)).join(', ')}`);
  return lines;
}
