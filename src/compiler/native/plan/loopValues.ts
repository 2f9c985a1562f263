/** @file Values of a loop: the pass over a row that computes each, and those kept for a later pass. */
import { formOf } from './forms.js';
import { type Access, type LoopNode, sameAccess } from './iteration.js';
import type { LoopUnit } from './units.js';

/** Result of a node while its loop is written. */
export interface LoopValue {
  readonly node: LoopNode;
  readonly id: number;
  /** The pass over the row that computes it. */
  readonly phase: number;
  /** The first pass that can read it. */
  readonly ready: number;
  /** Whether a later pass reads it from a row buffer. */
  buffered: boolean;
}

/** Whether later passes recompute a value instead of storing it. */
export function isRecomputed({ node }: LoopValue): boolean {
  const form = formOf(node.op);
  return form?.kind === 'map' && form.isCheap === true && node.role === 'map';
}

/** The values of a loop's nodes. */
export class LoopValues {
  readonly all: LoopValue[] = [];
  private readonly byNode = new Map<LoopNode, LoopValue>();
  private lastPasses: Map<LoopValue, number> | undefined;

  constructor({ nodes }: LoopUnit) {
    for (const node of nodes) {
      const phase = Math.max(0, ...this.sources(node).map(({ ready }) => ready));
      const ready = node.role === 'row' ? phase + 1 : phase;
      const value = { node, id: this.all.length, phase, ready, buffered: false };
      this.all.push(value);
      this.byNode.set(node, value);
    }
    for (const { node, phase } of this.all)
      for (const source of this.sources(node)) this.markBuffered(source, phase);
  }

  /** The values of each pass. */
  get phases(): LoopValue[][] {
    const last = Math.max(...this.all.map(({ phase }) => phase));
    return Array.from({ length: last + 1 }, (_, phase) => this.all.filter((value) => value.phase === phase));
  }

  of(node: LoopNode): LoopValue {
    return this.byNode.get(node)!;
  }

  /** The value behind `read`, if this loop computes it. */
  source(read: Access | number): LoopValue | undefined {
    if (typeof read === 'number') return undefined;
    return this.all.find(({ node }) => sameAccess(node.write, read));
  }

  /** The last pass that reads the operands of a value: that which computes it, or one that recomputes it. */
  lastPassOf(value: LoopValue): number {
    this.lastPasses ??= this.findLastPasses();
    return this.lastPasses.get(value)!;
  }

  private findLastPasses(): Map<LoopValue, number> {
    const last = new Map(this.all.map((value) => [value, value.phase]));
    for (const value of this.all.toReversed())
      for (const source of this.sources(value.node))
        if (isRecomputed(source)) last.set(source, Math.max(last.get(source)!, last.get(value)!));
    return last;
  }

  private sources(node: LoopNode): LoopValue[] {
    return node.reads.flatMap((read) => this.source(read) ?? []);
  }

  private markBuffered(value: LoopValue, phase: number): void {
    if (!value.node.wide || value.node.role !== 'map' || value.phase === phase) return;
    if (!isRecomputed(value)) value.buffered = true;
    else for (const source of this.sources(value.node)) this.markBuffered(source, phase);
  }
}
