/** @file Stages: units that run together on blocks of rows or split their work over all threads, in their order. */
import { addWrites, type Touch, touchedReads, touchedWrites, writesByRows } from './chainRows.js';
import type { Precision, ProductUnit } from './products.js';
import { type CallUnit, type LoopUnit, readsOf, type Unit, writesOf } from './units.js';
import type { Buffer } from './views.js';

/** A right operand in the order in which kernels read it. */
export interface Packing {
  readonly unit: ProductUnit;
  readonly precision: Precision;
  /** Bytes from the start of the program's memory; set when memory is planned. */
  offset: number;
}

/** Units on the same rows, one block of rows after another, without a barrier between the units. */
export interface Chain {
  readonly kind: 'chain';
  /** Every unit has this many rows, or a multiple. */
  rows: number;
  readonly units: (LoopUnit | ProductUnit)[];
}

export type Stage =
  | Chain
  /** A loop on its own, its rows or columns split over the threads. */
  | { readonly kind: 'loop'; readonly units: readonly [LoopUnit] }
  /** Products with their operands both packed, split in two dimensions: sums over rows, such as gradients of weights. */
  | { readonly kind: 'products'; readonly units: ProductUnit[] }
  /** A product of few rows: threads share its columns. */
  | { readonly kind: 'narrow'; readonly units: readonly [ProductUnit] }
  /** A product for every item of a batch. */
  | { readonly kind: 'batch'; readonly units: readonly [ProductUnit] }
  | { readonly kind: 'call'; readonly units: readonly [CallUnit] }
  /** Right operands are packed for the stages that follow. */
  | { readonly kind: 'pack'; readonly units: readonly []; readonly packings: Packing[] };

/** The stages of a program and the packed operands that they read. */
export interface Schedule {
  readonly stages: readonly Stage[];
  readonly packings: readonly Packing[];
  /** So many stages, the first, run only when what they read has changed. */
  readonly onceStages: number;
  /** The stages from here on read what the others have written, through inputs of their own. */
  readonly laterStages: number;
}

/** Fewer rows than this are not worth a chain: its blocks would leave threads idle. */
const MIN_CHAIN_ROWS = 48;

/** A chain takes on fewer rows than it has, for a unit to join, down to this many. */
const MIN_SHARED_ROWS = 256;

const rowsOf = (unit: LoopUnit | ProductUnit): number => (unit.kind === 'product' ? unit.m : unit.rows);

/** Whether a product can be one of a chain's: rows of a matrix by one that is there before the chain starts. */
const isRowProduct = (unit: Unit): boolean =>
  unit.kind === 'product' && unit.batch.length === 0 && unit.c.cs === 1 && unit.m >= MIN_CHAIN_ROWS;

class Scheduler {
  readonly stages: Stage[] = [];
  readonly packings: Packing[] = [];
  /** Of operands that stay from run to run. */
  readonly keptPackings: Packing[] = [];
  private chain: Chain | null = null;
  /** What the chain writes, with strides by its rows; null where something does not keep to rows. */
  private chainWrites = new Map<Buffer, number | null>();
  private hasProduct = false;
  /** Products that wait for the chain to end: they sum over its rows. */
  private deferred: ProductUnit[] = [];
  private readonly deferredWrites = new Set<Buffer>();

  constructor(private readonly isKept: (buffer: Buffer) => boolean) {}

  add(unit: Unit): void {
    if (unit.kind === 'loop') this.addRows(unit);
    else if (unit.kind === 'product') {
      if (unit.batch.length === 0 && this.isSumOverRows(unit)) this.defer(unit);
      else if (!isRowProduct(unit)) this.addProduct(unit);
      else this.addRows(unit);
    } else {
      if (this.dependsOnOpen(unit)) this.flush();
      this.stages.push({ kind: 'call', units: [unit] });
    }
  }

  flush(): void {
    if (this.chain !== null) this.stages.push(this.chain);
    this.chain = null;
    this.chainWrites.clear();
    this.hasProduct = false;
    if (this.deferred.length > 0) this.stages.push({ kind: 'products', units: this.deferred });
    this.deferred = [];
    this.deferredWrites.clear();
  }

  private dependsOnOpen(unit: Unit): boolean {
    const isOpen = (buffer: Buffer): boolean =>
      this.chainWrites.has(buffer) || this.deferredWrites.has(buffer);
    return readsOf(unit).some(isOpen) || writesOf(unit).some(isOpen);
  }

  /** A product whose inner dimension is the chain's rows: it needs all of them. */
  private isSumOverRows(unit: ProductUnit): boolean {
    const isTransposed = unit.a.rs === 1 && unit.a.cs !== 1;
    return unit.k >= MIN_CHAIN_ROWS && (isTransposed || this.chainWrites.has(unit.b.buffer));
  }

  private defer(unit: ProductUnit): void {
    if (readsOf(unit).some((buffer) => this.deferredWrites.has(buffer))) this.flush();
    this.deferred.push(unit);
    this.deferredWrites.add(unit.c.buffer);
  }

  private addProduct(unit: ProductUnit): void {
    if (unit.batch.length === 0 && unit.m >= MIN_CHAIN_ROWS) {
      this.defer(unit);
      return;
    }
    if (this.dependsOnOpen(unit)) this.flush();
    if (unit.batch.length > 0) this.stages.push({ kind: 'batch', units: [unit] });
    else {
      this.pack(unit);
      this.stages.push({ kind: 'narrow', units: [unit] });
    }
  }

