/** @file Which config of the old structure is which of the new one. */
import { isContainer, partsOf } from '../nodes/containers.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import { listed, walk } from '../walking/traverse.js';
import { Contents } from './contents.js';
import { alignLists } from './lists.js';
import { isTouched, shownEdges } from './shown.js';

/** Partners, one to one: configs, and the arrays and records that configs own. */
export class Alignment {
  private readonly newOf = new Map<object, object>();
  private readonly oldOf = new Map<object, object>();

  /** What an old config or container became, or undefined where it is gone. */
  partnerOfOld<T extends object>(old: T): T | undefined {
    return this.newOf.get(old) as T | undefined;
  }

  /** What a new config or container was, or undefined where it was added. */
  partnerOfNew<T extends object>(now: T): T | undefined {
    return this.oldOf.get(now) as T | undefined;
  }

  pair(old: object, now: object): void {
    this.newOf.set(old, now);
    this.oldOf.set(now, old);
  }
}

/**
 * Aligns in linear time (lists: n log n): the same objects first; then from the roots on what stands at the same place,
 * unless its like is found elsewhere; then what is alike; then what is left in one config by its class.
 */
export function alignStructures(old: unknown, now: unknown): Alignment {
  return new Aligner(old, now).run();
}

// Fewer explicit values than this say too little to call a config the same when it stands elsewhere.
const leastToDiffer = 3;
// In a gap of a list, more pairs than this are not compared one by one.
const mostPairs = 2500;

class Aligner {
  private readonly alignment = new Alignment();
  private readonly contents = new Contents();
  private readonly oldByContent = new Map<number, ConfigNode[]>();
  private readonly newByContent = new Map<number, ConfigNode[]>();
  private readonly newOrder: ConfigNode[] = [];
  private readonly pairs: [ConfigNode, ConfigNode][] = [];
  private descended = 0;
  private deferred: [ConfigNode, ConfigNode][] = [];
  private defers = true;

  constructor(
    private readonly old: unknown,
    private readonly now: unknown,
  ) {}

  run(): Alignment {
    this.collect();
    this.pairValues(this.old, this.now);
    this.descend();
    this.pairLikes();
    this.defers = false;
    for (const [a, b] of this.deferred) this.consider(a, b);
    this.descend();
    // Pairs that this makes are gone through as well.
    for (const [a, b] of this.pairs) {
      this.pairLeftovers(a, b);
      this.descend();
    }
    return this.alignment;
  }

  private collect(): void {
    const inOld = new Set<ConfigNode>();
    const index = (into: Map<number, ConfigNode[]>, node: ConfigNode): void => {
      const content = this.contents.ofConfig(node);
      const known = into.get(content);
      if (known === undefined) into.set(content, [node]);
      else known.push(node);
    };
    walk(this.old, {
      children: shownEdges,
      enter: (node) => {
        inOld.add(node);
        index(this.oldByContent, node);
      },
    });
    walk(this.now, {
      children: shownEdges,
      enter: (node) => {
        this.newOrder.push(node);
        index(this.newByContent, node);
        // Below the same object, everything is the same.
        if (inOld.has(node)) this.alignment.pair(node, node);
      },
    });
  }

  private isFree(old: object, now: object): boolean {
    return this.alignment.partnerOfOld(old) === undefined && this.alignment.partnerOfNew(now) === undefined;
  }

  private pairNodes(a: ConfigNode, b: ConfigNode): void {
    this.alignment.pair(a, b);
    this.pairs.push([a, b]);
  }

  /** Looks into the pairs made since the last time, and into those that this makes. */
  private descend(): void {
    for (; this.descended < this.pairs.length; this.descended += 1) {
      const [a, b] = this.pairs[this.descended]!;
      this.pairFields(a, b);
    }
  }

