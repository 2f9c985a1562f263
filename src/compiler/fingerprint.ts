/** @file Fingerprints of traced programs: equal where equal inputs give equal outputs, to the bit. */
import { createHash } from 'node:crypto';
import type { Attrs, Node, Value } from './ir.js';
import { formatSpec } from './tensors.js';
import type { Program } from './tracedProgram.js';

type Attr = Attrs[string];

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

/** Names each value by all that it is computed from. */
class Names {
  private readonly names = new Map<Value, string>();

  input(value: Value, path: string): void {
    this.names.set(value, `input ${path} ${formatSpec(value)}`);
  }

  node({ op, inputs, outputs, attrs }: Node): void {
    const settings = Object.keys(attrs)
      .sort()
      .map((name) => `${name}=${attrText(attrs[name]!)}`);
    const operands = inputs.map((input) => this.of(input));
    const name = digest(JSON.stringify([op, settings, operands]));
    outputs.forEach((output, i) => {
      this.names.set(output, `${name}[${i}] ${formatSpec(output)}`);
    });
  }

  of(value: Value): string {
    let name = this.names.get(value);
    if (name === undefined) {
      const { buffer, byteOffset, byteLength } = value.data!;
      const contents = digest(new Uint8Array(buffer, byteOffset, byteLength));
      this.names.set(value, (name = `constant ${contents} ${formatSpec(value)}`));
    }
    return name;
  }
}

/** Equal for programs that do the same operations on the same shapes: they cost the same, whatever their numbers are. */
export function operationsOf({ graph, inputPaths }: Program): string {
  const inputs = graph.inputs.map((input, i) => `${inputPaths[i]} ${formatSpec(input)}`);
  const nodes = graph.nodes.map(({ op, outputs }) => `${op} ${outputs.map(formatSpec).join()}`);
  return digest([...inputs, ...nodes].join('\n'));
}

/**
 * The fingerprint of a program that was traced with its constants. Layers' names, the order in which operations that do
 * not depend on each other were recorded, and results that nobody reads make no difference.
 */
export function fingerprint({ graph, inputPaths, outputPaths }: Program): string {
  const names = new Names();
  graph.inputs.forEach((input, i) => {
    names.input(input, inputPaths[i]!);
  });
  for (const node of graph.nodes) names.node(node);
  return digest(JSON.stringify(graph.outputs.map((output, i) => [outputPaths[i], names.of(output)])));
}
