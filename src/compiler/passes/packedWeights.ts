/** @file Products and convolutions by weights of few bits, and lookups of them, rewritten to read the codes. */
import { type Graph, ints, type Node, producers, type Value } from '../program/ir.js';
import { DEFAULT_PRECISION, precisionOf } from '../program/precision.js';
import { type Shape, sizeOf } from '../program/tensors.js';
import { expandComposites } from './expand.js';
import type { GraphReader } from './patterns.js';
import { applyRules, type Make, type Rule, reshaped } from './rewriting.js';

/** Elements of a dequantised matrix [C, D]: that at an index is at offset + Σ index · stride. */
interface WeightView {
  readonly made: Node;
  readonly shape: Shape;
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Strides of a view under another shape; null where they are not those of one view. */
function reshapedStrides(shape: Shape, strides: readonly number[], to: Shape): number[] | null {
  // Axes that follow each other in memory, as one.
  const runs: { size: number; stride: number }[] = [];
  for (const [axis, size] of shape.entries()) {
    if (size === 1) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.stride === strides[axis]! * size)
      runs.splice(-1, 1, { size: last.size * size, stride: strides[axis]! });
    else runs.push({ size, stride: strides[axis]! });
  }
  const result = to.map(() => 0);
  let run = runs.pop();
  let taken = 1;
  for (let axis = to.length - 1; axis >= 0; axis--) {
    const size = to[axis]!;
    if (size === 1) continue;
    if (run === undefined || run.size % (taken * size) !== 0) return null;
    result[axis] = run.stride * taken;
    taken *= size;
    if (taken === run.size) [run, taken] = [runs.pop(), 1];
  }
  return run === undefined && taken === 1 ? result : null;
}

/** A value as a view of dequantised weights. */
function viewOf(value: Value, graph: Pick<GraphReader, 'producer'>): WeightView | null {
  const made = graph.producer(value);
  if (made === undefined) return null;
  const { op, inputs, attrs } = made;
  const { shape } = value;
  if (op === 'Dequantize') return { made, shape, strides: [shape[1]!, 1], offset: 0 };
  if (!['Reshape', 'Transpose', 'Slice', 'SplitV'].includes(op)) return null;
  const from = viewOf(inputs[0]!, graph);
  if (from === null) return null;
  switch (op) {
    case 'Reshape': {
      const strides = reshapedStrides(from.shape, from.strides, shape);
      return strides && { ...from, shape, strides };
    }
    case 'Transpose':
      return { ...from, shape, strides: ints(attrs.perm).map((axis) => from.strides[axis]!) };
    case 'Slice': {
      const skipped = ints(attrs.begin).reduce((sum, at, axis) => sum + at * from.strides[axis]!, 0);
      return { ...from, shape, offset: from.offset + skipped };
    }
    default: {
      const axis = attrs.axis as number;
      const before = made.outputs.slice(0, made.outputs.indexOf(value));
      const skipped = before.reduce((sum, part) => sum + part.shape[axis]!, 0);
      return { ...from, shape, offset: from.offset + skipped * from.strides[axis]! };
    }
  }
}

/** Terms of a sum of integers of 32 bits, of products up to 127 * 128. */
const MOST_TERMS = 2 ** 17;

/** The node that rounds the rows of a product, in the groups of its weights; undefined where they are not rounded so. */
function roundingOf(
  x: Value,
  depth: number,
  groups: number,
  graph: Pick<GraphReader, 'producer'>,
): Node | undefined {
  const made = graph.producer(x);
  if (made?.op === 'Reshape') return roundingOf(made.inputs[0]!, depth, groups, graph);
  const isSame = made?.op === 'RoundRows' && x.shape.at(-1) === depth && made.attrs.groups === groups;
  return isSame && depth / groups <= MOST_TERMS ? made : undefined;
}

