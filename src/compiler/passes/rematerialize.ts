/**
 * @file Rematerialisation (Chen et al., 2016, "Training deep nets with sublinear memory cost"): gradients of
 * checkpointed regions read values that are computed again, behind a barrier, instead of those of the forward pass.
 */

import { type Graph, type Node, newValue, producers, type Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import { ruleOf } from '../rules/index.js';
import { GRADIENT, readScope } from '../trace/gradientScopes.js';
import { type CheckpointPolicy, isWithinRegion, type Mark, type Region } from '../trace/regions.js';

/** A traced graph and its checkpoints. */
export interface Marked extends Graph {
  readonly marks: ReadonlyMap<Node, Mark>;
  readonly names: ReadonlyMap<Value, string>;
}

/** Whether the forward pass keeps the outputs of `node` for the gradient. */
export function isKept(policy: CheckpointPolicy, node: Node, names: Marked['names']): boolean {
  if (policy === 'nothing') return false;
  if (policy === 'everything') return true;
  if (typeof policy !== 'string')
    return node.outputs.some((output) => policy.includes(names.get(output) ?? ''));
  if (ruleOf(node.op).isProduct !== true) return false;
  if (policy === 'dots') return true;
  const matrix = node.inputs[1]!;
  return node.op === 'BatchMatMul' && sizeOf(matrix.shape.slice(0, -2)) === 1;
}

/** Forward nodes that are computed again so that `wanted` exist, in order; what they read besides is kept. */
function closure(
  wanted: ReadonlySet<Value>,
  made: ReadonlyMap<Value, Node>,
  isRecomputed: (node: Node) => boolean,
): Set<Node> {
  const found = new Set<Node>();
  const pending = [...wanted];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    const node = made.get(value);
    if (node === undefined || found.has(node) || !isRecomputed(node)) continue;
    found.add(node);
    pending.push(...node.inputs);
  }
  return found;
}

/** A region's nodes, by pass. */
interface Passes {
  readonly forward: ReadonlySet<Node>;
  readonly backward: readonly Node[];
}

/**
 * A value that exists once the gradient has come to the region: one from behind its forward pass that its gradient
 * reads, or else its last result.
 */
function arrivalOf(nodes: readonly Node[], { forward, backward }: Passes, before: number): Value {
  const end = nodes.findLastIndex((node) => forward.has(node));
  const later = new Set(nodes.slice(end + 1, before).flatMap(({ outputs }) => outputs));
  const own = new Set(backward.flatMap(({ outputs }) => outputs));
  const fits = (value: Value): boolean => later.has(value) && !own.has(value) && sizeOf(value.shape) > 0;
  for (const node of backward) {
    const found = node.inputs.find(fits);
    if (found !== undefined) return found;
  }
  return nodes[end]!.outputs[0]!;
}

/** Copies nodes with new outputs; `stands` gives and receives what stands for each value. */
function copyOf(node: Node, stands: Map<Value, Value>): Node {
  const outputs = node.outputs.map((output) => newValue(output));
  const inputs = node.inputs.map((input) => stands.get(input) ?? input);
  node.outputs.forEach((output, i) => {
    stands.set(output, outputs[i]!);
  });
  const { layer } = readScope(node.scope);
  return { ...node, inputs, outputs, scope: layer === '' ? GRADIENT : `${GRADIENT} ${layer}` };
}

/** Has the gradient of one region read recomputed values. */
function recomputeRegion(
  nodes: readonly Node[],
  region: Region,
  marks: Map<Node, Mark>,
  names: Map<Value, string>,
): readonly Node[] {
  const isIn = (node: Node, isGradient: boolean): boolean => {
    const mark = marks.get(node);
    return mark !== undefined && mark.isGradient === isGradient && isWithinRegion(mark.region, region);
  };
  const forward = new Set(nodes.filter((node) => isIn(node, false)));
  // Gradients that the function itself takes are a part of its forward pass, and stay as they are.
  const end = nodes.findLastIndex((node) => forward.has(node));
  const backward = nodes.slice(end + 1).filter((node) => isIn(node, true));
  const made = producers({ inputs: [], outputs: [], nodes });
  const isRecomputed = (node: Node): boolean => forward.has(node) && !isKept(region.policy, node, names);
  const isWanted = (value: Value): boolean => made.has(value) && isRecomputed(made.get(value)!);
  const wanted = new Set(backward.flatMap(({ inputs }) => inputs.filter(isWanted)));
  if (wanted.size === 0) return nodes;
  const first = nodes.findIndex((node, i) => i > end && isIn(node, true) && node.inputs.some(isWanted));
  const again = closure(wanted, made, isRecomputed);
  const isOutside = (value: Value): boolean =>
    value.data === undefined && sizeOf(value.shape) > 0 && !again.has(made.get(value)!);
  const outside = [...new Set([...again].flatMap(({ inputs }) => inputs.filter(isOutside)))];
  const barrier: Node = {
    op: 'Barrier',
    inputs: [...outside, arrivalOf(nodes, { forward, backward }, first)],
    outputs: outside.map((value) => newValue(value)),
    attrs: {},
    scope: GRADIENT,
  };
  const stands = new Map(outside.map((value, i) => [value, barrier.outputs[i]!]));
  const copies = nodes
    .filter((node) => again.has(node))
    .map((node) => {
      const copy = copyOf(node, stands);
      const mark = marks.get(node)!;
      // The gradient of a region within this one has it computed once more.
      if (mark.region !== region) marks.set(copy, mark);
      node.outputs.forEach((output, i) => {
        if (names.has(output)) names.set(copy.outputs[i]!, names.get(output)!);
      });
      return copy;
    });
  const reread = (node: Node): Node => {
    if (!isIn(node, true) || !node.inputs.some(isWanted)) return node;
    const changed = {
      ...node,
      inputs: node.inputs.map((input) => (isWanted(input) ? stands.get(input)! : input)),
    };
    marks.set(changed, marks.get(node)!);
    return changed;
  };
  const rest = nodes.slice(first).map(reread);
  return [...nodes.slice(0, first), barrier, ...copies, ...rest];
}

/** The graph with recomputation in the gradients of its checkpointed regions, outer regions first. */
export function rematerialize({ inputs, outputs, nodes, marks, names }: Marked): Graph {
  const [known, named] = [new Map(marks), new Map(names)];
  const regions = new Set<Region>();
  const addRegion = (region: Region): void => {
    if (region.parent !== null) addRegion(region.parent);
    regions.add(region);
  };
  for (const { region } of marks.values()) addRegion(region);
  let current: readonly Node[] = nodes;
  for (const region of regions) current = recomputeRegion(current, region, known, named);
  return { inputs, outputs, nodes: current };
}
