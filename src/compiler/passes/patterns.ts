/** @file Patterns over a graph: what a value is computed from, with names for the parts. */
import type { Node, Value } from '../ir.js';
import { ruleOf } from '../rules/index.js';

/** What patterns may ask of the graph. */
export interface GraphReader {
  /** The node that makes a value; undefined for inputs and constants. */
  readonly producer: (value: Value) => Node | undefined;
  /** How many times a value is read. */
  readonly uses: (value: Value) => number;
}

/** Every way in which a value fits, as the parts found by name; none where it does not fit. */
export type Pattern<Found> = (value: Value, graph: GraphReader) => readonly Found[];

/** A pattern, or a number for a value that holds it everywhere. */
type Operand = Pattern<unknown> | number;

/** The named parts of all of these. */
type FoundIn<Operands extends readonly unknown[]> = Operands extends readonly [infer First, ...infer Rest]
  ? (First extends Pattern<infer Found> ? Found : unknown) & FoundIn<Rest>
  : unknown;

/** The number that a value holds everywhere, or null. */
function numberIn(value: Value, { producer }: GraphReader): number | null {
  const { data } = value;
  if (data) return data.length > 0 && data.every((x) => Object.is(x, data[0])) ? data[0]! : null;
  const node = producer(value);
  if (node?.op === 'Fill') return node.attrs.value as number;
  if (node?.op === 'OnesLike') return 1;
  return node?.op === 'ZerosLike' ? 0 : null;
}

/** Any value. */
export const any =
  <Name extends string>(name: Name): Pattern<Record<Name, Value>> =>
  (value) => [{ [name]: value } as Record<Name, Value>];

/** A value that holds one number everywhere. */
export const number =
  <Name extends string>(name: Name): Pattern<Record<Name, number>> =>
  (value, graph) => {
    const found = numberIn(value, graph);
    return found === null ? [] : [{ [name]: found } as Record<Name, number>];
  };

/** A value that is no scalar and fits. */
export const wide =
  <Found>(pattern: Pattern<Found>): Pattern<Found> =>
  (value, graph) =>
    value.shape.length === 0 ? [] : pattern(value, graph);

/** A value that is read once and fits. */
export const once =
  <Found>(pattern: Pattern<Found>): Pattern<Found> =>
  (value, graph) =>
    graph.uses(value) === 1 ? pattern(value, graph) : [];

/** The node that makes a value that fits. */
export const node =
  <Name extends string, Found>(name: Name, pattern: Pattern<Found>): Pattern<Found & Record<Name, Node>> =>
  (value, graph) => {
    const made = graph.producer(value);
    if (made === undefined) return [];
    return pattern(value, graph).map((found) => ({ ...found, [name]: made }) as Found & Record<Name, Node>);
  };

/** The only result of one of these operations, on operands that fit, in either order where the operation commutes. */
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
