/** @file Fingerprints of traced programs: equal where equal inputs give equal outputs, to the bit. */
import { createHash } from 'node:crypto';
import { expandComposites } from '../passes/index.js';
import { isOwn } from '../rules/index.js';
import type { Program } from '../trace/tracedProgram.js';
import { executions } from './cost.js';
import type { Attrs, Graph, Node, Value } from './ir.js';
import { formatSpec } from './tensors.js';

type Attr = Attrs[string];
type Traced = Pick<Program, 'graph' | 'inputPaths' | 'outputPaths'>;

/** Numbers that print alike are told apart. */
const numberText = (value: number): string => (Object.is(value, -0) ? '-0' : String(value));

/** An attribute as text: another text for every other value. */
export function attrText(value: Attr): string {
  if (typeof value === 'number') return numberText(value);
  return typeof value === 'object' ? `[${value.map(numberText).join()}]` : JSON.stringify(value);
}

const digest = (...parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64');
};

/** Texts of what programs compute, each once, in an order that follows from what the results are made of alone. */
class Definitions {
  private readonly numbers = new Map<string, number>();
  private readonly names = new Map<Value, string>();
  private readonly makers = new Map<Value, Node>();

  constructor({ graph, inputPaths }: Traced) {
    for (const node of graph.nodes) for (const output of node.outputs) this.makers.set(output, node);
    graph.inputs.forEach((input, i) => {
      this.names.set(input, `input ${JSON.stringify(inputPaths[i])} ${formatSpec(input)}`);
    });
  }

  /** Values that are computed from the same in the same way have the same name. */
  nameOf(value: Value): string {
    // A program is deeper than a stack.
    const waiting = [value];
    for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
      const node = this.makers.get(next);
      const missing = this.names.has(next)
        ? []
        : (node?.inputs.filter((input) => !this.names.has(input)) ?? []);
      if (missing.length > 0) waiting.push(...missing.reverse());
      else {
        waiting.pop();
        if (!this.names.has(next)) this.define(next, node);
      }
    }
    return this.names.get(value)!;
  }

  private define(value: Value, node: Node | undefined): void {
    if (node === undefined) {
      const { buffer, byteOffset, byteLength } = value.data!;
      const contents = digest(new Uint8Array(buffer, byteOffset, byteLength));
      this.names.set(value, `constant ${contents} ${formatSpec(value)}`);
      return;
    }
    const { op, inputs, outputs, attrs, bodies = [] } = node;
    const settings = Object.keys(attrs)
      .sort()
      .map((name) => `${name}=${attrText(attrs[name]!)}`);
    const operands = inputs.map((input) => this.names.get(input));
    const inner = bodies.map((body) => ` ${bodyFingerprint(body)}`);
    const text = `${op} {${settings.join()}} (${operands.join()}) ${outputs.map(formatSpec).join()}${inner.join('')}`;
    let number = this.numbers.get(text);
    if (number === undefined) this.numbers.set(text, (number = this.numbers.size));
    outputs.forEach((output, i) => {
      this.names.set(output, `${number}.${i}`);
    });
  }

  get texts(): Iterable<string> {
    return this.numbers.keys();
  }
}

/** Equal for programs that do the same operations on the same shapes: they cost the same, whatever their numbers are. */
export function operationsOf({ graph, inputPaths }: Program): string {
  const inputs = graph.inputs.map((input, i) => `${inputPaths[i]} ${formatSpec(input)}`);
  const nodes = executions(graph).map(
    ({ node: { op, outputs }, times }) => `${times} ${op} ${outputs.map(formatSpec).join()}`,
  );
  return digest([...inputs, ...nodes].join('\n'));
}

const bodyFingerprint = (graph: Graph): string =>
  fingerprint({
    graph,
    inputPaths: graph.inputs.map((_, i) => String(i)),
    outputPaths: graph.outputs.map((_, i) => String(i)),
  });

/**
 * The fingerprint of a program that was traced with its constants. Layers' names, the order in which operations that do
 * not depend on each other were recorded, and results that nobody reads make no difference.
 */
export function fingerprint({ graph: traced, inputPaths, outputPaths }: Traced): string {
  // What the name of an operation means that a program defines, only its meaning tells.
  const graph = expandComposites(traced, ({ op }) => isOwn(op));
  const definitions = new Definitions({ graph, inputPaths, outputPaths });
  const results = graph.outputs.map((output, i) => [outputPaths[i], definitions.nameOf(output)]);
  return digest([...definitions.texts, JSON.stringify(results)].join('\n'));
}
