/** @file Alignment of two structures: partners, one to one. */
import { getOrMake, isContainer, partsOf } from '../nodes/containers.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import { Contents } from './contents.js';
import { alignLists } from './lists.js';
import { isTouched, Structure, shownEdges } from './structure.js';

/** Partners, one to one: configs, and the arrays and records that configs own. */
export class Alignment {
  readonly contents = new Contents();
  readonly old: Structure;
  readonly now: Structure;
  private readonly newContainers = new Map<object, object>();
  private readonly oldContainers = new Map<object, object>();

  constructor(old: unknown, now: unknown) {
    this.old = new Structure(old, this.contents);
    this.now = new Structure(now, this.contents);
  }

  /** What an old config became, or undefined where it is gone. */
  partnerOfOld(old: ConfigNode): ConfigNode | undefined {
    return partner(old, this.old, this.now);
  }

  /** What a new config was, or undefined where it was added. */
  partnerOfNew(now: ConfigNode): ConfigNode | undefined {
    return partner(now, this.now, this.old);
  }

  /** What an old array or record became. */
  containerAfter(old: object): object | undefined {
    return this.newContainers.get(old);
  }

  /** What a new array or record was. */
  containerBefore(now: object): object | undefined {
    return this.oldContainers.get(now);
  }

  pair(old: number, now: number): void {
    this.old.partners[old] = now;
    this.now.partners[now] = old;
  }

  pairContainers(old: object, now: object): void {
    this.newContainers.set(old, now);
    this.oldContainers.set(now, old);
  }
}

