/** @file Steps: functions of the stages that all threads call, with the barriers between them. */
import type { LoopNode } from './iteration.js';
import type { ProductUnit } from './products.js';
import { type Share, sameShare, sharesOf } from './shares.js';
import type { Chain, Packing, Schedule, Stage } from './stages.js';
import { type LoopUnit, readsOf, writesOf } from './units.js';
import type { Buffer } from './views.js';

/** A sum over rows, of which every thread has a part. */
export interface Accumulator {
  readonly node: LoopNode;
  readonly unit: LoopUnit;
  /** Elements of one thread's part. */
  readonly size: number;
  /** Bytes from the start of a thread's accumulators. */
  readonly offset: number;
}

/** Something that all threads do, each its share. */
export type Step = (
  | { readonly kind: 'chain'; readonly chain: Chain }
  | { readonly kind: 'loop' | 'narrow' | 'batch' | 'call'; readonly stage: Stage }
  | { readonly kind: 'pack'; readonly packings: readonly Packing[] }
  | { readonly kind: 'packProducts' | 'multiply'; readonly products: readonly ProductUnit[] }
  /** The threads' parts of sums over rows are added. */
  | { readonly kind: 'finish'; readonly accumulators: readonly Accumulator[] }
) & {
  /** Steps with the same number have no barrier between them. */
  epoch: number;
};

type StepBody = Step extends infer S ? (S extends Step ? Omit<S, 'epoch'> : never) : never;

/** The steps of a program, and what threads add up. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly accumulators: readonly Accumulator[];
  /** Bytes of one thread's accumulators. */
  readonly accumulatorBytes: number;
  /** So many steps, the first, run only when what they read has changed. */
  readonly onceSteps: number;
}

/** Accumulators of different sums lie in different cache lines. */
const LINE = 64;

/** How a loop on its own is shared: whole rows where a row has to be seen whole, columns where there are few rows. */
export function partitionOf({ rows, columns, nodes }: LoopUnit): 'rows' | 'columns' {
  const needsRows = nodes.some(({ role }) => role === 'row');
  return needsRows || rows >= 32 || columns < 256 ? 'rows' : 'columns';
}

class Steps {
  readonly steps: Step[] = [];
  readonly accumulators: Accumulator[] = [];
  bytes = 0;
  private pending: Accumulator[] = [];
  private epoch = 0;
  /** Written since the last barrier: null, or by which shares. */
  private fresh = new Map<Buffer, Share | null>();

  add(stage: Stage): void {
    const reads = stage.units.flatMap(readsOf);
    if (stage.kind === 'pack') reads.push(...stage.packings.map(({ unit }) => unit.b.buffer));
    if (this.pending.some(({ node }) => reads.includes(node.write.buffer))) this.finish();
    const writes = stage.units.flatMap(writesOf);
    switch (stage.kind) {
      case 'chain':
        this.push({ kind: 'chain', chain: stage }, reads, writes);
        break;
      case 'pack':
        this.push({ kind: 'pack', packings: stage.packings }, reads, []);
        this.packed = true;
        break;
      case 'products':
        // The workspace is free once all have left the products before.
        if (this.usesWorkspace) this.barrier();
        this.push({ kind: 'packProducts', products: stage.units }, reads, []);
        this.barrier();
        this.push({ kind: 'multiply', products: stage.units }, [], writes);
        this.usesWorkspace = true;
        break;
      default:
        this.push({ kind: stage.kind, stage }, reads, writes);
    }
    this.collect(stage);
  }

  /** Adds up what is still in parts. */
  finish(): void {
    if (this.pending.length === 0) return;
    this.barrier();
    const writes = this.pending.map(({ node }) => node.write.buffer);
    this.push({ kind: 'finish', accumulators: this.pending }, [], writes);
    this.pending = [];
  }

  private packed = false;
  private usesWorkspace = false;

  /** Everything so far is done before anything else. */
  barrier(): void {
    this.epoch++;
    this.fresh = new Map();
    this.packed = false;
    this.usesWorkspace = false;
  }

  private push(step: StepBody, reads: readonly Buffer[], writes: readonly Buffer[]): void {
    const multiplies = step.kind === 'chain' || step.kind === 'narrow';
    const units = step.kind === 'call' ? step.stage.units : [];
    const read = units.flatMap((unit) => sharesOf(unit, 'read'));
    const written = units.flatMap((unit) => sharesOf(unit, 'written'));
    const isFresh = (buffer: Buffer): boolean => {
      const known = this.fresh.get(buffer);
      // A thread that reads no more than what it has written itself waits for nobody.
      return known !== undefined && !(known !== null && read.some((share) => sameShare(share, known)));
    };
    if (reads.some(isFresh) || writes.some(isFresh) || (multiplies && this.packed)) this.barrier();
    this.steps.push({ ...step, epoch: this.epoch } as Step);
    for (const buffer of writes)
      this.fresh.set(buffer, written.find((share) => share.buffer === buffer) ?? null);
  }

  private collect(stage: Stage): void {
    for (const unit of stage.units) {
      if (unit.kind !== 'loop') continue;
      const direct = stage.kind === 'loop' && partitionOf(unit) === 'columns';
      for (const node of unit.nodes) {
        if (node.role !== 'all' && (node.role !== 'column' || direct)) continue;
        const size = node.role === 'all' ? 1 : unit.columns;
        const accumulator = { node, unit, size, offset: this.bytes };
        this.bytes += Math.ceil((size * 4) / LINE) * LINE;
        this.accumulators.push(accumulator);
        this.pending.push(accumulator);
      }
    }
  }
}

/** The steps of a schedule: all is done before what is worked out once is read, and before what comes later. */
export function plan({ stages, onceStages, laterStages }: Omit<Schedule, 'packings'>): Plan {
  const steps = new Steps();
  const addAll = (some: readonly Stage[]): void => {
    if (steps.steps.length > 0) steps.barrier();
    for (const stage of some) steps.add(stage);
    steps.finish();
  };
  addAll(stages.slice(0, onceStages));
  const onceSteps = steps.steps.length;
  addAll(stages.slice(onceStages, laterStages));
  addAll(stages.slice(laterStages));
  return {
    steps: steps.steps,
    accumulators: steps.accumulators,
    accumulatorBytes: steps.bytes,
    onceSteps,
  };
}
