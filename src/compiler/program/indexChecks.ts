/**
 * @file Range checks of indices. Indices in a program's inputs are checked before it runs; gathers check computed ones
 * as it runs.
 */

import { eliminateDeadCode } from '../passes/dce.js';
import { forEachElement } from '../rules/broadcasting.js';
import { ruleOf } from '../rules/index.js';
import type { Addressed } from '../rules/operation.js';
import { placeOf } from '../trace/scopes.js';
import { type Graph, ints, mapBodies, type Node, newValue, producers, rewrite, type Value } from './ir.js';
import { CompilerError, type HostArray, type Shape, sizeOf } from './tensors.js';

/** A value used as indices. */
interface IndexUse extends Addressed {
  readonly node: Node;
  /** The operand of the node that holds the indices. */
  readonly operand: number;
}

/** A check of one program input. */
export interface IndexCheck extends Addressed {
  /** Index of the input. */
  readonly input: number;
  /** The elements read, by row-major position; null for all. */
  readonly positions: Int32Array | null;
  /** The layer of the operation that reads them, as a suffix for messages. */
  readonly where: string;
}

/** The operand that a node uses as indices, if any. */
function useOf(node: Node): IndexUse | undefined {
  const { indices } = ruleOf(node.op);
  return indices && { node, operand: indices.operand, ...indices.address(node.inputs, node.attrs) };
}

/** Operations that keep all elements of their input, in any order. */
const WHOLE = new Set(['Reshape', 'ExpandDims', 'Identity', 'Load', 'Cast', 'Transpose', 'Reverse']);
/** Operations that keep some elements of their input. */
const PARTS = new Set(['Slice', 'StridedSlice']);

/** The value that `value` is a view of, and the operations between them, outermost input first. */
function rootOf(value: Value, made: ReadonlyMap<Value, Node>): { root: Value; through: readonly Node[] } {
  const through: Node[] = [];
  let root = value;
  for (let node = made.get(root); node !== undefined; node = made.get(root)) {
    if (node.op === 'Barrier') {
      root = node.inputs[node.outputs.indexOf(root)]!;
      continue;
    }
    if (!WHOLE.has(node.op) && !PARTS.has(node.op)) break;
    through.unshift(node);
    root = node.inputs[0]!;
  }
  return { root, through };
}

/** A value that another is a view of. */
type Root = ReturnType<typeof rootOf>;

/** The values that `value` is a view of: several where all of a concatenation is read. */
function rootsOf(value: Value, made: ReadonlyMap<Value, Node>): readonly Root[] {
  const found = rootOf(value, made);
  const join = made.get(found.root);
  if (join?.op !== 'Concat' || found.through.some(({ op }) => PARTS.has(op))) return [found];
  return join.inputs.flatMap((part) => rootsOf(part, made));
}

/** Root positions of a view's output elements, from those of its input elements. */
function moved(positions: Int32Array, { op, inputs: [x], outputs: [out], attrs }: Node): Int32Array {
  const own = x!.shape.map((_, axis) => sizeOf(x!.shape.slice(axis + 1)));
  const view = (shape: Shape, begin: readonly number[], strides: readonly number[]): Int32Array => {
    const start = begin.reduce((sum, at, axis) => sum + at * own[axis]!, 0);
    const result = new Int32Array(sizeOf(shape));
    forEachElement(shape, [strides], (i, [offset]) => {
      result[i] = positions[start + offset!]!;
    });
    return result;
  };
  const begin = op === 'Slice' || op === 'StridedSlice' ? ints(attrs.begin) : x!.shape.map(() => 0);
  if (op === 'Slice') return view(out!.shape, begin, own);
  if (op === 'StridedSlice')
    return view(
      ints(attrs.sparse),
      begin,
      own.map((stride, axis) => stride * ints(attrs.strides)[axis]!),
    );
  if (op === 'Transpose')
    return view(
      out!.shape,
      begin,
      ints(attrs.perm).map((axis) => own[axis]!),
    );
  if (op !== 'Reverse') return positions;
  const turned = x!.shape.map((_, axis) => ints(attrs.axes).includes(axis));
  return view(
    x!.shape,
    x!.shape.map((dim, axis) => (turned[axis] ? dim - 1 : 0)),
    own.map((stride, axis) => (turned[axis] ? -stride : stride)),
  );
}

/** The elements of a value that survive a chain of views; null for all. */
function positionsOf({ shape }: Value, through: readonly Node[]): Int32Array | null {
  if (!through.some(({ op }) => PARTS.has(op))) return null;
  return through.reduce(
    moved,
    Int32Array.from({ length: sizeOf(shape) }, (_, i) => i),
  );
}

const isIndex = (value: number, limit: number): boolean =>
  Math.trunc(value) >= 0 && Math.trunc(value) < limit;

/** Position of the first element out of range; -1 if there is none. */
export function findBad(
  { limit, positions }: Pick<IndexCheck, 'limit' | 'positions'>,
  data: HostArray,
): number {
  if (positions !== null) return positions.find((at) => !isIndex(data[at]!, limit)) ?? -1;
  for (let i = 0; i < data.length; i++) if (!isIndex(data[i]!, limit)) return i;
  return -1;
}

/** Error for an index out of range. */
export class IndexError extends CompilerError {
  /** Path of the input that holds the index, such as 'batch.labels'; '' for a computed index. */
  declare readonly input: string;
  /** Position of the index along each axis. */
  declare readonly at: readonly number[];
  /** The problem, as '61 is not one of the 60 classes, 0 to 59 (in layer 'lm/softmax')'. */
  declare readonly problem: string;
  /** The run of the call, from 0. Earlier runs have completed; this one has had no effect. */
  declare readonly run: number;

