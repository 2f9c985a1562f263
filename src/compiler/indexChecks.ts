/**
 * @file Checks of the indices that a program's inputs hold, made on a batch before the program runs. Gathers check the
 * indices that the program computes itself.
 */
import { type Graph, ints, type Node, newValue, producers, rewrite, type Value } from './ir.js';
import { eliminateDeadCode } from './passes/dce.js';
import { forEachElement } from './rules/elementwiseRules.js';
import { ruleOf } from './rules/index.js';
import type { Addressed } from './rules/rule.js';
import { placeOf } from './scopes.js';
import { CompilerError, type HostArray, type Shape, sizeOf } from './tensors.js';

/** A use of a value as indices. */
interface IndexUse extends Addressed {
  readonly node: Node;
  /** Which of the node's inputs it is. */
  readonly operand: number;
}

/** What is asked of a program's input. */
export interface IndexCheck extends Addressed {
  /** Number of the input. */
  readonly input: number;
  /** The elements that are read, row-major; null for all. */
  readonly positions: Int32Array | null;
  /** The layer of the operation that reads them, behind a message. */
  readonly where: string;
}

/** What a node uses as indices, if any. */
function useOf(node: Node): IndexUse | undefined {
  const { indices } = ruleOf(node.op);
  return indices && { node, operand: indices.operand, ...indices.address(node.inputs, node.attrs) };
}

/** Operations that give all elements of their input, in this order or another. */
const WHOLE = new Set(['Reshape', 'ExpandDims', 'Identity', 'Cast', 'Transpose', 'Reverse']);
/** Operations that give some of them. */
const PARTS = new Set(['Slice', 'StridedSlice']);

/** The value that `value` is a view of, and the operations between them, the first of them first. */
function rootOf(value: Value, made: ReadonlyMap<Value, Node>): { root: Value; through: readonly Node[] } {
  const through: Node[] = [];
  let root = value;
  for (let node = made.get(root); node !== undefined; node = made.get(root)) {
    if (!WHOLE.has(node.op) && !PARTS.has(node.op)) break;
    through.unshift(node);
    root = node.inputs[0]!;
  }
  return { root, through };
}

/** Elements that are read of `positions`, as an operation that moves them gives them. */
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

/** The elements of a value that reach the end of a chain of views; null for all. */
function positionsOf({ shape }: Value, through: readonly Node[]): Int32Array | null {
  if (!through.some(({ op }) => PARTS.has(op))) return null;
  return through.reduce(
    moved,
    Int32Array.from({ length: sizeOf(shape) }, (_, i) => i),
  );
}

const isIndex = (value: number, limit: number): boolean =>
  Math.trunc(value) >= 0 && Math.trunc(value) < limit;

/** Position of the first element that is no index; -1 where all are. */
export function findBad(
  { limit, positions }: Pick<IndexCheck, 'limit' | 'positions'>,
  data: HostArray,
): number {
  if (positions !== null) return positions.find((at) => !isIndex(data[at]!, limit)) ?? -1;
  for (let i = 0; i < data.length; i++) if (!isIndex(data[i]!, limit)) return i;
  return -1;
}

/** An index that is out of range. */
export class IndexError extends CompilerError {
  /** Path of the input that it stands in, such as 'batch.labels'; '' where the program worked it out. */
  declare readonly input: string;
  /** Where it stands: its position along each axis. */
  declare readonly at: readonly number[];
  /** What is wrong with it, as '61 is not one of the 60 classes, 0 to 59 (in layer 'lm/softmax')'. */
  declare readonly problem: string;
  /** In which of the runs of a call, from 0; those before have been done, and nothing of this one. */
  declare readonly run: number;

  constructor(program: string, fields: Pick<IndexError, 'input' | 'at' | 'problem' | 'run'>) {
    const { input, at, problem } = fields;
    const subject = input === '' ? 'indices that it works out' : `input '${input}'`;
    const place = at.length === 0 ? '' : `${subject}, element [${at.join(',')}]: `;
    super(`${program}: ${place}${problem}.`);
    Object.assign(this, fields);
  }
}

/** What an engine tells that knows no more. */
export const UNKNOWN_INDEX = { input: '', at: [], problem: 'an index was out of range', run: 0 } as const;

/** What is wrong with an index. */
export const problemOf = (value: number, { limit, what, where }: Addressed & { where: string }): string =>
  `${value} is not one of the ${what}, 0 to ${limit - 1}${where}`;

/** Position along each axis of an element. */
export function placeIn(shape: Shape, position: number): number[] {
  return shape.map((dim, axis) => Math.floor(position / sizeOf(shape.slice(axis + 1))) % dim);
}

/** A program with its indices looked after. */
export interface CheckedGraph {
  /** The graph, in which every index that is worked out is checked as it runs. */
  readonly graph: Graph;
  /** What is to be asked of inputs before a run. */
  readonly checks: readonly IndexCheck[];
}

/**
 * Finds the indices of a program. Those that an input gives, by views and casts, are asked of the input; constants are
 * looked at here; others go through a gather, which every engine checks.
 *
 * @throws CompilerError for a constant that is out of range.
 */
export function checkIndices(traced: Graph): CheckedGraph {
  const live = eliminateDeadCode(traced);
  const made = producers(live);
  const checks = new Map<string, IndexCheck>();
  const computed = new Set<Value>();
  // What gathers look at whole, and of how many rows: the gradient of a gather need not look again.
  const gathered = new Map<Value, number>();
  for (const node of live.nodes) {
    const use = useOf(node);
    if (use === undefined) continue;
    const { limit, what, operand } = use;
    const { root, through } = rootOf(node.inputs[operand]!, made);
    const positions = positionsOf(root, through);
    const check = { limit, what, positions, where: placeOf(node.scope) };
    if (root.data !== undefined) {
      const bad = findBad(check, root.data);
      if (bad >= 0) throw new CompilerError(`${node.op}: ${problemOf(root.data[bad]!, check)}.`);
    } else if (made.has(root)) {
      if (node.op === 'GatherV2' && positions === null)
        gathered.set(root, Math.min(limit, gathered.get(root) ?? limit));
      else if (!((gathered.get(root) ?? limit + 1) <= limit)) computed.add(node.inputs[operand]!);
    } else {
      const input = live.inputs.indexOf(root);
      const key = `${input} ${limit} ${positions ?? ''}`;
      if (input >= 0 && !checks.has(key)) checks.set(key, { ...check, input });
    }
  }
  return { graph: computed.size === 0 ? traced : guard(traced, computed), checks: [...checks.values()] };
}

/** Has indices that operations other than gathers read go through one, of all indices in their order. */
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

/** The indices that gathers are given by the program itself, with what is asked of them. */
export function computedIndices(graph: Graph): readonly (Addressed & { value: Value; where: string })[] {
  const live = eliminateDeadCode(graph);
  const made = producers(live);
  return live.nodes
    .filter(({ op, inputs }) => op === 'GatherV2' && made.has(inputs[1]!))
    .map((node) => ({ ...useOf(node)!, value: node.inputs[1]!, where: placeOf(node.scope) }));
}
