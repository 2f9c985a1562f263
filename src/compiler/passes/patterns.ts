/** @file Patterns over a graph: match a value by the operations behind it, and name the matched values. */
import type { Node, Value } from '../program/ir.js';
import { fillOf } from '../program/tensors.js';
import { ruleOf } from '../rules/index.js';

/** Queries of a graph that patterns use. */
export interface GraphReader {
  /** The node that makes a value; undefined for inputs and constants. */
  readonly producer: (value: Value) => Node | undefined;
  /** Number of reads of a value. */
  readonly uses: (value: Value) => number;
}

/** All matches of a value, as values by name; empty without a match. */
export type Pattern<Found> = (value: Value, graph: GraphReader) => readonly Found[];

/** A pattern, or a number that matches values filled with it. */
type Operand = Pattern<unknown> | number;

/** Intersection of the operands' matches. */
type FoundIn<Operands extends readonly unknown[]> = Operands extends readonly [infer First, ...infer Rest]
  ? (First extends Pattern<infer Found> ? Found : unknown) & FoundIn<Rest>
  : unknown;

/** The number that fills a value, or null. */
function numberIn(value: Value, { producer }: GraphReader): number | null {
  const { data } = value;
  if (data) return fillOf(data);
  const node = producer(value);
  if (node?.op === 'Fill') return node.attrs.value as number;
  if (node?.op === 'OnesLike') return 1;
  return node?.op === 'ZerosLike' ? 0 : null;
}

/** Matches any value. */
export const any =
  <Name extends string>(name: Name): Pattern<Record<Name, Value>> =>
  (value) => [{ [name]: value } as Record<Name, Value>];

/** Matches a value filled with one number. */
export const number =
  <Name extends string>(name: Name): Pattern<Record<Name, number>> =>
  (value, graph) => {
    const found = numberIn(value, graph);
    return found === null ? [] : [{ [name]: found } as Record<Name, number>];
  };

/** Matches a non-scalar value. */
export const wide =
  <Found>(pattern: Pattern<Found>): Pattern<Found> =>
  (value, graph) =>
    value.shape.length === 0 ? [] : pattern(value, graph);

/** Matches a value that is read once. */
export const once =
  <Found>(pattern: Pattern<Found>): Pattern<Found> =>
  (value, graph) =>
    graph.uses(value) === 1 ? pattern(value, graph) : [];

/** Matches a value and its node. */
export const node =
  <Name extends string, Found>(name: Name, pattern: Pattern<Found>): Pattern<Found & Record<Name, Node>> =>
  (value, graph) => {
    const made = graph.producer(value);
    if (made === undefined) return [];
    return pattern(value, graph).map((found) => ({ ...found, [name]: made }) as Found & Record<Name, Node>);
  };

/** Matches the only result of one of these operations on matching operands, in either order if it commutes. */
export function op<const Operands extends readonly Operand[]>(
  names: string | readonly string[],
  ...operands: Operands
): Pattern<FoundIn<Operands>> {
  const patterns = operands.map((operand) => (typeof operand === 'number' ? literal(operand) : operand));
  const inOrder = (inputs: readonly Value[], graph: GraphReader): object[] =>
    patterns.reduce<object[]>(
      (found, pattern, i) =>
        found.length === 0
          ? found
          : (pattern(inputs[i]!, graph) as object[]).flatMap((next) =>
              found.map((before) => ({ ...before, ...next })),
            ),
      [{}],
    );
  const fits = (name: string): boolean => (typeof names === 'string' ? name === names : names.includes(name));
  return (value, graph) => {
    const made = graph.producer(value);
    if (made === undefined || !fits(made.op)) return [];
    const { inputs, outputs } = made;
    if (outputs.length !== 1 || inputs.length !== patterns.length) return [];
    const commutes = ruleOf(made.op).commutes === true;
    return [inputs, ...(commutes ? [inputs.toReversed()] : [])].flatMap((order) =>
      inOrder(order, graph),
    ) as FoundIn<Operands>[];
  };
}

const literal =
  (expected: number): Pattern<unknown> =>
  (value, graph) =>
    numberIn(value, graph) === expected ? [{}] : [];