  constructor(program: string, fields: Pick<IndexError, 'input' | 'at' | 'problem' | 'run'>) {
    const { input, at, problem } = fields;
    const subject = input === '' ? 'indices that it computes' : `input '${input}'`;
    const place = at.length === 0 ? '' : `${subject}, element [${at.join(',')}]: `;
    super(`${program}: ${place}${problem}.`);
    Object.assign(this, fields);
  }
}

/** The error's fields where the engine knows no more. */
export const UNKNOWN_INDEX = { input: '', at: [], problem: 'an index was out of range', run: 0 } as const;

/** Describes an index out of range. */
export const problemOf = (value: number, { limit, what, where }: Addressed & { where: string }): string =>
  `${value} is not one of the ${what}, 0 to ${limit - 1}${where}`;

/** Position of an element along each axis. */
export function placeIn(shape: Shape, position: number): number[] {
  return shape.map((dim, axis) => Math.floor(position / sizeOf(shape.slice(axis + 1))) % dim);
}

/** A graph with index checks. */
export interface CheckedGraph {
  /** The graph, in which every computed index is checked as it runs. */
  readonly graph: Graph;
  /** Checks of inputs, to be made before each run. */
  readonly checks: readonly IndexCheck[];
}

/**
 * Finds the indices of a program. Indices that come from an input through views and casts become checks of that input;
 * constants are checked here; others go through a gather, which every engine checks.
 *
 * @throws CompilerError for a constant out of range.
 */
export function checkIndices(traced: Graph): CheckedGraph {
  return check(
    mapBodies(traced, (body) => check(body, true).graph),
    false,
  );
}

/** @param isBody whether inputs are values of the program, which only exist as it runs. */
function check(traced: Graph, isBody: boolean): CheckedGraph {
  const live = eliminateDeadCode(traced);
  const made = producers(live);
  const checks = new Map<string, IndexCheck>();
  const computed = new Set<Value>();
  // Indices that gathers read in full, and the number of rows gathered from: the gather's gradient need not check
  // again.
  const gathered = new Map<Value, number>();
  for (const node of live.nodes) {
    const use = useOf(node);
    if (use === undefined) continue;
    const { limit, what, operand } = use;
    const where = placeOf(node.scope);
    const isComputed = ({ root }: Root) => root.data === undefined && (isBody || made.has(root));
    const parts = rootsOf(node.inputs[operand]!, made);
    if (parts.some(isComputed)) {
      const { root, through } = rootOf(node.inputs[operand]!, made);
      if (node.op === 'GatherV2' && positionsOf(root, through) === null)
        gathered.set(root, Math.min(limit, gathered.get(root) ?? limit));
      else if (!((gathered.get(root) ?? limit + 1) <= limit)) computed.add(node.inputs[operand]!);
      continue;
    }
    for (const { root, through } of parts) {
      const positions = positionsOf(root, through);
      const check = { limit, what, positions, where };
      if (root.data !== undefined) {
        const bad = findBad(check, root.data);
        if (bad >= 0) throw new CompilerError(`${node.op}: ${problemOf(root.data[bad]!, check)}.`);
        continue;
      }
      const input = live.inputs.indexOf(root);
      const key = `${input} ${limit} ${positions ?? ''}`;
      if (input >= 0 && !checks.has(key)) checks.set(key, { ...check, input });
    }
  }
  return { graph: computed.size === 0 ? traced : guard(traced, computed), checks: [...checks.values()] };
}

/** Routes computed indices of operations other than gathers through a gather of all indices in order. */
function guard(graph: Graph, computed: ReadonlySet<Value>): Graph {
  const guarded = new Map<string, Value>();
  return rewrite(graph, (node, emit) => {
    const use = node.op === 'GatherV2' ? undefined : useOf(node);
    const ids = use && node.inputs[use.operand]!;
    if (use === undefined || !computed.has(ids!)) {
      emit(node);
      return node.outputs;
    }
    const key = `${ids!.id} ${use.limit}`;
    const checked = guarded.get(key) ?? emitCheck(ids!, use, emit);
    guarded.set(key, checked);
    emit({ ...node, inputs: node.inputs.map((input) => (input === ids ? checked : input)) });
    return node.outputs;
  });
}

function emitCheck(ids: Value, { limit, node: { scope } }: IndexUse, emit: (node: Node) => void): Value {
  const [all, checked] = [newValue({ shape: [limit], dtype: 'int32' }), newValue(ids)];
  const range = { start: 0, stop: limit, step: 1, dtype: 'int32' };
  emit({ op: 'Range', inputs: [], outputs: [all], attrs: range, scope });
  emit({ op: 'GatherV2', inputs: [all, ids], outputs: [checked], attrs: { axis: 0 }, scope });
  return checked;
}

/** Computed indices that gathers read, with the axis that they address. */
export function computedIndices(graph: Graph): readonly (Addressed & { value: Value; where: string })[] {
  const live = eliminateDeadCode(graph);
  const made = producers(live);
  return live.nodes
    .filter(({ op, inputs }) => op === 'GatherV2' && made.has(inputs[1]!))
    .map((node) => ({ ...useOf(node)!, value: node.inputs[1]!, where: placeOf(node.scope) }));
}
