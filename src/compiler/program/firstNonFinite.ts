/**
 * @file Origin of NaN and infinity: reruns a program with two flags per value, and follows non-finite results back to
 * the operation that produced them from finite operands.
 */
import { withLoopsUnrolled } from '../control/scan.js';
import { type OnnxOptions, runOnnx } from '../onnx/onnxSession.js';
import { eliminateDeadCode } from '../passes/index.js';
import { readScope } from '../trace/gradientScopes.js';
import { isSpec, type TensorFunction, traceProgram } from '../trace/tracedProgram.js';
import { withCallsKept } from '../trace/tracing.js';
import { usersPlace } from '../trace/usersFrame.js';
import { type Graph, type Node, newValue, type Value } from './ir.js';
import { byteSize, formatSpec, type HostArray, type HostTensor, sizeOf, type Tree } from './tensors.js';
import { flattenTree } from './tensorTrees.js';

/** The first unexpected non-finite value of a program. */
export interface NonFinite {
  /** Path of the layer whose call made it; '' outside of layers, and for inputs. */
  readonly layer: string;
  /** The operation that produced it, by its tfjs kernel name; 'Input' for an input. */
  readonly op: string;
  /** Whether it belongs to the layer's gradient. */
  readonly isGradient: boolean;
  readonly value: 'NaN' | 'infinity';
  /** Dtype and shape, as 'float32[8,256]'. */
  readonly spec: string;
  /** Path of the input that contains it, such as 'params.lm/softmax/w'; '' for the result of an operation. */
  readonly input: string;
  /** The user's line whose call made it, or is differentiated, as 'Mine.fprop (experiments/mine.ts:12:20)'; '' where unknown. */
  readonly place: string;
}

/** Options of the search. */
interface NonFiniteOptions extends OnnxOptions {
  /** Bytes of values per rerun; larger programs are run in pieces, whose values pass through the host. */
  readonly pieceBytes?: number;
}

/** Whether any element is NaN, and whether any is infinite. */
interface Flags {
  readonly nan: boolean;
  readonly infinite: boolean;
}

const FINITE: Flags = { nan: false, infinite: false };

function flagsOf(data: HostArray): Flags {
  let [nan, infinite] = [false, false];
  if (data instanceof Float32Array) {
    for (const element of data) {
      if (Number.isFinite(element)) continue;
      if (Number.isNaN(element)) nan = true;
      else infinite = true;
    }
  }
  return { nan, infinite };
}

/** Partitions nodes into pieces with about this many bytes of results. */
function* piecesOf(nodes: readonly Node[], bytes: number): Generator<readonly Node[]> {
  let [piece, size]: [Node[], number] = [[], 0];
  for (const node of nodes) {
    piece.push(node);
    size += node.outputs.reduce((sum, output) => sum + byteSize(output), 0);
    if (size < bytes) continue;
    yield piece;
    [piece, size] = [[], 0];
  }
  if (piece.length > 0) yield piece;
}

const isFlagged = (value: Value): boolean => value.dtype === 'float32' && sizeOf(value.shape) > 0;

/** A piece as a program: its inputs, the values that later pieces read, and the flags [NaN, infinite] of each value. */
function flagged(piece: readonly Node[], readLater: (value: Value) => boolean) {
  const made = new Set(piece.flatMap(({ outputs }) => outputs));
  const read = new Set(piece.flatMap(({ inputs }) => inputs));
  const inputs = [...read].filter((value) => value.data === undefined && !made.has(value));
  const kept = [...made].filter(readLater);
  const values = [...made].filter(isFlagged);
  const flags: Value[] = [];
  const nodes: Node[] = [];
  const emit = (op: string, input: Value, shape: readonly number[], attrs = {}): Value => {
    const output = newValue({ shape, dtype: 'bool' });
    nodes.push({ op, inputs: [input], outputs: [output], attrs, scope: '' });
    return output;
  };
  for (const node of piece) {
    nodes.push(node);
    for (const value of node.outputs.filter(isFlagged))
      for (const op of ['IsNan', 'IsInf'])
        flags.push(
          emit('Any', emit(op, value, value.shape), [], {
            axes: value.shape.map((_, axis) => axis),
            keepDims: false,
          }),
        );
  }
  return { graph: { inputs, outputs: [...kept, ...flags], nodes } satisfies Graph, kept, values };
}