function partner(node: ConfigNode, own: Structure, other: Structure): ConfigNode | undefined {
  const number = own.find(node);
  return number === undefined ? undefined : other.nodes[own.partners[number]!];
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
  private readonly alignment: Alignment;
  private readonly contents: Contents;
  private readonly old: Structure;
  private readonly now: Structure;
  private readonly oldByContent: ByContent;
  private readonly newByContent: ByContent;
  /** The old configs that have partners, in the order in which these were found. */
  private readonly pairs: number[] = [];
  private descended = 0;
  private deferred: [number, number][] = [];
  private defers = true;

  constructor(
    private readonly oldRoot: unknown,
    private readonly newRoot: unknown,
  ) {
    this.alignment = new Alignment(oldRoot, newRoot);
    ({ contents: this.contents, old: this.old, now: this.now } = this.alignment);
    this.oldByContent = new ByContent(this.old.contents);
    this.newByContent = new ByContent(this.now.contents);
  }

  run(): Alignment {
    const { length } = this.now.nodes;
    // Below the same object, everything is the same.
    for (let now = 0; now < length; now++) {
      const same = this.old.find(this.now.nodes[now]!);
      if (same !== undefined) this.alignment.pair(same, now);
    }
    this.pairValues(this.oldRoot, this.newRoot);
    this.descend();
    this.pairLikes(length);
    this.defers = false;
    for (const [a, b] of this.deferred) this.consider(a, b);
    this.descend();
    // Pairs that this makes are gone through as well.
    for (const old of this.pairs) {
      this.pairLeftovers(this.old.nodes[old]!, this.now.nodes[this.old.partners[old]!]!);
      this.descend();
    }
    return this.alignment;
  }

  private isFree(old: number, now: number): boolean {
    return this.old.partners[old] === -1 && this.now.partners[now] === -1;
  }

  private pairConfigs(old: number, now: number): void {
    this.alignment.pair(old, now);
    this.pairs.push(old);
  }

  /** Looks into the pairs made since the last time, and into those that this makes. */
  private descend(): void {
    for (; this.descended < this.pairs.length; this.descended += 1) {
      const old = this.pairs[this.descended]!;
      const now = this.old.partners[old]!;
      this.pairFields(this.old.nodes[old]!, this.now.nodes[now]!);
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
    if (a !== undefined && b !== undefined) this.consider(this.old.numberOf(a), this.now.numberOf(b));
    if (a !== undefined || b !== undefined || va === vb) return;
    if (isContainer(va) && isContainer(vb)) {
      if (Array.isArray(va) !== Array.isArray(vb)) return;
      this.alignment.pairContainers(va, vb);
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
  private consider(a: number, b: number): void {
    if (!this.isFree(a, b)) return;
    const [old, now] = [this.old.contents[a]!, this.now.contents[b]!];
    if (old !== now) {
      if (this.defers && (this.isElsewhere(old) || this.isElsewhere(now))) {
        this.deferred.push([a, b]);
        return;
      }
      if (!this.areRelated(this.old.nodes[a]!, this.now.nodes[b]!)) return;
    }
    this.pairConfigs(a, b);
  }

  /** Whether just one config of each structure has the content, both are free, and it says enough to call them the same. */
  private isElsewhere(content: number): boolean {
    if (this.contents.weightOf(content) < leastToDiffer) return false;
    const old = this.oldByContent.only(content);
    const now = this.newByContent.only(content);
    return old !== undefined && now !== undefined && this.isFree(old, now);
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
      const old = this.contents.of(rawValue(a, field), this.old);
      if (old === this.contents.of(rawValue(b, other), this.now)) count += 1;
    }
    return count;
  }

  /** Pairs the items of two arrays: alike ones in order or moved, then within each gap what is most alike. */
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

  /** What is the same for items that are alike: the old config where they are partners already, or else the content. */
  private keyOf(item: unknown, side: Structure): unknown {
    const node = nodeOf(item);
    if (node === undefined) return this.contents.of(item, side);
    const number = side.numberOf(node);
    const found = side.partners[number]!;
    if (found === -1) return side.contents[number];
    return side === this.old ? node : this.old.nodes[found];
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
      if (!this.isFree(this.old.numberOf(a), this.now.numberOf(b)) || !this.areRelated(a, b)) return 0;
      return Number(a.info === b.info) + this.likeness(a, b) + 0.5;
    }
    return Number(isContainer(va) && isContainer(vb) && Array.isArray(va) === Array.isArray(vb));
  }

  /** Pairs the first configs that have the same content, wherever they stand, in the order in which they are met. */
  private pairLikes(count: number): void {
    for (let now = 0; now < count; now++) {
      const content = this.now.contents[now]!;
      if (this.now.partners[now] !== -1 || this.contents.weightOf(content) === 0) continue;
      const old = this.oldByContent.next(content, (each) => this.old.partners[each] === -1);
      if (old !== undefined) this.pairConfigs(old, now);
      this.descend();
    }
  }

  /** Pairs configs directly in `a` and `b` that nothing else was found for, by their classes. */
  private pairLeftovers(a: ConfigNode, b: ConfigNode): void {
    const byClass = new Map<object, number[]>();
    for (const { node } of shownEdges(b, undefined).reverse()) {
      const now = this.now.numberOf(node);
      if (this.now.partners[now] !== -1) continue;
      getOrMake(byClass, node.info, () => []).push(now);
    }
    if (byClass.size === 0) return;
    for (const { node } of shownEdges(a, undefined)) {
      const old = this.old.numberOf(node);
      if (this.old.partners[old] !== -1) continue;
      const now = byClass.get(node.info)?.pop();
      if (now !== undefined && this.isFree(old, now)) this.pairConfigs(old, now);
    }
  }
}

/** The configs of a structure by their contents. */
class ByContent {
  private readonly known = new Map<number, { configs: number[]; next: number }>();

  constructor(contents: readonly number[]) {
    for (const [config, content] of contents.entries()) {
      getOrMake(this.known, content, () => ({ configs: [], next: 0 })).configs.push(config);
    }
  }

  /** The config with this content, if there is just one. */
  only(content: number): number | undefined {
    const { configs, next } = this.known.get(content) ?? none;
    return configs.length === 1 && next === 0 ? configs[0] : undefined;
  }

  /** The next config with this content that `fits`; those before it are not found again. */
  next(content: number, fits: (config: number) => boolean): number | undefined {
    const known = this.known.get(content) ?? none;
    while (known.next < known.configs.length && !fits(known.configs[known.next]!)) known.next += 1;
    return known.configs[known.next];
  }
}

const none = { configs: [], next: 0 };
