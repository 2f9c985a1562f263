/** @file Units: what the program does, one thing after another: fused loops, products, attention, and calls of the runtime. */
import {
  type Iteration,
  isLoopOp,
  iterationOf,
  type LoopNode,
  type Split,
  sameAccess,
  splitsOf,
} from './iteration.js';
import type { Op } from './layout.js';
import { type ProductUnit, productOf } from './products.js';
import { type Buffer, storedDtype, type View } from './views.js';

/** Elementwise operations and reductions over the same rows and columns, in one function. */
export interface LoopUnit {
  readonly kind: 'loop';
  readonly rows: number;
  /** 0 where every node has one value a row. */
  columns: number;
  readonly nodes: LoopNode[];
}

/** An operation that the runtime, or a loop of its own, does whole. */
export interface CallUnit {
  readonly kind: 'attention' | 'attentionGrad' | 'segmentSum' | 'updateSlice' | 'cumsum' | 'topK';
  readonly inputs: readonly View[];
  readonly outputs: readonly View[];
  readonly attrs: Op['attrs'];
  readonly scope: string;
}

export type Unit = LoopUnit | ProductUnit | CallUnit;

const CALLS: Readonly<Record<string, CallUnit['kind']>> = {
  Attention: 'attention',
  AttentionGrad: 'attentionGrad',
  UnsortedSegmentSum: 'segmentSum',
  UpdateSlice: 'updateSlice',
  Cumsum: 'cumsum',
  TopK: 'topK',
};

/** Whether the lowering has a rule for an operation that is neither a view nor a copy. */
export function hasRule({ op, types }: Op): boolean {
  // Sums of integers by segment, and slices of bytes, have no function in the runtime.
  if (op === 'UnsortedSegmentSum') return types[0] === 'float32';
  if (op === 'UpdateSlice') return types[0] !== 'bool';
  return isLoopOp(op) || op === 'BatchMatMul' || CALLS[op] !== undefined;
}

/** The buffers that a unit reads. */
export function readsOf(unit: Unit): Buffer[] {
  if (unit.kind === 'product') return [unit.a.buffer, unit.b.buffer];
  if (unit.kind !== 'loop') return unit.inputs.map(({ buffer }) => buffer);
  return unit.nodes.flatMap(({ reads }) =>
    reads.flatMap((read) => (typeof read === 'number' ? [] : [read.buffer])),
  );
}

/** The buffers that a unit writes. */
export function writesOf(unit: Unit): Buffer[] {
  if (unit.kind === 'product') return [unit.c.buffer];
  if (unit.kind !== 'loop') return unit.outputs.map(({ buffer }) => buffer);
  return unit.nodes.map(({ write }) => write.buffer);
}

/** Puts operations into units. One loop is open at a time: what follows joins it, or closes it where it needs its results. */
class Fusion {
  readonly units: Unit[] = [];
  private open: LoopUnit | null = null;

  constructor(
    /** Counts of rows that products have: loops over the same rows can be pipelined with them. */
    private readonly productRows: ReadonlySet<number>,
  ) {}

  add(op: Op): void {
    if (isLoopOp(op.op)) this.addLoop(op);
    else {
      const unit = unitOf(op);
      // What does not need the open loop goes in front of it, and the loop stays open.
      const written = new Set(this.open ? writesOf(this.open) : []);
      if (
        readsOf(unit).some((buffer) => written.has(buffer)) ||
        writesOf(unit).some((buffer) => written.has(buffer))
      )
        this.close();
      this.units.push(unit);
    }
  }

  close(): void {
    if (this.open !== null) this.units.push(this.open);
    this.open = null;
  }

  private addLoop(op: Op): void {
    const iteration = iterationOf(op);
    const splits = splitsOf(iteration);
    const joined = this.joining(op.op, iteration, splits);
    const split = joined ?? this.preferred(splits);
    if (joined === null) {
      this.close();
      this.open = { kind: 'loop', rows: split.rows, columns: 0, nodes: [] };
    }
    const open = this.open!;
    const wide = isWide(iteration, split);
    if (wide) open.columns = split.columns;
    open.nodes.push({
      op: op.op,
      role: iteration.role,
      attrs: this.attrsOf(op, split),
      scope: op.scope,
      wide,
      reads: split.reads,
      types: op.types,
      write: split.write,
      result: storedDtype(op.outputs[0]!.buffer.storage),
    });
  }

  /** What the expression needs to know of the split or of its operands' layout. */
  private attrsOf(op: Op, split: Split): Op['attrs'] {
    if (op.op === 'RandomUniform' || op.op === 'Range') return { ...op.attrs, columns: split.columns };
    if (op.op !== 'GatherV2') return op.attrs;
    const x = op.inputs[0] as View;
    const axis = op.attrs.axis as number;
    return { stride: x.strides[axis]!, count: x.shape[axis]! };
  }

  /** The split with which an operation can be part of the open loop, or null. */
  private joining(op: string, iteration: Iteration, splits: readonly Split[]): Split | null {
    const { open } = this;
    if (open === null) return null;
    const split = splits.find(
      (candidate) =>
        candidate.rows === open.rows &&
        (!isWide(iteration, candidate) || open.columns === 0 || open.columns === candidate.columns),
    );
    if (split === undefined) return null;
    const fits = split.reads.every((read) => {
      if (typeof read === 'number') return true;
      const writers = open.nodes.filter(({ write }) => write.buffer === read.buffer);
      const source = writers.find(({ write }) => sameAccess(write, read));
      // Sums over rows are not known before the loop has ended.
      if (source !== undefined) return source.role === 'map' || source.role === 'row';
      return writers.length === 0;
    });
    const clashes = open.nodes.some(
      ({ write }) =>
        sameAccess(write, split.write) || (op === 'Overwrite' && write.buffer === split.write.buffer),
    );
    return fits && !clashes ? split : null;
  }

  /** Rows that products have, else everything in one row, else as few rows as strides allow. */
  private preferred(splits: readonly Split[]): Split {
    return splits.find(({ rows }) => rows > 1 && this.productRows.has(rows)) ?? splits[0]!;
  }
}

const isWide = ({ role }: Iteration, { columns }: Split): boolean => columns > 1 || role === 'row';

function unitOf(op: Op): Unit {
  if (op.op === 'BatchMatMul') return productOf(op);
  return {
    kind: CALLS[op.op]!,
    inputs: op.inputs as View[],
    outputs: op.outputs,
    attrs: op.attrs,
    scope: op.scope,
  };
}

/** The units of a program, in an order in which each finds its operands. */
export function fuse(ops: readonly Op[]): Unit[] {
  const products = ops.filter(({ op }) => op === 'BatchMatMul').map(productOf);
  const fusion = new Fusion(new Set(products.map(({ m }) => m)));
  for (const op of ops) fusion.add(op);
  fusion.close();
  return fusion.units;
}
