/** @file Fusion of operations into units: one loop over common rows and columns. */
import type { CallForm } from '../../rules/deviceForm.js';
import { formOf } from './forms.js';
import {
  countsOf,
  type Iteration,
  isLoopOp,
  iterationOf,
  type LoopNode,
  type Split,
  sameAccess,
  splitsOf,
  splitWithin,
} from './iteration.js';
import { buffersOf, type PlacedOp } from './placedOps.js';
import { type ProductUnit, productOf } from './products.js';
import { type CallUnit, type LoopUnit, readsOf, type Unit, waitsOf, writesOf } from './units.js';
import { type Buffer, storedDtype, type View } from './views.js';

/** An elementwise operation or reduction, with all splits that its loop may have. */
interface Member {
  readonly op: PlacedOp;
  readonly iteration: Iteration;
  readonly splits: readonly Split[];
}

/** A loop that further operations may join. */
interface OpenLoop {
  readonly unit: LoopUnit;
  readonly members: Member[];
}

const isWide = ({ role }: Iteration, { columns }: Split): boolean => columns > 1 || role === 'row';

/** Attributes of an expression that depend on the split or on its operands' layout. */
function attrsOf(op: PlacedOp, split: Split): PlacedOp['attrs'] {
  if (countsOf(op.op) === 'elements') return { ...op.attrs, columns: split.columns };
  if (op.op !== 'GatherV2') return op.attrs;
  const x = op.inputs[0] as View;
  const axis = op.attrs.axis as number;
  return { stride: x.strides[axis]!, count: x.shape[axis]! };
}

/** Whether a loop can read an operand: it was made before, or the same iteration makes it. */
function isReadable(read: Split['reads'][number], nodes: readonly LoopNode[]): boolean {
  if (typeof read === 'number') return true;
  const writers = nodes.filter(({ write }) => write.buffer === read.buffer);
  const source = writers.find(({ write }) => sameAccess(write, read));
  // A sum over rows is complete only after the loop.
  if (source !== undefined) return source.role === 'map' || source.role === 'row';
  return writers.length === 0;
}

/** Whether a loop of these nodes can read all operands of an operation. A gather's table must be complete. */
function canRead(op: string, reads: Split['reads'], nodes: readonly LoopNode[]): boolean {
  const table = op === 'GatherV2' ? reads[0] : undefined;
  const isOpen = typeof table === 'object' && nodes.some(({ write }) => write.buffer === table.buffer);
  return !isOpen && reads.every((read) => isReadable(read, nodes));
}

/**
 * Whether a loop reads integers of few bits, which share scales by blocks: flat ones beside them are split at the rows of
 * their scales. Loops over floats alone keep the rows that they have, as the order of sums and roundings depends on them.
 */
const hasCodes = (
  nodes: readonly { readonly reads: readonly (Pick<View, 'buffer'> | number)[] }[],
): boolean =>
  nodes.some(({ reads }) =>
    reads.some(
      (read) =>
        typeof read !== 'number' && (read.buffer.storage === 'int8' || read.buffer.storage === 'uint8'),
    ),
  );

/** The split with which an operation can join a loop, or null. */
function splitFor({ op, iteration, splits }: Member, { rows, columns, nodes }: LoopUnit): Split | null {
  const atAxes = splits.filter((candidate) => candidate.rows === rows);
  const within = atAxes.length === 0 && hasCodes([iteration, ...nodes]) ? splitWithin(iteration, rows) : null;
  const split = [...atAxes, ...(within === null ? [] : [within])].find(
    (candidate) => !isWide(iteration, candidate) || columns === 0 || columns === candidate.columns,
  );
  if (split === undefined || !canRead(op.op, split.reads, nodes)) return null;
  const clashes = nodes.some(
    ({ write, period = rows }) =>
      // Blocks end where an item ends, of which there is one size.
      (period < rows && period !== (iteration.period ?? period)) ||
      sameAccess(write, split.write) ||
      (op.op === 'Overwrite' && write.buffer === split.write.buffer),
  );
  return clashes ? null : split;
}

/**
 * C compile time grows faster than linearly with a loop's size: loops of 256 operations, many of them sines and
 * exponentials, take 1.9 times as long an operation as loops of this many. Loops of real models are smaller.
 */
const MOST_NODES = 64;

