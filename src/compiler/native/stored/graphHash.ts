/** @file Hash of graphs: graphs with equal hashes are lowered alike. */
import { createHash } from 'node:crypto';
import { attrText } from '../../program/fingerprint.js';
import type { Graph, Node, Value } from '../../program/ir.js';
import { formatSpec, type HostArray } from '../../program/tensors.js';

/** Writes graphs as lines; values are numbered in order of appearance. */
class Writer {
  readonly lines: string[] = [];
  readonly constants: HostArray[] = [];
  private readonly numbers = new Map<Value, number>();

  write({ inputs, nodes, outputs }: Graph): void {
    for (const input of inputs)
      this.lines.push(`${this.numberOf(input)} input ${formatSpec(input)} ${JSON.stringify(input.name)}`);
    for (const node of nodes) {
      this.lines.push(this.nodeText(node));
      for (const body of node.bodies ?? []) this.write(body);
    }
    this.lines.push(`return ${this.numbersOf(outputs)}`);
  }

  private nodeText({ op, inputs, outputs, attrs, scope }: Node): string {
    const operands = this.numbersOf(inputs);
    let text = `${this.numbersOf(outputs)} ${outputs.map(formatSpec).join(' ')} ${op} ${operands}`;
    for (const name in attrs) text += ` ${name}=${attrText(attrs[name]!)}`;
    return `${text} ${JSON.stringify(scope)}`;
  }

  private numbersOf = (values: readonly Value[]): string =>
    values.map((value) => this.numberOf(value)).join();

  private numberOf(value: Value): number {
    const known = this.numbers.get(value);
    if (known !== undefined) return known;
    const number = this.numbers.size;
    this.numbers.set(value, number);
    if (value.data !== undefined) {
      this.lines.push(`${number} constant ${formatSpec(value)}`);
      this.constants.push(value.data);
    }
    return number;
  }
}

/** Hash of several graphs of one program. */
export interface HashedGraphs {
  /** Hexadecimal hash of operations, attributes, shapes, dtypes, input names, layers, and the bytes of constants. */
  readonly hash: string;
  /** The constants of all graphs, in order of appearance. */
  readonly constants: readonly HostArray[];
}

/** Hashes graphs independently of ids of values and nodes, which differ between traces. */
export function hashGraphs(graphs: readonly Graph[]): HashedGraphs {
  const writer = new Writer();
  for (const graph of graphs) writer.write(graph);
  const hash = createHash('sha256').update(writer.lines.join('\n'));
  // The lines determine their lengths.
  for (const { buffer, byteOffset, byteLength } of writer.constants)
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  return { hash: hash.digest('hex'), constants: writer.constants };
}
