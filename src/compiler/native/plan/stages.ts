/** @file Stages: units scheduled together, on blocks of rows or divided among all threads. */
import type { Precision } from '../../program/precision.js';
import { periodOf } from './blocks.js';
import { addWrites, type Touch, touchedReads, touchedWrites, writesByRows } from './chainRows.js';
import { type ProductUnit, sumPartsOf } from './products.js';
import { type CallUnit, type LoopUnit, readsOf, type Unit, waitsOf, writesOf } from './units.js';
import type { Buffer, Loop } from './views.js';

/** A right operand in panel order. */
export interface Packing {
  readonly unit: ProductUnit;
  readonly precision: Precision;
}

/** Units on the same rows, run block by block without a barrier between the units. */
export interface Chain {
  readonly kind: 'chain';
  /** Every unit has this many rows, or a multiple. */
  rows: number;
  readonly units: (LoopUnit | ProductUnit)[];
}

export type Stage =
  | Chain
  /** A single loop; threads divide its rows or columns. */
  | { readonly kind: 'loop'; readonly units: readonly [LoopUnit] }
  /** Products with both operands packed, divided in two dimensions: sums over rows, such as gradients of weights. */
  | { readonly kind: 'products'; readonly units: ProductUnit[] }
  /** A product of few rows; threads divide its columns. */
  | { readonly kind: 'narrow'; readonly units: readonly [ProductUnit] }
  /** A batch of products. */
  | { readonly kind: 'batch'; readonly units: readonly [ProductUnit] }
  | { readonly kind: 'call'; readonly units: readonly [CallUnit] }
  /** Begin or end of a loop. */
  | { readonly kind: 'begin' | 'end'; readonly units: readonly []; readonly loop: Loop }
  /** Packing of right operands for later stages. */
  | { readonly kind: 'pack'; readonly units: readonly []; readonly packings: Packing[] };

/** The stages of a program and the packed operands that they read. */
export interface Schedule {
  readonly stages: readonly Stage[];
  readonly packings: readonly Packing[];
  /** Number of leading stages that run only when their inputs have changed. */
  readonly onceStages: number;
  /** First stage of the program that follows, which reads what earlier ones wrote through its own inputs. */
  readonly laterStages: number;
}

/** Below this many rows, a chain's blocks would leave threads idle. */
const MIN_CHAIN_ROWS = 48;

/** A chain may reduce its rows, to let a unit join, down to this many. */
const MIN_SHARED_ROWS = 256;

/**
 * Elements of inputs that are packed before all else, for one barrier. Those of larger programs are packed before the chain that
 * reads them, so that their packed forms need not all be in memory at once.
 */
const MOST_EARLY = 2 ** 26;

/** Up to so many rows and columns, blocks and panels are too few for threads to divide a long sum by. */
const [FEW_ROWS, FEW_COLUMNS] = [512, 256];

/**
 * A right matrix of so many elements leaves the caches before each block of few rows has read it, packed: threads pack what they
 * multiply by instead, a slab at a time, by all rows.
 */
const STREAMED_OPERAND = 2 ** 20;

/** A chain of fewer rows has one block, for one thread, and a right matrix of so many elements is work for all of them. */
const [ONE_BLOCK_ROWS, LARGE_OPERAND] = [128, 2 ** 16];

const rowsOf = (unit: LoopUnit | ProductUnit): number => (unit.kind === 'product' ? unit.m : unit.rows);

/** Whether threads divide a product by its columns, for its rows are too few. */
const isNarrow = ({ m, n, k }: ProductUnit): boolean =>
  m < MIN_CHAIN_ROWS || (m < ONE_BLOCK_ROWS && n * k >= LARGE_OPERAND);

/**
 * Whether a product can join a chain: rows of a left matrix, and a right matrix that exists before the chain starts.
 */
const isRowProduct = (unit: ProductUnit): boolean =>
  unit.batch.length === 0 && unit.c.cs === 1 && !isNarrow(unit);

class Scheduler {
  readonly stages: Stage[] = [];
  readonly packings: Packing[] = [];
  /** Packings of operands that persist between runs. */
  readonly keptPackings: Packing[] = [];
  /** Elements of the operands that are packed before all else. */
  private earlyElements = 0;
  private chain: Chain | null = null;
  /** Buffers that the chain writes, with strides per row; null where an access reaches beyond its row. */
  private chainWrites = new Map<Buffer, number | null>();
  private hasProduct = false;
  /** Products that wait for the end of the chain, since they sum over its rows. */
  private deferred: ProductUnit[] = [];
  private readonly deferredWrites = new Set<Buffer>();

  constructor(private readonly isKept: (buffer: Buffer) => boolean) {}