/** Adds an operation to a loop if it fits. */
function join({ unit, members }: OpenLoop, member: Member): boolean {
  const split = unit.nodes.length < MOST_NODES ? splitFor(member, unit) : null;
  if (split === null) return false;
  const { op, iteration } = member;
  const wide = isWide(iteration, split);
  if (wide) unit.columns = split.columns;
  members.push(member);
  unit.nodes.push({
    op: op.op,
    role: iteration.role,
    attrs: attrsOf(op, split),
    scope: op.scope,
    wide,
    reads: split.reads,
    types: op.types,
    write: split.write,
    result: storedDtype(op.outputs[0]!.buffer.storage),
    ...(iteration.period !== undefined && { period: iteration.period }),
    ...(op.after && { after: op.after }),
  });
  return true;
}

/** A loop over `rows` rows of all these operations, or null. */
function loopOf(members: readonly Member[], rows: number): OpenLoop | null {
  const loop: OpenLoop = { unit: { kind: 'loop', rows, columns: 0, nodes: [] }, members: [] };
  return members.every((member) => join(loop, member)) ? loop : null;
}

/** Greedy fusion: one loop is open at a time; later operations join it, or close it when they need its results. */
class Fusion {
  readonly units: Unit[] = [];
  private open: OpenLoop | null = null;

  /** Row counts of products: loops over as many rows can be pipelined with them. */
  private readonly productRows: ReadonlySet<number>;
  /** Row counts of the products that read or write a buffer. */
  private readonly rowsAt = new Map<Buffer, Set<number>>();

  constructor(private readonly products: ReadonlyMap<PlacedOp, ProductUnit>) {
    this.productRows = new Set([...products.values()].map(({ m }) => m));
    for (const { m, a, c } of products.values())
      for (const { buffer } of [a, c])
        this.rowsAt.set(buffer, (this.rowsAt.get(buffer) ?? new Set<number>()).add(m));
  }

  add(op: PlacedOp): void {
    if (isLoopOp(op.op)) {
      const iteration = iterationOf(op);
      this.addLoop({ op, iteration, splits: splitsOf(iteration) });
      return;
    }
    const unit = this.products.get(op) ?? callOf(op);
    // Operations that do not need the open loop go before it, and it stays open.
    if (this.opens([...readsOf(unit), ...writesOf(unit), ...waitsOf(unit)])) this.close();
    this.units.push(unit);
  }

  close(): void {
    if (this.open !== null) this.units.push(this.open.unit);
    this.open = null;
  }

  /** Whether the open loop writes one of these. */
  private opens(buffers: readonly Buffer[]): boolean {
    const written = new Set(this.open ? writesOf(this.open.unit) : []);
    return buffers.some((buffer) => written.has(buffer));
  }

  private addLoop(member: Member): void {
    if (this.opens(member.op.after ?? [])) this.close();
    const { open } = this;
    if (open !== null && join(open, member)) return;
    const shared = open === null ? null : this.splitAgain(open, member);
    if (shared === null) this.close();
    this.open = shared ?? loopOf([member], this.preferred(member).rows)!;
  }

  /**
   * The open loop with other rows, such that an operation can join it: contiguous data may be split at any row length.
   */
  private splitAgain({ unit, members }: OpenLoop, member: Member): OpenLoop | null {
    if (this.productRows.has(unit.rows)) return null;
    for (const { rows } of member.splits) {
      const loop = rows === unit.rows ? null : loopOf([...members, member], rows);
      if (loop !== null) return loop;
    }
    return null;
  }

  /** Preferred rows: those of adjacent products, or of any product; else one row, or as few as strides allow. */
  private preferred({ op, splits }: Member): Split {
    const beside = [...buffersOf(op.inputs), op.outputs[0]!.buffer].map((buffer) => this.rowsAt.get(buffer));
    const among = (counts: ReadonlySet<number> | undefined): Split | undefined =>
      splits.find(({ rows }) => rows > 1 && counts?.has(rows));
    return beside.map(among).find(Boolean) ?? among(this.productRows) ?? splits[0]!;
  }
}

const callOf = ({ op, inputs, outputs, attrs, scope, after }: PlacedOp): CallUnit => ({
  kind: 'call',
  op,
  form: formOf(op) as CallForm,
  inputs: inputs as View[],
  outputs,
  attrs,
  scope,
  ...(after && { after }),
});

/** The units of a program, each after the units that it reads from. */
export function fuse(ops: readonly PlacedOp[]): Unit[] {
  const products = ops.filter(({ op }) => formOf(op)?.kind === 'product');
  const fusion = new Fusion(new Map(products.map((op) => [op, productOf(op)])));
  for (const op of ops) fusion.add(op);
  fusion.close();
  return fusion.units;
}