/** Runs a graph and returns the flags of all values that its nodes make. */
async function runFlagged(
  graph: Graph,
  given: ReadonlyMap<Value, HostArray>,
  { pieceBytes = 1 << 28, ...options }: NonFiniteOptions,
): Promise<Map<Value, Flags>> {
  const pieces = [...piecesOf(graph.nodes, pieceBytes)];
  const lastReader = new Map<Value, number>();
  pieces.forEach((piece, i) => {
    for (const node of piece) for (const input of node.inputs) lastReader.set(input, i);
  });
  const memory = new Map(given);
  const found = new Map<Value, Flags>();
  for (const [i, piece] of pieces.entries()) {
    const { graph, kept, values } = flagged(piece, (value) => (lastReader.get(value) ?? i) > i);
    const read = graph.inputs.map((input) => memory.get(input)!);
    const outputs = await runOnnx(graph, read, options);
    kept.forEach((value, k) => void memory.set(value, outputs[k]!));
    for (const [value, last] of lastReader) if (last === i) memory.delete(value);
    const flags = outputs.slice(kept.length).map(([flag]) => flag === 1);
    values.forEach((value, k) => void found.set(value, { nan: flags[2 * k]!, infinite: flags[2 * k + 1]! }));
  }
  return found;
}

/**
 * Finds the operation that first made a result of `f` NaN or infinite: the first one, forward before backward, that
 * turns finite operands into such a value, or infinite ones into NaN. Only values that reach a result through other
 * non-finite ones count. Infinite constants are intended: a mask of -Infinity is not reported, nor is an infinity that
 * a select discards. Loops run turn by turn, and choices as both branches. The program runs on ONNX Runtime, whose rounding may differ from the engine's that produced the
 * value.
 *
 * @param f takes a structure of tensors like `inputs`.
 * @returns undefined where all results are finite.
 */
export async function firstNonFinite(
  f: TensorFunction,
  inputs: Tree<HostTensor>,
  options: NonFiniteOptions = {},
): Promise<NonFinite | undefined> {
  const leaves = flattenTree<HostTensor>(inputs, isSpec as (value: unknown) => value is HostTensor);
  const graph = eliminateDeadCode(
    withLoopsUnrolled(() => withCallsKept(() => traceProgram(f, inputs))).graph,
  );
  const given = new Map(graph.inputs.map((input, i) => [input, leaves[i]!.value.data]));
  const flags = await runFlagged(graph, given, options);
  for (const [input, data] of given) flags.set(input, flagsOf(data));
  const of = (value: Value): Flags => flags.get(value) ?? (value.data ? flagsOf(value.data) : FINITE);
  const isBad = (value: Value): boolean => of(value).nan || of(value).infinite;

  // Values that reach a result through non-finite values.
  const guilty = new Set(graph.outputs.filter(isBad));
  for (const { inputs, outputs } of [...graph.nodes].reverse()) {
    if (outputs.some((output) => guilty.has(output)))
      for (const input of inputs.filter(isBad)) guilty.add(input);
  }
  const asInput = (value: Value): NonFinite => ({
    ...{ layer: '', op: 'Input', isGradient: false, input: value.name!, place: '' },
    ...{ value: of(value).nan ? 'NaN' : 'infinity', spec: formatSpec(value) },
  });
  const asNode = ({ op, scope, call }: Node, output: Value): NonFinite => ({
    ...{ ...readScope(scope), op, input: '', place: (call && usersPlace(call)) ?? '' },
    ...{ value: of(output).nan ? 'NaN' : 'infinity', spec: formatSpec(output) },
  });

  const guiltyInputs = graph.inputs.filter((input) => guilty.has(input));
  const broken = guiltyInputs.find((input) => of(input).nan);
  if (broken !== undefined) return asInput(broken);
  let passedOn: NonFinite | undefined;
  for (const node of graph.nodes) {
    const output = node.outputs.find((output) => guilty.has(output));
    if (output === undefined) continue;
    passedOn ??= asNode(node, output);
    const { nan } = of(output);
    if (node.inputs.some((input) => (nan ? of(input).nan : isBad(input)))) continue;
    // A node without inputs, or with a non-finite number among its attributes, is a constant.
    const isConstant = node.inputs.length === 0 || Object.values(node.attrs).some(isInfinite);
    if (nan || !isConstant) return asNode(node, output);
  }
  // All non-finite values were infinite inputs.
  return guiltyInputs.length > 0 ? asInput(guiltyInputs[0]!) : passedOn;
}

const isInfinite = (attr: unknown): boolean => Math.abs(Number(attr)) === Number.POSITIVE_INFINITY;
