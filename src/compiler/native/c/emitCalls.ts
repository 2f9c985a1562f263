/** @file C calls of the runtime for attention, convolutions, sums, random numbers and top k. */
import { extrasOf, prefixReach, windowOf } from '../../ops/hiddenKeys.js';
import { sizeOf } from '../../program/tensors.js';
import type { CallUnit } from '../plan/units.js';
import { mergeAxes, type View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';
import { byteOffset, callPrecision, typeName } from './cNames.js';
import {
  allGather,
  allReduce,
  allToAll,
  collectivePermute,
  memberIndex,
  ownPart,
  reduceScatter,
} from './emitCollectives.js';
import { convolution, depthwise, depthwiseFilter, filterGradient } from './emitConvolutions.js';
import { groupedProducts, groupedSums } from './emitGroups.js';
import { quantizedProduct } from './emitQuantized.js';
import { literal } from './expressions.js';

type PointerOf = (view: View) => string;

/** Writes statements in which each thread runs its share of a call. */
type Writer = (unit: CallUnit, pointer: PointerOf, needs: Needs, workspace: () => string) => string[];

/** A tensor [B, T, N, H] as the runtime's heads. */
const heads = (view: View, pointer: PointerOf): string =>
  `(lt_heads){${pointer(view)}, ${typeName(view.buffer)}, ${view.strides.slice(0, 3).join(', ')}}`;

/** Keys or values as the runtime's heads: of `heads` queries, and of codes with scales. */
function held(view: View, count: number, scales: View | undefined, pointer: PointerOf): string {
  const type = view.buffer.storage === 'int32' ? 'LT_INT32' : typeName(view.buffer);
  const factors = scales ? [pointer(scales), ...scales.strides.slice(0, 3)] : ['NULL', 0, 0, 0];
  const parts = [pointer(view), type, ...view.strides.slice(0, 3), count / view.shape[2]!, ...factors];
  return `(lt_heads){${parts.join(', ')}}`;
}

/** A tensor's strides along four axes that it broadcasts to. */
const stridesOf = ({ shape, strides }: View): number[] =>
  [0, 1, 2, 3].map((axis) => {
    const own = axis - 4 + shape.length;
    return own < 0 || shape[own] === 1 ? 0 : strides[own]!;
  });

/** The stride from one batch item's numbers to the next one's. */
const batchStride = (view: View | undefined): number =>
  view === undefined || (view.shape[0] ?? 1) === 1 ? 0 : view.strides[0]!;

/** The runtime's descriptor of an attention; operands behind q, k and v are those of the composite. */
function description(
  { attrs }: CallUnit,
  [q, k, v]: readonly [View, View, View],
  operands: readonly View[],
  pointer: PointerOf,
): string {
  const { mask, sinks, segments, visible, prefix, dropKey } = extrasOf(operands, attrs);
  const [batch, queries, count, dims] = q.shape;
  const keys = k.shape[1]!;
  const numbers = [batch, count, queries, keys, dims, v.shape[3]];
  const floats = [attrs.scale, attrs.logitCap ?? 0].map((x) => literal(x as number, 'float32'));
  const { before, after } = windowOf(attrs);
  const [first, last, reach] = [before, after, prefixReach(attrs)].map((bound) =>
    Number.isFinite(bound) ? bound : 'LT_ALL',
  );
  const pointerOr = (view: View | undefined): string => (view === undefined ? 'NULL' : pointer(view));
  const strides = mask === undefined ? [0, 0, 0, 0] : stridesOf(mask);
  const ids = [segments?.queries, segments?.keys];
  const counts = [prefix, visible];
  const parts = [
    ...[...numbers, ...floats, first, last],
    ...[pointerOr(mask), ...strides],
    ...[...ids.map(pointerOr), ...ids.map(batchStride)],
    ...[pointerOr(dropKey), dropKey?.strides[0] ?? 0, keys],
    literal((attrs.keepProb as number | undefined) ?? 0, 'float32'),
    ...[...counts.map(pointerOr), ...counts.map(batchStride), reach],
    ...[pointerOr(sinks), sinks?.strides[0] ?? 0, attrs.coded ? 1 : 0],
  ];
  return `const lt_attention attention = {${parts.join(', ')}};`;
}

/** The scratch size of an attention: the descriptor without the fields of run time. */
function scratch(unit: CallUnit, qkv: readonly [View, View, View], backward: 0 | 1): string {
  const attrs = { ...unit.attrs, counted: false, prefixed: false, segmented: false, sunk: false };
  const text = description({ ...unit, attrs }, qkv, [], () => 'NULL');
  const value = text.slice(text.indexOf('{'), text.lastIndexOf(';'));
  return `lt_attention_scratch_bytes(${callPrecision(unit)}, &(const lt_attention)${value}, ${backward})`;
}

function attention(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const [q, k, v, ...rest] = unit.inputs as [View, View, View, ...View[]];
  const [out, sums] = unit.outputs as [View, View];
  needs.work.add(scratch(unit, [q, k, v], 0));
  const [keyScales, valueScales] = unit.attrs.coded ? rest.splice(-2) : [];
  const count = q.shape[2]!;
  const args = [
    heads(q, pointer),
    held(k, count, keyScales, pointer),
    held(v, count, valueScales, pointer),
    heads(out, pointer),
  ];
  return [
    description(unit, [q, k, v], rest, pointer),
    `lt_attention_forward(${callPrecision(unit)}, &attention, ${args.join(', ')}, ${pointer(sums)}, frame->work, frame->thread, frame->threads);`,
  ];
}

function attentionGrad(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const [dy, q, k, v, out, sums, ...rest] = unit.inputs as [View, View, View, View, View, View, ...View[]];
  needs.work.add(scratch(unit, [q, k, v], 1));
  const before = [q, k, v, out, dy].map((view) => heads(view, pointer));
  const after = unit.outputs.map((view) => heads(view, pointer));
  return [
    description(unit, [q, k, v], rest, pointer),
    `lt_attention_backward(${callPrecision(unit)}, &attention, ${before.join(', ')}, ${pointer(sums)}, ${after.join(', ')}, frame->work, frame->thread, frame->threads);`,
  ];
}

function attentionMaskGrad(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const [dy, q, k, v, out, sums, ...rest] = unit.inputs as [View, View, View, View, View, View, ...View[]];
  const dmask = unit.outputs[0]!;
  needs.work.add(scratch(unit, [q, k, v], 1));
  const operands = [q, k, v, out, dy].map((view) => heads(view, pointer));
  const size = sizeOf(dmask.shape);
  return [
    description(unit, [q, k, v], rest, pointer),
    `const lt_mask_gradient dmask = {(float *)${pointer(dmask)}, ${stridesOf(dmask).join(', ')}};`,
    `lt_fill_f32(dmask.data + LT_FROM(${size}), LT_TO(${size}) - LT_FROM(${size}), 0.0f);`,
    'lt_barrier();',
    `lt_attention_mask_gradient(${callPrecision(unit)}, &attention, ${operands.join(', ')}, ${pointer(sums)}, dmask, frame->work, frame->thread, frame->threads);`,
  ];
}

function attentionSinkGrad(unit: CallUnit, pointer: PointerOf): string[] {
  const [dy, q, k, v, out, sums, ...rest] = unit.inputs as [View, View, View, View, View, View, ...View[]];
  const dsinks = unit.outputs[0]!;
  const operands = [out, dy].map((view) => heads(view, pointer));
  return [
    description(unit, [q, k, v], rest, pointer),
    `lt_attention_sink_gradient(&attention, ${operands.join(', ')}, ${pointer(sums)}, ${pointer(dsinks)}, ${dsinks.strides[0]}, frame->thread, frame->threads);`,
  ];
}

function segmentSum({ inputs, outputs, attrs }: CallUnit, pointer: PointerOf): string[] {
  const [x, ids] = inputs as [View, View];
  const out = outputs[0]!;
  const rows = ids.shape.reduce((size, dim) => size * dim, 1);
  const columns = out.shape.slice(1).reduce((size, dim) => size * dim, 1);
  const rowRun = mergeAxes(x.shape.slice(0, ids.shape.length), x.strides.slice(0, ids.shape.length))[0];
  const idRun = mergeAxes(ids.shape, ids.strides)[0];
  return [
    `lt_segment_sum(${pointer(x)}, ${typeName(x.buffer)}, ${rowRun?.stride ?? 0}, ${pointer(ids)}, ${idRun?.stride ?? 0}, ` +
      `${rows}, ${columns}, ${pointer(out)}, ${columns}, ${attrs.numSegments as number}, 0, frame->thread, frame->threads);`,
  ];
}

/**
 * A loop over all axes of `views` but one, divided among the threads; `offset(i)` is the byte offset of line `line` in
 * view i.
 */
function lines(
  views: readonly View[],
  axis: number,
  body: (offset: (i: number) => string) => string[],
): string[] {
  const without = <T>(values: readonly T[]): T[] => values.filter((_, i) => i !== axis);
  const shape = without(views[0]!.shape);
  const count = shape.reduce((size, dim) => size * dim, 1);
  const offset = (i: number): string =>
    byteOffset('line', shape, without(views[i]!.strides), views[i]!.buffer);
  return [
    `for (int64_t line = LT_FROM(${count}); line < LT_TO(${count}); line++) {`,
    ...body(offset).map((text) => `  ${text}`),
    '}',
  ];
}

const suffix = ({ buffer }: View): string => (buffer.storage === 'float32' ? 'f32' : 'i32');

function cumsum({ inputs, outputs, attrs }: CallUnit, pointer: PointerOf): string[] {
  const [x, out] = [inputs[0]!, outputs[0]!];
  const axis = attrs.axis as number;
  const [from, to] = [pointer(x), pointer(out)];
  return lines([x, out], axis, (offset) => [
    `lt_cumsum_${suffix(x)}((const void *)((const char *)${from} + ${offset(0)}), ${x.strides[axis]!}, ` +
      `(void *)((char *)${to} + ${offset(1)}), ${out.strides[axis]!}, ${x.shape[axis]!}, ${attrs.exclusive ? 1 : 0}, ${attrs.reverse ? 1 : 0});`,
  ]);
}

function topK({ inputs, outputs, attrs }: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const x = inputs[0]!;
  const [values, indices] = outputs as [View, View];
  const axis = x.shape.length - 1;
  const k = attrs.k as number;
  needs.work.add(`lt_top_k_scratch_bytes(${k})`);
  const [from, first, second] = [pointer(x), pointer(values), pointer(indices)];
  return lines([x, values, indices], axis, (offset) => [
    `lt_top_k_${suffix(x)}((const void *)((const char *)${from} + ${offset(0)}), ${x.strides[axis]!}, ${x.shape[axis]!}, ${k}, ` +
      `(void *)((char *)${first} + ${offset(1)}), ${values.strides[axis]!}, (void *)((char *)${second} + ${offset(2)}), ${indices.strides[axis]!}, frame->work);`,
  ]);
}

/** Random numbers of a distribution of luthier.h. */
const random =
  (distribution: string): Writer =>
  ({ inputs: [key], outputs: [out] }, pointer) => [
    `lt_random(${distribution}, ${pointer(key!)}, ${key!.strides[0]!}, ${pointer(out!)}, ${sizeOf(out!.shape)}, frame->thread, frame->threads);`,
  ];

/**
 * Writes the slice, after copying the rest where the result does not share x's memory. Threads divide all axes but the
 * slice's and the last, in order, so that their items of a cache [B, S, N, H] are their items (batch, head) of an
 * attention.
 */
function updateSlice({ inputs, outputs, attrs }: CallUnit, pointer: PointerOf): string[] {
  const [x, rows, index] = inputs as [View, View, View];
  const out = outputs[0]!;
  const axis = attrs.axis as number;
  const last = axis === x.shape.length - 1 ? -1 : x.shape.length - 1;
  const width = last < 0 ? 1 : x.shape[last]!;
  const [size, count] = [x.shape[axis]!, rows.shape[axis]!];
  const items = (view: View): View => ({
    ...view,
    shape: view.shape.map((dim, i) => (i === last ? 1 : dim)),
  });
  const line = (view: View, offset: string): string =>
    `(lt_line){(char *)${pointer(view)} + ${offset}, ${typeName(view.buffer)}, ${view.strides[axis]!}, ${last < 0 ? 1 : view.strides[last]!}}`;
  // One index for all items of axis 0, or one for each.
  const indices = {
    ...index,
    shape: x.shape,
    strides: x.shape.map((_, i) => (i === 0 ? (index.strides[0] ?? 0) : 0)),
  };
  return lines([items(x), rows, out, indices], axis, (offset) => [
    `const int64_t at = lt_between(0, *(const int32_t *)((const char *)${pointer(index)} + ${offset(3)}), ${size - count});`,
    `lt_update_slice(${line(out, offset(2))}, ${line(x, offset(0))}, ${line(rows, offset(1))}, ${size}, at, ${count}, ${width});`,
  ]);
}

function updateRows({ inputs, outputs }: CallUnit, pointer: PointerOf): string[] {
  const [x, rows, indices] = inputs as [View, View, View];
  const [size, columns] = x.shape as [number, number];
  return [
    `lt_update_rows(${pointer(x)}, ${pointer(rows)}, ${pointer(indices)}, ${rows.shape[0]!}, ${columns}, ` +
      `${pointer(outputs[0]!)}, ${size}, frame->thread, frame->threads);`,
  ];
}

/** Writers of calls, by operation. */
export const CALLS: Readonly<Record<string, Writer>> = {
  AllGather: allGather,
  AllReduce: allReduce,
  AllToAll: allToAll,
  CollectivePermute: collectivePermute,
  Attention: attention,
  AttentionGrad: attentionGrad,
  AttentionMaskGrad: attentionMaskGrad,
  AttentionSinkGrad: attentionSinkGrad,
  Conv2D: convolution,
  Conv2DBackpropInput: convolution,
  Conv2DBackpropFilter: filterGradient,
  DepthwiseConv2dNative: depthwise,
  DepthwiseConv2dNativeBackpropInput: depthwise,
  DepthwiseConv2dNativeBackpropFilter: depthwiseFilter,
  HeldAttention: attention,
  MemberIndex: memberIndex,
  OwnPart: ownPart,
  ReduceScatter: reduceScatter,
  GroupedMatMul: groupedProducts,
  GroupedMatMulGrad: groupedSums,
  QuantizedMatMul: quantizedProduct,
  UnsortedSegmentSum: segmentSum,
  UpdateRows: updateRows,
  UpdateSlice: updateSlice,
  Cumsum: cumsum,
  RandomNormal: random('LT_RANDOM_NORMAL'),
  TruncatedNormal: random('LT_RANDOM_TRUNCATED'),
  Gumbel: random('LT_RANDOM_GUMBEL'),
  TopK: topK,
};