  /** Pairs what fields of the same name hold. A default that only one of the two looked at is made for both. */
  private pairFields(a: ConfigNode, b: ConfigNode): void {
    for (const field of b.info.allFields) {
      const old = a.info.fields.get(field.name);
      if (old === undefined) continue;
      const shown = Number(isTouched(a, field.name)) + Number(isTouched(b, field.name));
      if (shown === 2 || (shown === 1 && a.info === b.info))
        this.pairValues(rawValue(a, old), rawValue(b, field));
    }
  }

  private pairValues(va: unknown, vb: unknown): void {
    const a = nodeOf(va);
    const b = nodeOf(vb);
    if (a !== undefined && b !== undefined) this.consider(a, b);
    if (a !== undefined || b !== undefined || va === vb) return;
    if (isContainer(va) && isContainer(vb)) {
      if (Array.isArray(va) !== Array.isArray(vb)) return;
      this.alignment.pair(va, vb);
      if (Array.isArray(va)) this.pairItems(va, vb as unknown[]);
      else
        for (const key of Object.keys(va))
          if (Object.hasOwn(vb, key)) this.pairValues(va[key], (vb as typeof va)[key]);
      return;
    }
    const parts = partsOf(vb);
    if (parts === undefined) return;
    const named = new Map((partsOf(va) ?? []).map(([segment, part]) => [formatSegment(segment, true), part]));
    for (const [segment, part] of parts) this.pairValues(named.get(formatSegment(segment, true)), part);
  }

  /** Pairs two configs that stand at the same place, if they are the same kind of thing. */
  private consider(a: ConfigNode, b: ConfigNode): void {
    if (!this.isFree(a, b)) return;
    if (this.contents.ofConfig(a) !== this.contents.ofConfig(b)) {
      if (this.defers && (this.isElsewhere(a) || this.isElsewhere(b))) {
        this.deferred.push([a, b]);
        return;
      }
      if (!this.areRelated(a, b)) return;
    }
    this.pairNodes(a, b);
  }

  /** Whether just one free config of the other structure is like `node`, and it says enough to be taken for the same. */
  private isElsewhere(node: ConfigNode): boolean {
    const content = this.contents.ofConfig(node);
    if (this.contents.weightOf(content) < leastToDiffer) return false;
    const olds = this.oldByContent.get(content) ?? [];
    const nows = this.newByContent.get(content) ?? [];
    return olds.length === 1 && nows.length === 1 && this.isFree(olds[0]!, nows[0]!);
  }

  /** Classes may change where one extends the other, or where the configs have an explicit value in common. */
  private areRelated(a: ConfigNode, b: ConfigNode): boolean {
    if (a.info === b.info) return true;
    const [ca, cb] = [a.info.cls, b.info.cls];
    if (Object.prototype.isPrototypeOf.call(ca, cb) || Object.prototype.isPrototypeOf.call(cb, ca))
      return true;
    return this.likeness(a, b) > 0;
  }

  /** How many explicit values two configs have in common. */
  private likeness(a: ConfigNode, b: ConfigNode): number {
    let count = 0;
    for (const field of a.info.fields.values()) {
      const other = b.info.fields.get(field.name);
      if (other === undefined || !isExplicit(a, field.name) || !isExplicit(b, field.name)) continue;
      if (this.contents.of(rawValue(a, field)) === this.contents.of(rawValue(b, other))) count += 1;
    }
    return count;
  }

  /** Pairs the items of two arrays: alike ones in order or moved, then within each gap what is most alike. */
  private pairItems(before: unknown[], after: unknown[]): void {
    const olds = before.map((item) => this.keyOf(item, 'old'));
    const { oldOf, newOf, stayed } = alignLists(
      olds,
      after.map((item) => this.keyOf(item, 'new')),
    );
    let gapOld: unknown[] = [];
    let gapNew: unknown[] = [];
    let i = 0;
    for (let j = 0; j <= after.length; j += 1) {
      if (j < after.length && !stayed[j]) {
        if (oldOf[j] === -1) gapNew.push(after[j]);
        else this.pairValues(before[oldOf[j]!], after[j]);
        continue;
      }
      const end = j < after.length ? oldOf[j]! : before.length;
      for (; i < end; i += 1) if (newOf[i] === -1) gapOld.push(before[i]);
      this.pairGap(gapOld, gapNew);
      gapOld = [];
      gapNew = [];
      if (j < after.length) this.pairValues(before[i++], after[j]);
    }
  }