/** Rows times whole channels: x [M, D] by a matrix whose columns are channels one after the other. */
const product: Rule = ({ op, inputs, outputs, attrs }, graph, make) => {
  if (op !== 'BatchMatMul' || attrs.transposeA || attrs.alpha !== 1) return null;
  const [x, w] = inputs as [Value, Value];
  if (precisionOf(attrs) !== DEFAULT_PRECISION || w.shape.length !== 2) return null;
  const view = viewOf(w, graph);
  if (view === null) return null;
  const [n, k] = attrs.transposeB ? [0, 1] : [1, 0];
  const [codes, scales] = view.made.inputs as [Value, Value];
  const depth = view.made.outputs[0]!.shape[1]!;
  const channels = w.shape[n]!;
  const areChannels = w.shape[k] === depth && (view.strides[k] === 1 || depth === 1);
  const areInTurn = channels === 1 || view.strides[n] === depth;
  if (!areChannels || !areInTurn || view.offset % depth !== 0) return null;
  const out = outputs[0]!;
  const { bits } = view.made.attrs;
  const rounding = roundingOf(x, depth, scales.shape[1]!, graph);
  const rows = reshaped(rounding?.inputs[0] ?? x, [sizeOf(x.shape) / depth, depth], make);
  const result = make('QuantizedMatMul', [rows, codes, scales], {
    ...{ bits: bits!, first: view.offset / depth, channels },
    ...(rounding && { rowBits: rounding.attrs.bits! }),
  });
  return reshaped(result, out.shape, make);
};

/** Channels by their indices: those of codes and scales. */
const lookup: Rule = ({ op, inputs, attrs, outputs }, graph, make) => {
  if (op !== 'GatherV2' || attrs.axis !== 0) return null;
  const [table, ids] = inputs as [Value, Value];
  const view = viewOf(table, graph);
  if (view === null || view.shape.length !== 2 || view.offset !== 0) return null;
  const { made, shape, strides } = view;
  const [channels, depth] = made.outputs[0]!.shape;
  if (shape[0] !== channels || shape[1] !== depth || strides[0] !== depth || strides[1] !== 1) return null;
  return channelsAt(made, ids, outputs[0]!.shape, make);
};

function channelsAt({ inputs, attrs }: Node, ids: Value, shape: Shape, make: Make): Value {
  const flat = reshaped(ids, [sizeOf(ids.shape)], make);
  const [codes, scales] = inputs.map((input) => make('GatherV2', [input, flat], { axis: 0 }));
  return reshaped(make('Dequantize', [codes!, scales!], attrs), shape, make);
}

/**
 * Whether a node is a convolution that becomes a product of windows and whole channels. One with more windows than channels reads
 * the weights themselves, since they are fewer than copies of the windows; one cell by itself is not copied.
 */
function isByCodes({ op, inputs, outputs, attrs }: Node, graph: Pick<GraphReader, 'producer'>): boolean {
  if (op !== 'Conv2D' || precisionOf(attrs) !== DEFAULT_PRECISION) return false;
  const filter = inputs[1]!;
  const view = viewOf(filter, graph);
  if (view === null) return false;
  const [height, width, , channels] = filter.shape as [number, number, number, number];
  const depth = sizeOf(filter.shape) / channels;
  const windows = sizeOf(outputs[0]!.shape) / channels;
  const isFew = height * width === 1 || windows <= channels;
  const strides = reshapedStrides(view.shape, view.strides, [depth, channels]);
  return isFew && strides?.[0] === 1 && view.made.outputs[0]!.shape[1] === depth;
}

/** The graph with convolutions by codes as products. */
function withWindows(graph: Graph): Graph {
  const made = producers(graph);
  return expandComposites(graph, (node) => !isByCodes(node, { producer: (value) => made.get(value) }));
}

/** Rewrites what can read codes in the place of the weights that are made of them. */
export const readPackedWeights = (graph: Graph): Graph =>
  graph.nodes.some(({ op }) => op === 'Dequantize')
    ? applyRules([product, lookup], withWindows(graph))
    : graph;