  add(unit: Unit): void {
    // What is computed again must not live as long as the gradients of all layers, which a chain's products wait for.
    if (waitsOf(unit).some(this.isOpen)) this.flush();
    if (unit.kind === 'loop') this.addRows(unit);
    else if (unit.kind === 'product') {
      const isLong = sumPartsOf(unit) > 0 && this.hasFewBlocks(unit);
      const isApart = this.isSumOverRows(unit) || this.isStreamed(unit);
      if (isLong || (unit.batch.length === 0 && isApart)) this.defer(unit);
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

  private readonly isOpen = (buffer: Buffer): boolean =>
    this.chainWrites.has(buffer) || this.deferredWrites.has(buffer);

  private dependsOnOpen(unit: Unit): boolean {
    return readsOf(unit).some(this.isOpen) || writesOf(unit).some(this.isOpen);
  }

  /** Whether a product sums over the chain's rows, and so needs all of them. */
  private isSumOverRows(unit: ProductUnit): boolean {
    const isTransposed = unit.a.rs === 1 && unit.a.cs !== 1;
    return unit.k >= MIN_CHAIN_ROWS && (isTransposed || this.chainWrites.has(unit.b.buffer));
  }

  /** Whether reading a product's right matrix once is worth more than being in a chain. */
  private isStreamed(unit: ProductUnit): boolean {
    const { m, n, k, b } = unit;
    return m <= FEW_ROWS && n * k >= STREAMED_OPERAND && !isNarrow(unit) && !this.isKept(b.buffer);
  }

  /** Whether a product's rows and columns are too few to divide, and nothing of it stays packed. */
  private hasFewBlocks({ m, n, b }: ProductUnit): boolean {
    return m <= FEW_ROWS && n <= FEW_COLUMNS && !this.isKept(b.buffer);
  }

  private defer(unit: ProductUnit): void {
    if (readsOf(unit).some((buffer) => this.deferredWrites.has(buffer))) this.flush();
    this.deferred.push(unit);
    this.deferredWrites.add(unit.c.buffer);
  }

  private addProduct(unit: ProductUnit): void {
    if (unit.batch.length === 0 && !isNarrow(unit)) {
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
      // Independent of everything open: goes in front.
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

  /** Packs a product's right operand before the open chain, once for all of its readers. */
  private pack(unit: LoopUnit | ProductUnit): void {
    if (unit.kind !== 'product' || this.packings.some((known) => samePacking(known.unit, unit))) return;
    const packing: Packing = { unit, precision: unit.precision };
    this.packings.push(packing);
    if (this.isKept(unit.b.buffer)) {
      this.keptPackings.push(packing);
      return;
    }
    const last = this.stages.at(-1);
    const isInput = unit.b.buffer.home.kind === 'input' || unit.b.buffer.home.kind === 'constant';
    const first = this.stages[0];
    const isEarly = isInput && this.earlyElements + unit.k * unit.n <= MOST_EARLY;
    if (isEarly) this.earlyElements += unit.k * unit.n;
    if (isEarly && first?.kind === 'pack') first.packings.push(packing);
    else if (isEarly) this.stages.unshift({ kind: 'pack', units: [], packings: [packing] });
    else if (last?.kind === 'pack') last.packings.push(packing);
    else this.stages.push({ kind: 'pack', units: [], packings: [packing] });
  }

  private joins(unit: LoopUnit | ProductUnit): boolean {
    const { chain } = this;
    if (chain === null) return false;
    const [rows, own] = [chain.rows, rowsOf(unit)];
    const common = Math.min(rows, own);
    // After a reduction of rows, there must still be enough blocks for every thread.
    const enough = common === rows ? MIN_CHAIN_ROWS : MIN_SHARED_ROWS;
    if (common < enough || Math.max(rows, own) % common !== 0) return false;
    if (periodOf([...chain.units, unit], common) === null) return false;
    const written = common === rows ? this.chainWrites : writesByRows(chain.units, common);
    const keepsToRows = ({ buffer, stride }: Touch): boolean => {
      const known = written.get(buffer);
      return known === undefined || (known !== null && known === stride);
    };
    const reads = touchedReads(unit, common);
    // An unrelated loop would only enlarge the working set of the chain's blocks.
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

/** The stages of a program in order; operands that are `isKept` are packed once. */
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

/** Sequential composition; `first` runs only when its inputs have changed. */
export function joinSchedules(first: Schedule, second: Schedule): Schedule {
  const stages = [...first.stages, ...second.stages];
  return {
    stages,
    packings: [...first.packings, ...second.packings],
    onceStages: first.stages.length + second.onceStages,
    laterStages: stages.length,
  };
}

/**
 * Sequential composition in every run: `second` may read what `first` wrote, through memory that the schedule does not
 * know to be shared.
 */
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