  private keyOf(item: unknown, side: 'old' | 'new'): unknown {
    const node = nodeOf(item);
    if (node !== undefined) {
      if (side === 'old' && this.alignment.partnerOfOld(node) !== undefined) return node;
      const old = side === 'new' ? this.alignment.partnerOfNew(node) : undefined;
      if (old !== undefined) return old;
    }
    return this.contents.of(item);
  }

  /** Pairs items in order so that as much as can be is alike. */
  private pairGap(olds: unknown[], nows: unknown[]): void {
    if (olds.length === 0 || nows.length === 0) return;
    if (olds.length * nows.length > mostPairs) {
      for (let i = 0; i < Math.min(olds.length, nows.length); i += 1) this.pairValues(olds[i], nows[i]);
      return;
    }
    const width = nows.length + 1;
    // best[i * width + j]: how alike the items from i and j on can be.
    const best = new Float64Array((olds.length + 1) * width);
    const scores = new Float64Array(best.length);
    for (let i = olds.length - 1; i >= 0; i -= 1) {
      for (let j = nows.length - 1; j >= 0; j -= 1) {
        const at = i * width + j;
        scores[at] = this.score(olds[i], nows[j]);
        best[at] = Math.max(best[at + width]!, best[at + 1]!, best[at + width + 1]! + scores[at]!);
      }
    }
    for (let i = 0, j = 0; i < olds.length && j < nows.length; ) {
      const at = i * width + j;
      if (scores[at]! > 0 && best[at] === best[at + width + 1]! + scores[at]!)
        this.pairValues(olds[i++], nows[j++]);
      else if (best[at] === best[at + width]) i += 1;
      else j += 1;
    }
  }

  private score(va: unknown, vb: unknown): number {
    const a = nodeOf(va);
    const b = nodeOf(vb);
    if (a !== undefined && b !== undefined) {
      if (!this.isFree(a, b) || !this.areRelated(a, b)) return 0;
      return Number(a.info === b.info) + this.likeness(a, b) + 0.5;
    }
    return Number(isContainer(va) && isContainer(vb) && Array.isArray(va) === Array.isArray(vb));
  }

  /** Pairs configs with the same content, wherever they stand, in the order in which they are met. */
  private pairLikes(): void {
    const next = new Map<number, number>();
    for (const now of this.newOrder) {
      const content = this.contents.ofConfig(now);
      if (this.alignment.partnerOfNew(now) !== undefined || this.contents.weightOf(content) === 0) continue;
      const olds = this.oldByContent.get(content) ?? [];
      let at = next.get(content) ?? 0;
      while (at < olds.length && this.alignment.partnerOfOld(olds[at]!) !== undefined) at += 1;
      next.set(content, at);
      if (at < olds.length) this.pairNodes(olds[at]!, now);
      this.descend();
    }
  }

  /** Pairs configs directly in `a` and `b` that nothing else was found for, by their classes. */
  private pairLeftovers(a: ConfigNode, b: ConfigNode): void {
    const byClass = new Map<object, ConfigNode[]>();
    for (const { node } of listed(shownEdges(b, undefined)).reverse()) {
      if (this.alignment.partnerOfNew(node) !== undefined) continue;
      const known = byClass.get(node.info);
      if (known === undefined) byClass.set(node.info, [node]);
      else known.push(node);
    }
    if (byClass.size === 0) return;
    for (const { node } of listed(shownEdges(a, undefined))) {
      if (this.alignment.partnerOfOld(node) !== undefined) continue;
      const now = byClass.get(node.info)?.pop();
      if (now !== undefined && this.isFree(node, now)) this.pairNodes(node, now);
    }
  }
}
