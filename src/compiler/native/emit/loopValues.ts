/** @file Values of a loop: in which pass over a row each is computed, and which are kept for a later pass. */
import { CHEAP } from '../expressions.js';
import { type Access, type LoopNode, sameAccess } from '../iteration.js';
import type { LoopUnit } from '../units.js';

/** The result of a node while the loop's function is written. */
export interface LoopValue {
  readonly node: LoopNode;
  readonly id: number;
  /** The pass over the row in which it is computed. */
  readonly phase: number;
  /** The first pass in which it can be read. */
  readonly ready: number;
  /** Whether a later pass reads it from a buffer of the row. */
  buffered: boolean;
}

/** Whether a later pass computes a value again rather than to keep it. */
export const isRecomputed = ({ node }: LoopValue): boolean => CHEAP.has(node.op) && node.role === 'map';

/** The values of a loop's nodes. */
export class LoopValues {
  readonly all: LoopValue[] = [];
  private readonly byNode = new Map<LoopNode, LoopValue>();

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

  /** The value that `read` reads, where this loop computes it. */
  source(read: Access | number): LoopValue | undefined {
    if (typeof read === 'number') return undefined;
    return this.all.find(({ node }) => sameAccess(node.write, read));
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
