/** @file Steps: the C functions of stages that all threads call, and the barriers between them. */
import type { LoopNode } from './iteration.js';
import type { ProductUnit } from './products.js';
import { type Share, sameShare, sharesOf } from './shares.js';
import type { Chain, Packing, Schedule, Stage } from './stages.js';
import { type CallUnit, type LoopUnit, readsOf, type Unit, writesOf } from './units.js';
import type { Buffer, Loop } from './views.js';

/** A sum over rows, accumulated as one partial sum per thread. */
export interface Accumulator {
  readonly node: LoopNode;
  readonly unit: LoopUnit;
  /** Elements of a partial sum. */
  readonly size: number;
  /** Byte offset among a thread's accumulators. */
  readonly offset: number;
}

/** A step: all threads run it, each its share. */
export type Step = (
  | { readonly kind: 'chain'; readonly chain: Chain }
  | { readonly kind: 'loop' | 'narrow' | 'batch' | 'call'; readonly stage: Stage }
  | { readonly kind: 'pack'; readonly packings: readonly Packing[] }
  | { readonly kind: 'products'; readonly products: readonly ProductUnit[] }
  /** Adds the threads' partial sums. */
  | { readonly kind: 'finish'; readonly accumulators: readonly Accumulator[] }
) & {
  /** Steps with the same epoch have no barrier between them. */
  epoch: number;
};

/** The units whose results a step makes. */
export function unitsOfStep(step: Step): readonly Unit[] {
  if (step.kind === 'chain') return step.chain.units;
  if (step.kind === 'products') return step.products;
  return 'stage' in step ? step.stage.units : [];
}

/** The buffers that a step reads. */
export function readsOfStep(step: Step): Buffer[] {
  if (step.kind === 'pack') return step.packings.map(({ unit }) => unit.b.buffer);
  return unitsOfStep(step).flatMap(readsOf);
}

/** The buffers that a step writes. */
export function writesOfStep(step: Step): Buffer[] {
  if (step.kind === 'finish') return step.accumulators.map(({ node }) => node.write.buffer);
  return unitsOfStep(step).flatMap(writesOf);
}

/** Whether a step keeps packed operands in the workspace that all threads share. */
export const sharesWorkspace = (step: Step): boolean =>
  step.kind === 'products' ||
  (step.kind === 'call' && (step.stage.units[0] as CallUnit).form.usesWorkspace === true);

type StepBody = Step extends infer S ? (S extends Step ? Omit<S, 'epoch'> : never) : never;

/** A loop over the steps from `first` to before `end`. */
export interface StepLoop {
  readonly loop: Loop;
  readonly first: number;
  end: number;
}

/** The steps of a program, and its accumulators. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Outer loops come before those within them. */
  readonly loops: readonly StepLoop[];
  readonly accumulators: readonly Accumulator[];
  /** Bytes of accumulators per thread. */
  readonly accumulatorBytes: number;
  /** Number of leading steps that run only when their inputs have changed. */
  readonly onceSteps: number;
}

/** Accumulators of different sums are in different cache lines. */
const LINE = 64;

/** How threads divide a single loop: by rows if a row must be complete first, by columns if there are few rows. */
export function partitionOf({ rows, columns, nodes }: LoopUnit): 'rows' | 'columns' {
  const needsRows = nodes.some(({ role }) => role === 'row');
  return needsRows || rows >= 32 || columns < 256 ? 'rows' : 'columns';
}

class Steps {
  readonly steps: Step[] = [];
  readonly loops: StepLoop[] = [];
  readonly accumulators: Accumulator[] = [];
  bytes = 0;
  private pending: Accumulator[] = [];
  private epoch = 0;
  /** Buffers written since the last barrier, with the shares they were written by, or null. */
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
        // The workspace is free once all threads have finished the previous products.
        if (this.usesWorkspace) this.barrier();
        this.push({ kind: 'products', products: stage.units }, reads, writes);
        this.usesWorkspace = true;
        break;
      case 'call': {
        const usesWorkspace = stage.units[0].form.usesWorkspace === true;
        if (usesWorkspace && this.usesWorkspace) this.barrier();
        this.push({ kind: 'call', stage }, reads, writes);
        this.usesWorkspace ||= usesWorkspace;
        break;
      }
      case 'begin':
      case 'end':
        this.finish();
        this.barrier();
        if (stage.kind === 'begin') this.loops.push({ loop: stage.loop, first: this.steps.length, end: -1 });
        else this.loops.find(({ loop }) => loop === stage.loop)!.end = this.steps.length;
        break;
      default:
        this.push({ kind: stage.kind, stage }, reads, writes);
    }
    this.collect(stage);
  }

  /** Adds the partial sums that are pending. */
  finish(): void {
    if (this.pending.length === 0) return;
    this.barrier();
    const writes = this.pending.map(({ node }) => node.write.buffer);
    this.push({ kind: 'finish', accumulators: this.pending }, [], writes);
    this.pending = [];
  }

  private packed = false;
  private usesWorkspace = false;

  /** Completes all earlier steps before any later one. */
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
      // A thread that reads only what it has written itself need not wait.
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

/**
 * The steps of a schedule, with barriers after the steps that run once and before those of the program that follows.
 */
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
    loops: steps.loops.filter(({ first, end }) => first < end),
    accumulators: steps.accumulators,
    accumulatorBytes: steps.bytes,
    onceSteps,
  };
}