  private addRows(unit: LoopUnit | ProductUnit): void {
    if (readsOf(unit).some((buffer) => this.deferredWrites.has(buffer))) this.flush();
    if (this.joins(unit)) {
      this.pack(unit);
      this.extend(this.chain!, unit);
      return;
    }
    if (this.dependsOnOpen(unit)) this.flush();
    const startsChain = rowsOf(unit) >= MIN_CHAIN_ROWS && (this.chain === null || unit.kind === 'product');
    if (!startsChain) {
      // Nothing that is open matters to it: it goes in front.
      this.stages.push({ kind: 'loop', units: [unit as LoopUnit] });
      return;
    }
    this.flush();
    this.pack(unit);
    this.chain = { kind: 'chain', rows: rowsOf(unit), units: [] };
    this.extend(this.chain, unit);
  }

  private extend(chain: Chain, unit: LoopUnit | ProductUnit): void {
    const rows = Math.min(chain.rows, rowsOf(unit));
    if (rows !== chain.rows) this.chainWrites = writesByRows(chain.units, rows);
    chain.rows = rows;
    chain.units.push(unit);
    addWrites(this.chainWrites, unit, rows);
    this.hasProduct ||= unit.kind === 'product';
  }

  /** Has a product's right operand packed in front of the open chain, once for all that read it. */
  private pack(unit: LoopUnit | ProductUnit): void {
    if (unit.kind !== 'product' || this.packings.some((known) => samePacking(known.unit, unit))) return;
    const packing: Packing = { unit, precision: unit.precision, offset: -1 };
    this.packings.push(packing);
    if (this.isKept(unit.b.buffer)) {
      this.keptPackings.push(packing);
      return;
    }
    const last = this.stages.at(-1);
    const isInput = unit.b.buffer.home.kind === 'input' || unit.b.buffer.home.kind === 'constant';
    const first = this.stages[0];
    if (isInput && first?.kind === 'pack') first.packings.push(packing);
    else if (isInput) this.stages.unshift({ kind: 'pack', units: [], packings: [packing] });
    else if (last?.kind === 'pack') last.packings.push(packing);
    else this.stages.push({ kind: 'pack', units: [], packings: [packing] });
  }

  private joins(unit: LoopUnit | ProductUnit): boolean {
    const { chain } = this;
    if (chain === null) return false;
    const [rows, own] = [chain.rows, rowsOf(unit)];
    const common = Math.min(rows, own);
    // Fewer rows than the chain has so far must still be enough for blocks of rows on every thread.
    const enough = common === rows ? MIN_CHAIN_ROWS : MIN_SHARED_ROWS;
    if (common < enough || Math.max(rows, own) % common !== 0) return false;
    const written = common === rows ? this.chainWrites : writesByRows(chain.units, common);
    const keepsToRows = ({ buffer, stride }: Touch): boolean => {
      const known = written.get(buffer);
      return known === undefined || (known !== null && known === stride);
    };
    const reads = touchedReads(unit, common);
    // A loop that has nothing to do with the chain would only widen what its blocks touch.
    const related =
      unit.kind === 'product' || this.hasProduct || reads.some(({ buffer }) => written.has(buffer));
    return related && reads.every(keepsToRows) && touchedWrites(unit, common).every(keepsToRows);
  }
}

/** Whether two products read the same packed operand. */
export const samePacking = (x: ProductUnit, y: ProductUnit): boolean =>
  x.b.buffer === y.b.buffer &&
  x.b.offset === y.b.offset &&
  x.b.rs === y.b.rs &&
  x.b.cs === y.b.cs &&
  x.k === y.k &&
  x.n === y.n &&
  x.precision === y.precision;

/** The stages of a program, in order; operands that are `isKept` are packed once. */
export function schedule(
  units: readonly Unit[],
  isKept: (buffer: Buffer) => boolean = () => false,
): Schedule {
  const scheduler = new Scheduler(isKept);
  for (const unit of units) scheduler.add(unit);
  scheduler.flush();
  const { stages, packings, keptPackings } = scheduler;
  const kept: Stage[] =
    keptPackings.length === 0 ? [] : [{ kind: 'pack', units: [], packings: keptPackings }];
  const all = [...kept, ...stages];
  return { stages: all, packings, onceStages: kept.length, laterStages: all.length };
}

/** One after the other; `first` runs only when what it reads has changed. */
export function joinSchedules(first: Schedule, second: Schedule): Schedule {
  const stages = [...first.stages, ...second.stages];
  return {
    stages,
    packings: [...first.packings, ...second.packings],
    onceStages: first.stages.length + second.onceStages,
    laterStages: stages.length,
  };
}

/** One after the other in every run: `second` may read what `first` has written, without its being told so. */
export function inTurn(first: Schedule, second: Schedule): Schedule {
  const once = ({ stages, onceStages }: Schedule) => stages.slice(0, onceStages);
  const rest = ({ stages, onceStages }: Schedule) => stages.slice(onceStages);
  const before = [...once(first), ...once(second), ...rest(first)];
  return {
    stages: [...before, ...rest(second)],
    packings: [...first.packings, ...second.packings],
    onceStages: first.onceStages + second.onceStages,
    laterStages: before.length,
  };
}
