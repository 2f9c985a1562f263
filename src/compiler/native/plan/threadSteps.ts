/** @file Steps: the C functions of stages that all threads call, and the barriers between them. */
import { blocksOf, loopBlocksOf, partitionOf } from './blocks.js';
import type { LoopNode } from './iteration.js';
import type { ProductUnit } from './products.js';
import { type Share, sameShare, sharesOf } from './shares.js';
import type { Chain, Packing, Schedule, Stage } from './stages.js';
import { type CallUnit, type LoopUnit, readsOf, type Unit, writesOf } from './units.js';
import type { Buffer, Loop } from './views.js';

/** Sums over rows, accumulated as one partial sum per block. */
export interface Accumulator {
  readonly node: LoopNode;
  readonly unit: LoopUnit;
  /** Elements of a partial sum. */
  readonly size: number;
  /** Results that the rows are divided among. */
  readonly items: number;
  /** Blocks of an item; null where blocks have whole items, so that there is nothing to add up. */
  readonly blocks: number | null;
  /** The partial sums, in the order of the items and their blocks. */
  readonly buffer: Buffer;
}

/** A step: all threads run it, each its share. */
export type Step = (
  | { readonly kind: 'chain'; readonly chain: Chain }
  | { readonly kind: 'loop' | 'narrow' | 'batch' | 'call'; readonly stage: Stage }
  | { readonly kind: 'pack'; readonly packings: readonly Packing[] }
  | { readonly kind: 'products'; readonly products: readonly ProductUnit[] }
  /** Adds the blocks' partial sums, in order. */
  | { readonly kind: 'finish'; readonly accumulators: readonly Accumulator[] }
) & {
  /** Steps with the same epoch have no barrier between them. */
  epoch: number;
  /** The partial sums that a chain or a loop makes, or that are added up. */
  readonly accumulators?: readonly Accumulator[];
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
  if (step.kind === 'finish') return step.accumulators.map(({ buffer }) => buffer);
  return unitsOfStep(step).flatMap(readsOf);
}

/** The buffers that a step writes. */
export function writesOfStep(step: Step): Buffer[] {
  if (step.kind === 'finish') return step.accumulators.map(({ node }) => node.write.buffer);
  const sums = step.accumulators?.map(({ buffer }) => buffer) ?? [];
  return [...unitsOfStep(step).flatMap(writesOf), ...sums];
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
  /** Number of leading steps that run only when their inputs have changed. */
  readonly onceSteps: number;
}

/** Packed operands that persist between runs. */
export const keptPackings = ({ steps, onceSteps }: Plan): ReadonlySet<Packing> =>
  new Set(steps.slice(0, onceSteps).flatMap((step) => (step.kind === 'pack' ? step.packings : [])));

class Steps {
  readonly steps: Step[] = [];
  readonly loops: StepLoop[] = [];
  readonly accumulators: Accumulator[] = [];
  /** Those that no step has added up yet. */
  private pending: Accumulator[] = [];
  private epoch = 0;
  /** Buffers written since the last barrier, with the shares they were written by, or null. */
  private fresh = new Map<Buffer, Share | null>();

  /** @param nextId the number of the next buffer of partial sums. */
  constructor(private nextId: number) {}

  add(stage: Stage): void {
    const reads = stage.units.flatMap(readsOf);
    if (stage.kind === 'pack') reads.push(...stage.packings.map(({ unit }) => unit.b.buffer));
    if (this.pending.some(({ node }) => reads.includes(node.write.buffer))) this.finish();
    const writes = stage.units.flatMap(writesOf);
    switch (stage.kind) {
      case 'chain':
        this.addSums({ kind: 'chain', chain: stage }, stage, reads, writes);
        break;
      case 'loop':
        this.addSums({ kind: 'loop', stage }, stage, reads, writes);
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
  }

  /** Adds up the partial sums that are pending. */
  finish(): void {
    if (this.pending.length > 0) this.barrier();
  }

  private packed = false;
  private usesWorkspace = false;

  /**
   * Completes all earlier steps before any later one. What partial sums they made is added up at once, while it is in the
   * caches, and needs no barrier of its own.
   */
  barrier(): void {
    this.epoch++;
    this.fresh = new Map();
    this.packed = false;
    this.usesWorkspace = false;
    const accumulators = this.pending;
    if (accumulators.length === 0) return;
    this.pending = [];
    const [reads, writes] = [
      accumulators.map(({ buffer }) => buffer),
      accumulators.map(({ node }) => node.write.buffer),
    ];
    this.push({ kind: 'finish', accumulators }, reads, writes);
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
    while (reads.some(isFresh) || writes.some(isFresh) || (multiplies && this.packed)) this.barrier();
    this.steps.push({ ...step, epoch: this.epoch } as Step);
    for (const buffer of writes)
      this.fresh.set(buffer, written.find((share) => share.buffer === buffer) ?? null);
  }

  /** Adds a step with its partial sums. */
  private addSums(
    step: StepBody,
    stage: Stage & { readonly kind: 'chain' | 'loop' },
    reads: readonly Buffer[],
    writes: readonly Buffer[],
  ): void {
    const accumulators = this.accumulatorsOf(stage);
    this.push({ ...step, accumulators }, reads, [...writes, ...accumulators.map(({ buffer }) => buffer)]);
    this.accumulators.push(...accumulators);
    this.pending.push(...accumulators);
  }

  private accumulatorsOf(stage: Stage & { readonly kind: 'chain' | 'loop' }): Accumulator[] {
    return stage.units.flatMap((unit): Accumulator[] => {
      if (unit.kind !== 'loop') return [];
      const direct = stage.kind === 'loop' && partitionOf(unit) === 'columns';
      const { size: rows, count } = stage.kind === 'chain' ? blocksOf(stage) : loopBlocksOf(unit);
      const unitRows = stage.kind === 'chain' ? rows * (unit.rows / stage.rows) : rows;
      return unit.nodes.flatMap((node): Accumulator[] => {
        if (node.role !== 'all' && (node.role !== 'column' || direct)) return [];
        const size = node.role === 'all' ? 1 : unit.columns;
        const { period = unit.rows } = node;
        const items = unit.rows / period;
        const blocks = items > 1 && period <= unitRows ? null : count / items;
        const storage = node.result === 'float32' ? 'float32' : 'int32';
        const home = { kind: 'arena' as const, offset: -1 };
        return [
          {
            ...{ node, unit, size, items, blocks },
            buffer: { id: this.nextId++, size: items * (blocks ?? 1) * size, storage, home },
          },
        ];
      });
    });
  }
}

/**
 * The steps of a schedule, with barriers after the steps that run once and before those of the program that follows.
 */
export function plan({ stages, onceStages, laterStages }: Omit<Schedule, 'packings'>): Plan {
  const buffers = stages.flatMap((stage) =>
    stage.units.flatMap((unit) => [...readsOf(unit), ...writesOf(unit)]),
  );
  const steps = new Steps(1 + buffers.reduce((last, { id }) => Math.max(last, id), 0));
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
    onceSteps,
  };
}
