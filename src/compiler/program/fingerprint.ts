/** @file Fingerprints of traced programs: equal where equal inputs give equal outputs, to the bit. */
import { createHash } from 'node:crypto';
import { expandComposites } from '../passes/index.js';
import { elementwiseRules } from '../rules/elementwiseRules.js';
import { isOwn } from '../rules/index.js';
import type { Program } from '../trace/tracedProgram.js';
import { executions } from './cost.js';
import type { Attrs, Graph, Node, Value } from './ir.js';
import { formatSpec, sizeOf } from './tensors.js';

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

/**
 * Operations whose operands give the same bits in either order. Of two zeros or two NaNs, Maximum and Minimum may give either.
 */
const COMMUTING = new Set(['Add', 'Multiply', 'Equal', 'NotEqual', 'LogicalAnd', 'LogicalOr', 'BitwiseAnd']);

/** Results of these are no products, whatever machine code computes them with; sums of two matrix products may be one. */
const SUMS = new Set([
  ...['Add', 'AddN', 'Sub', 'Sum', 'Max', 'Min', 'Maximum', 'Minimum', 'GatherV2', 'Concat', 'Relu'],
]);

/** Operations of which each element of the result follows from those of the operands at its place. */
const ELEMENTWISE = new Set([...Object.keys(elementwiseRules), 'Select', 'Cast', 'Identity']);

/** Names of what programs compute, which follow from what it is made of alone. */
class Definitions {
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
      this.names.set(value, constantText(value));
      return;
    }
    const operands = node.inputs.map((input) => this.names.get(input)!);
    if (this.commutes(node)) operands.sort();
    const inner = node.bodies?.map((body) => ` ${bodyFingerprint(body)}`) ?? [];
    const name = digest(`${headOf(node)} (${operands.join()})${inner.join('')}`);
    node.outputs.forEach((output, i) => {
      this.names.set(output, `${name}.${i}`);
    });
  }

  /**
   * Whether the order of the operands changes no bit. A sum of two products may be one fused instruction, which rounds one of
   * them alone: the first, or the second.
   */
  private commutes({ op, inputs }: Node): boolean {
    if (!COMMUTING.has(op)) return false;
    return op !== 'Add' || inputs[0]!.dtype !== 'float32' || inputs.some((input) => !this.isProduct(input));
  }

  private isProduct(value: Value): boolean {
    const maker = this.makers.get(value);
    return maker !== undefined && !SUMS.has(maker.op);
  }
}

function constantText(value: Value): string {
  const { buffer, byteOffset, byteLength } = value.data!;
  return `constant ${digest(new Uint8Array(buffer, byteOffset, byteLength))} ${formatSpec(value)}`;
}

/** An operation with its settings and its results. */
function headOf({ op, attrs, outputs }: Node): string {
  const settings = Object.keys(attrs)
    .sort()
    .map((name) => `${name}=${attrText(attrs[name]!)}`);
  return `${op} {${settings.join()}} ${outputs.map(formatSpec).join()}`;
}

/** Equal for programs that do the same operations on the same shapes: they cost the same, whatever their numbers are. */
export function operationsOf({ graph, inputPaths }: Program): string {
  const inputs = graph.inputs.map((input, i) => `${inputPaths[i]} ${formatSpec(input)}`);
  const nodes = executions(graph).map(
    ({ node: { op, outputs }, times }) => `${times} ${op} ${outputs.map(formatSpec).join()}`,
  );
  return digest([...inputs.sort(), ...nodes.sort()].join('\n'));
}

const bodyFingerprint = (graph: Graph): string =>
  fingerprint({
    graph,
    inputPaths: graph.inputs.map((_, i) => String(i)),
    outputPaths: graph.outputs.map((_, i) => String(i)),
  });

/**
 * The fingerprint of a program that was traced with its constants. Layers' names, the order in which independent operations and
 * inputs were recorded, that of operands where it changes no bit, and results that nobody reads make no difference.
 */
export function fingerprint({ graph: traced, inputPaths, outputPaths }: Traced): string {
  // What the name of an operation means that a program defines, only its meaning tells.
  const graph = expandComposites(traced, ({ op }) => isOwn(op));
  const definitions = new Definitions({ graph, inputPaths, outputPaths });
  const results = graph.outputs.map((output, i) => `${outputPaths[i]} ${definitions.nameOf(output)}`);
  return digest(results.sort().join('\n'));
}

/**
 * Fingerprints of the operations of each kind in each layer, in the order of the program: where two programs differ. Layers
 * that differ by numbers in their names are one.
 */
export function placesOf({
  graph,
  inputPaths,
}: Pick<Traced, 'graph' | 'inputPaths'>): Record<string, string> {
  const heads = new Map<Value, string>(graph.inputs.map((input, i) => [input, inputPaths[i]!]));
  const places = new Map<string, string[]>();
  for (const node of graph.nodes) {
    const operands = node.inputs.map((input) => heads.get(input) ?? constantText(input));
    if (COMMUTING.has(node.op)) operands.sort();
    const head = headOf(node);
    for (const output of node.outputs) heads.set(output, head);
    const inner = node.bodies?.map(bodyFingerprint) ?? [];
    const place = `${node.scope.replace(/\d+/g, '*')} ${node.op}`;
    const known = places.get(place);
    const text = `${head} (${operands.join()}) ${inner.join()}`;
    if (known === undefined) places.set(place, [text]);
    else known.push(text);
  }
  return Object.fromEntries(
    [...places].map(([place, texts]) => [place, digest(texts.sort().join('\n')).slice(0, 8)]),
  );
}

/**
 * Whether each result whose path `isMeant` follows element by element from inputs and from the value of `cut`, so that the order
 * of elements changes no bit of it.
 */
export function isElementwise(
  { graph, outputPaths }: Traced,
  isMeant: (path: string) => boolean,
  cut: string,
): boolean {
  const makers = new Map<Value, Node>();
  for (const node of graph.nodes) for (const output of node.outputs) makers.set(output, node);
  const seen = new Set<Value>(graph.outputs.filter((_, i) => outputPaths[i] === cut));
  const open = graph.outputs.filter((_, i) => isMeant(outputPaths[i]!));
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (seen.has(value)) continue;
    seen.add(value);
    const node = makers.get(value);
    if (node === undefined) continue;
    const isRepeated = ['Reshape', 'Tile'].includes(node.op) && sizeOf(node.inputs[0]!.shape) === 1;
    if ((!ELEMENTWISE.has(node.op) && !isRepeated) || node.bodies !== undefined) return false;
    open.push(...node.inputs);
  }
  return true;
}
