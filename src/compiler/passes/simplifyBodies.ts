/** @file Simpler loops and choices: inputs that are constants or equal, and carries that never change. */
import { type Graph, type Node, rewrite, type Value } from '../program/ir.js';

type Replacements = ReadonlyMap<Value, Value>;

/** A graph whose reads of some values are reads of others. */
function substituted(graph: Graph, stands: Replacements): Graph {
  const current = (value: Value): Value => stands.get(value) ?? value;
  return {
    ...graph,
    nodes: graph.nodes.map((node) => ({ ...node, inputs: node.inputs.map(current) })),
    outputs: graph.outputs.map(current),
  };
}

/** Kinds of a body's inputs: carries are each for themselves, equal ones of another kind are one input. */
type Kind = 'carry' | 'xs' | 'free';

/** The inputs that are left of bodies' inputs, and what stands for the others, in each body. */
function standIns(given: readonly Value[], bodies: readonly Graph[], kindOf: (i: number) => Kind) {
  const stands = bodies.map(() => new Map<Value, Value>());
  const seen = new Map<string, number>();
  const kept: number[] = [];
  given.forEach((value, i) => {
    const kind = kindOf(i);
    const key = `${kind} ${value.id}`;
    const earlier = kind === 'carry' ? undefined : seen.get(key);
    const isConstant = kind === 'free' && value.data !== undefined;
    if (!isConstant && earlier === undefined) {
      kept.push(i);
      seen.set(key, i);
      return;
    }
    bodies.forEach(({ inputs }, k) => {
      stands[k]!.set(inputs[i]!, isConstant ? value : inputs[earlier!]!);
    });
  });
  return { kept, stands };
}

/** The bodies with the inputs that are left. */
const reduced = (bodies: readonly Graph[], { kept, stands }: ReturnType<typeof standIns>): readonly Graph[] =>
  bodies.map((body, k) => ({
    ...substituted(body, stands[k]!),
    inputs: kept.map((i) => body.inputs[i]!),
  }));

function simplerCond(node: Node): Node {
  const [predicate, ...operands] = node.inputs;
  const found = standIns(operands, node.bodies!, () => 'free');
  const inputs = [predicate!, ...found.kept.map((i) => operands[i]!)];
  return { ...node, inputs, bodies: reduced(node.bodies!, found) };
}

/** A loop whose idle carries, which the body returns as they were, are inputs of every turn. */
function withoutIdleCarries(node: Node): Node {
  const [body] = node.bodies as [Graph];
  const carries = node.attrs.carries as number;
  const isIdle = (_: unknown, i: number): boolean => i < carries && body.outputs[i] === body.inputs[i];
  const isKept = (_: unknown, i: number): boolean => !isIdle(_, i);
  const last = (values: readonly Value[]): Value[] => [...values.filter(isKept), ...values.filter(isIdle)];
  return {
    ...node,
    inputs: last(node.inputs),
    outputs: node.outputs.filter(isKept),
    attrs: { ...node.attrs, carries: carries - body.outputs.filter(isIdle).length },
    bodies: [{ ...body, inputs: last(body.inputs), outputs: body.outputs.filter(isKept) }],
  };
}

function simplerScan(node: Node): Node {
  const loop = withoutIdleCarries(node);
  const { carries, xs } = loop.attrs as { carries: number; xs: number };
  const kindOf = (i: number): Kind => (i < carries ? 'carry' : i < carries + xs ? 'xs' : 'free');
  const found = standIns(loop.inputs, loop.bodies!, kindOf);
  return {
    ...loop,
    inputs: found.kept.map((i) => loop.inputs[i]!),
    attrs: { ...loop.attrs, xs: found.kept.filter((i) => kindOf(i) === 'xs').length },
    bodies: reduced(loop.bodies!, found),
  };
}

/** What stands for a loop's results that need no loop: first carries of idle ones, and xs that are returned as ys. */
function known(node: Node): (Value | undefined)[] {
  const [body] = node.bodies as [Graph];
  const { carries, xs } = node.attrs as { carries: number; xs: number };
  return body.outputs.map((output, i) => {
    const from = body.inputs.indexOf(output);
    const isSame = i < carries ? from === i : from >= carries && from < carries + xs;
    return isSame ? node.inputs[from] : undefined;
  });
}

/** Simplifies all loops and choices of a graph, not those within bodies. */
export const simplifyBodies = (graph: Graph): Graph =>
  graph.nodes.some(({ bodies }) => bodies)
    ? rewrite(graph, (node, emit) => {
        if (node.bodies === undefined) {
          emit(node);
          return node.outputs;
        }
        if (node.op === 'Cond') {
          emit(simplerCond(node));
          return node.outputs;
        }
        emit(simplerScan(node));
        return known(node).map((value, i) => value ?? node.outputs[i]!);
      })
    : graph;
