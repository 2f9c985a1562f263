/** @file One-to-one alignment of the configs, arrays and records of two structures. */
import { getOrMake, isContainer, partsOf } from '../nodes/containers.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { isTouched } from '../walking/equal.js';
import { formatSegment } from '../walking/paths.js';
import { alignLists } from './lists.js';
import { ByContent, Contents, type Member, Structure, shownEdges } from './structure.js';

/** Partners, one to one: configs, and the arrays and records that configs own. */
export class Alignment {
  readonly contents = new Contents();
  readonly old: Structure;
  readonly now: Structure;
  /** New partners of old arrays and records. */
  readonly containersAfter = new Map<object, object>();
  /** Old partners of new arrays and records. */
  readonly containersBefore = new Map<object, object>();

  constructor(old: unknown, now: unknown) {
    this.old = new Structure(old, this.contents);
    this.now = new Structure(now, this.contents);
  }
}

/**
 * Aligns in linear time (lists: n log n). Pairs identical objects first; then, from the roots, objects at the same
 * place, unless an equal one is elsewhere; then objects of equal content; then the rest of each config by class.
 */
export function alignStructures(old: unknown, now: unknown): Alignment {
  return new Aligner(old, now).run();
}

// Least number of explicit values for pairing equal configs at different places.
const leastToDiffer = 3;
// In a gap of a list, more pairs than this are not compared one by one.
const mostPairs = 2500;

class Aligner {
  private readonly alignment: Alignment;
  private readonly old: Structure;
  private readonly now: Structure;
  private readonly oldByContent: ByContent;
  private readonly newByContent: ByContent;
  /** The old configs that have partners, in the order in which these were found. */
  private readonly pairs: Member[] = [];
  private descended = 0;
  private readonly deferred: [Member, Member][] = [];
  private defers = true;

  constructor(
    private readonly oldRoot: unknown,
    private readonly newRoot: unknown,
  ) {
    this.alignment = new Alignment(oldRoot, newRoot);
    ({ old: this.old, now: this.now } = this.alignment);
    this.oldByContent = new ByContent(this.old.members);
    this.newByContent = new ByContent(this.now.members);
  }

  run(): Alignment {
    // Defaults that are made on the way are paired where they are.
    const added = [...this.now.members];
    // Below the same object, everything is the same.
    for (const now of added) {
      const same = this.old.find(now.node);
      if (same !== undefined) pair(same, now);
    }
    this.pairValues(this.oldRoot, this.newRoot);
    this.descend();
    this.pairLikes(added);
    this.defers = false;
    for (const [a, b] of this.deferred) this.consider(a, b);
    this.descend();
    // Also visits the pairs that this makes.
    for (const old of this.pairs) {
      if (old.isSettled) continue;
      this.pairLeftovers(old, old.partner!);
      this.descend();
    }
    return this.alignment;
  }

  private pairConfigs(old: Member, now: Member): void {
    pair(old, now);
    this.pairs.push(old);
  }

  /** Looks into the pairs made since the last time, and into those that this makes. */
  private descend(): void {
    for (; this.descended < this.pairs.length; this.descended += 1) {
      const old = this.pairs[this.descended]!;
      old.isSettled = this.pairFields(old.node, old.partner!.node);
    }
  }

  /**
   * Pairs the values of equally named fields. A default that was read in only one config is created in both.
   *
   * @returns whether the configs are equal apart from their partners.
   */
  private pairFields(a: ConfigNode, b: ConfigNode): boolean {
    let isSame = a.info === b.info && a.kind === b.kind && a.tags === undefined && b.tags === undefined;
    for (const field of b.info.allFields) {
      const old = a.info.fields.get(field.name);
      if (old === undefined) continue;
      const shown = Number(isTouched(a, field.name)) + Number(isTouched(b, field.name));
      if (shown === 2 || (shown === 1 && a.info === b.info))
        isSame = this.pairValues(rawValue(a, old), rawValue(b, field)) && isSame;
    }
    return isSame;
  }

  /** @returns whether the values are partners, or the same number or text. */
  private pairValues(va: unknown, vb: unknown): boolean {
    const a = nodeOf(va);
    const b = nodeOf(vb);
    if (a !== undefined && b !== undefined) return this.consider(this.old.of(a), this.now.of(b));
    if (a !== undefined || b !== undefined || va === vb) return va === vb;
    this.pairParts(va, vb);
    return false;
  }

