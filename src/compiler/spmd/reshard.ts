/** @file Steps from one sharding of a tensor to another: own parts, exchanges, then gathers. */
import { type Attrs, type Node, newValue, type Value } from '../program/ir.js';
import { byteSize, type TensorSpec } from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { type MeshShape, type Sharding, sameAxes, sameSharding, waysOf } from './sharding.js';

/** Adds nodes to a program of one rank. */
export type Emit = (op: string, inputs: readonly Value[], attrs?: Attrs) => Value;

/** An {@link Emit} whose nodes are of a layer. */
export const emitTo =
  (nodes: Node[], scope: string): Emit =>
  (op, inputs, attrs = {}) => {
    const output = newValue(inferOutputs(op, inputs, attrs)[0]!);
    nodes.push({ op, inputs, outputs: [output], attrs, scope });
    return output;
  };

/** One collective, or a cut without one. */
interface Step {
  readonly op: 'OwnPart' | 'AllToAll' | 'AllGather';
  readonly axes: readonly number[];
  /** The dimension; of an exchange that which is joined, and which is split. */
  readonly dim: number;
  readonly from?: number;
}

/** The end of `axes`, behind those that begin `others` too. */
function behindCommon(axes: readonly number[], others: readonly number[]): readonly number[] {
  let common = 0;
  while (common < axes.length && axes[common] === others[common]) common++;
  return axes.slice(common);
}

/** The steps in order. Cuts come first where they may, so that less is sent. */
function stepsBetween(from: Sharding, to: Sharding): Step[] {
  const current = from.map((axes) => [...axes]);
  const steps: Step[] = [];
  const missing = (dim: number) => behindCommon(to[dim]!, current[dim]!);
  const surplus = (dim: number) => behindCommon(current[dim]!, to[dim]!);
  const dims = [...current.keys()];
  const cut = (dim: number): void => {
    const axes = missing(dim);
    if (axes.length === 0 || surplus(dim).length > 0) return;
    if (axes.some((axis) => current.flat().includes(axis))) return;
    steps.push({ op: 'OwnPart', axes, dim });
    current[dim]!.push(...axes);
  };
  dims.forEach(cut);
  for (const dim of dims) {
    const axes = surplus(dim);
    if (axes.length === 0 || missing(dim).length > 0) continue;
    const other = dims.find((each) => sameAxes(missing(each), axes) && surplus(each).length === 0);
    if (other === undefined) continue;
    steps.push({ op: 'AllToAll', axes, dim, from: other });
    current[dim]!.splice(-axes.length);
    current[other]!.push(...axes);
  }
  for (const dim of dims) {
    const axes = surplus(dim);
    if (axes.length === 0) continue;
    steps.push({ op: 'AllGather', axes, dim });
    current[dim]!.splice(-axes.length);
  }
  dims.forEach(cut);
  return steps;
}

/** Bytes that a rank receives. @param local of its part before */
export function reshardBytes(local: number, from: Sharding, to: Sharding, mesh: MeshShape): number {
  let [size, bytes] = [local, 0];
  for (const { op, axes } of stepsBetween(from, to)) {
    const ways = waysOf(axes, mesh);
    if (op === 'OwnPart') size /= ways;
    else if (op === 'AllToAll') bytes += (size * (ways - 1)) / ways;
    else {
      bytes += size * (ways - 1);
      size *= ways;
    }
  }
  return bytes;
}

/** A rank's part by another sharding. */
export function reshard(value: Value, from: Sharding, to: Sharding, mesh: MeshShape, emit: Emit): Value {
  if (sameSharding(from, to)) return value;
  return stepsBetween(from, to).reduce(
    (part, { op, axes, dim, from: split }) =>
      emit(op, [part], { mesh, axes, ...(split === undefined ? { dim } : { from: split, to: dim }) }),
    value,
  );
}

/** Bytes of a rank's part. */
export const localBytes = (spec: TensorSpec, sharding: Sharding, mesh: MeshShape): number =>
  byteSize(spec) / waysOf(sharding.flat(), mesh);
