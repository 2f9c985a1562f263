/** @file Relations between the dimensions of values: those of each operation, and those between loops and their bodies. */
import type { Graph, Node, Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import type { Dims, Factors } from '../rules/factors.js';
import { ruleOf } from '../rules/index.js';

/** Values whose dimensions are split together. */
export interface Relation {
  readonly values: readonly Value[];
  readonly dims: readonly Dims[];
  readonly sizes: readonly number[];
  /** Whether something is added up, so that a split costs a collective. */
  readonly isSum: boolean;
}

const known = new WeakMap<Node, Factors | null>();

/** The factors of a call; undefined where every rank computes all of it. */
export function factorsOf(node: Node): Factors | undefined {
  let found = known.get(node);
  if (found === undefined) {
    found = ruleOf(node.op).factors?.(node.inputs, node.outputs, node.attrs) ?? null;
    known.set(node, found);
  }
  return found ?? undefined;
}

/** Factors that inputs have and no output. */
export function summedFactors({ inputs, outputs }: Pick<Factors, 'inputs' | 'outputs'>): Set<number> {
  const kept = new Set(outputs.flat(2));
  return new Set(inputs.flat(2).filter((factor) => !kept.has(factor)));
}

/** Values with the same dimensions; `skipped` says how many leading ones a value has before these. */
function alike(values: readonly Value[], skipped: readonly number[] = []): Relation {
  const { shape } = values[0]!;
  const sizes = shape.slice(skipped[0] ?? 0);
  const dims = values.map(
    (_, i): Dims => [
      ...new Array<number[]>(skipped[i] ?? 0).fill([]),
      ...sizes.map((_size, factor) => [factor]),
    ],
  );
  return { values, dims, sizes, isSum: false };
}

/** Tensors of turns that don't need each other, so that ranks may share them: those along the first axes. */
const turns = (values: readonly Value[]): Relation => ({
  values,
  dims: values.map(({ shape }) => shape.map((_, dim) => (dim === 0 ? [0] : []))),
  sizes: [values[0]!.shape[0]!],
  isSum: false,
});

/** How many inputs of a loop are carried from turn to turn, and how many are sliced. */
export const loopCounts = ({ attrs }: Node) => attrs as { readonly carries: number; readonly xs: number };

/** Relations between a loop, or a choice, and its bodies. */
function borders(node: Node): Relation[] {
  const { inputs, outputs, bodies = [] } = node;
  if (node.op !== 'Scan') {
    const [, ...operands] = inputs;
    return [
      ...operands.map((operand, i) => alike([operand, ...bodies.map((body) => body.inputs[i]!)])),
      ...outputs.map((output, i) => alike([output, ...bodies.map((body) => body.outputs[i]!)])),
    ];
  }
  const { carries, xs } = loopCounts(node);
  const [body] = bodies as [Graph];
  return [
    ...(carries === 0 ? [turns([...inputs.slice(0, xs), ...outputs])] : []),
    ...inputs.map((input, i) => {
      const inner = body.inputs[i]!;
      if (i < carries) return alike([input, inner, body.outputs[i]!, outputs[i]!]);
      return i < carries + xs ? alike([input, inner], [1]) : alike([input, inner]);
    }),
    ...outputs.slice(carries).map((output, i) => alike([output, body.outputs[carries + i]!], [1])),
  ];
}

/** The relations of a program in order, those of bodies in the place of their loops. */
export function relationsOf({ nodes }: Graph): Relation[] {
  return nodes.flatMap((node) => {
    if (node.bodies !== undefined) return [...borders(node), ...node.bodies.flatMap(relationsOf)];
    const factors = factorsOf(node);
    if (factors === undefined) return [];
    const values = [...node.inputs, ...node.outputs];
    const dims = [...factors.inputs, ...factors.outputs];
    // The largest decides: most would have to be moved of it.
    const order = [...values.keys()].sort((i, j) => sizeOf(values[j]!.shape) - sizeOf(values[i]!.shape));
    return [
      {
        values: order.map((i) => values[i]!),
        dims: order.map((i) => dims[i]!),
        sizes: factors.sizes,
        isSum: summedFactors(factors).size > 0,
      },
    ];
  });
}