  private pairParts(va: unknown, vb: unknown): void {
    if (isContainer(va) && isContainer(vb)) {
      if (Array.isArray(va) !== Array.isArray(vb)) return;
      this.alignment.containersAfter.set(va, vb);
      this.alignment.containersBefore.set(vb, va);
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

  /** Pairs two configs at the same place, if they are related. @returns whether they are partners. */
  private consider(old: Member, now: Member): boolean {
    if (!areFree(old, now)) return old.partner === now;
    if (old.content !== now.content) {
      if (this.defers && (this.isElsewhere(old.content) || this.isElsewhere(now.content))) {
        this.deferred.push([old, now]);
        return false;
      }
      if (!this.areRelated(old.node, now.node)) return false;
    }
    this.pairConfigs(old, now);
    return true;
  }

  /** Whether exactly one free config of each structure has the content, and it is distinctive enough to pair them. */
  private isElsewhere(content: number): boolean {
    if (this.alignment.contents.weightOf(content) < leastToDiffer) return false;
    const old = this.oldByContent.only(content);
    const now = this.newByContent.only(content);
    return old !== undefined && now !== undefined && areFree(old, now);
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
      const old = this.alignment.contents.of(rawValue(a, field), this.old);
      if (old === this.alignment.contents.of(rawValue(b, other), this.now)) count += 1;
    }
    return count;
  }

  /** Pairs the items of two arrays: equal ones in order or moved, then the most similar within each gap. */
  private pairItems(before: unknown[], after: unknown[]): void {
    const { oldOf, newOf, stayed } = alignLists(
      before.map((item) => this.keyOf(item, this.old)),
      after.map((item) => this.keyOf(item, this.now)),
    );
    let gapOld: unknown[] = [];
    let gapNew: unknown[] = [];
    let i = 0;
    for (let j = 0; j <= after.length; j += 1) {
      const isLast = j === after.length;
      if (!isLast && !stayed[j]) {
        const old = oldOf[j]!;
        if (old === -1) gapNew.push(after[j]);
        else this.pairValues(before[old], after[j]);
        continue;
      }
      const end = isLast ? before.length : oldOf[j]!;
      for (; i < end; i += 1) if (newOf[i] === -1) gapOld.push(before[i]);
      this.pairGap(gapOld, gapNew);
      gapOld = [];
      gapNew = [];
      if (!isLast) this.pairValues(before[i++], after[j]);
    }
  }

  /** Key that equal items share: the old config for partners, else the content. */
  private keyOf(item: unknown, side: Structure): unknown {
    const node = nodeOf(item);
    if (node === undefined) return this.alignment.contents.of(item, side);
    const member = side.of(node);
    if (member.partner === undefined) return member.content;
    return side === this.old ? member : member.partner;
  }

  /** Pairs items in order with the most similarity. */
  private pairGap(olds: unknown[], nows: unknown[]): void {
    if (olds.length === 0 || nows.length === 0) return;
    if (olds.length * nows.length > mostPairs) {
      for (let i = 0; i < Math.min(olds.length, nows.length); i += 1) this.pairValues(olds[i], nows[i]);
      return;
    }
    const width = nows.length + 1;
    // best[i * width + j]: greatest similarity of the items from i and j on.
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
      if (!areFree(this.old.of(a), this.now.of(b)) || !this.areRelated(a, b)) return 0;
      return Number(a.info === b.info) + this.likeness(a, b) + 0.5;
    }
    return Number(isContainer(va) && isContainer(vb) && Array.isArray(va) === Array.isArray(vb));
  }

  /** Pairs the first configs that have the same content, wherever they are, in the order in which they are met. */
  private pairLikes(added: readonly Member[]): void {
    for (const now of added) {
      if (now.partner !== undefined || this.alignment.contents.weightOf(now.content) === 0) continue;
      const old = this.oldByContent.nextFree(now.content);
      if (old !== undefined) this.pairConfigs(old, now);
      this.descend();
    }
  }

  /** Pairs configs directly in `a` and `b` that nothing else was found for, by their classes. */
  private pairLeftovers(a: Member, b: Member): void {
    const byClass = new Map<object, Member[]>();
    for (const { node } of shownEdges(b.node, undefined).reverse()) {
      const now = this.now.of(node);
      if (now.partner === undefined) getOrMake(byClass, node.info, () => []).push(now);
    }
    if (byClass.size === 0) return;
    for (const { node } of shownEdges(a.node, undefined)) {
      const old = this.old.of(node);
      if (old.partner !== undefined) continue;
      const now = byClass.get(node.info)?.pop();
      if (now !== undefined && areFree(old, now)) this.pairConfigs(old, now);
    }
  }
}

function pair(old: Member, now: Member): void {
  old.partner = now;
  now.partner = old;
}

function areFree(old: Member, now: Member): boolean {
  return old.partner === undefined && now.partner === undefined;
}
