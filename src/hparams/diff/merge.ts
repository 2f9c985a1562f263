/** @file Two diffs of one structure as one, and three configs merged. */

import { ConfigError } from '../errors.js';
import { getOrMake, partsOf } from '../nodes/containers.js';
import { origin, withOrigin } from '../nodes/record.js';
import { leavesMatch } from '../walking/equal.js';
import { formatLink, formatSegment } from '../walking/paths.js';
import { type ApplyOptions, applyDiff } from './apply.js';
import { buildDiff } from './build.js';
import { changesStructure, prune } from './filter.js';
import { formatChange } from './text.js';
import {
  AddedPart,
  type Change,
  type Diff,
  type DiffPlace,
  type DiffValue,
  mapChange,
  mapPart,
  OldPart,
  type PartConfig,
  type Path,
  PathTable,
  splitPath,
} from './types.js';

/** Two changes that cannot both be made. */
export interface MergeConflict {
  /** The path in the old structure, as text. */
  readonly path: string;
  readonly ours: Change;
  readonly theirs: Change;
}

export interface MergeOptions {
  /** Whose change is made where two are in conflict. The default is neither. */
  prefer?: 'ours' | 'theirs';
}

/**
 * The changes of two diffs of the same old structure. A change that both make is made once. Changes of the same place
 * to different values are in conflict; so are two lists of items put before the same one, and a change inside of
 * something that the other takes away. Of changes in conflict neither is made, unless `prefer` says which.
 */
export function mergeDiffs(
  ours: Diff,
  theirs: Diff,
  options: MergeOptions = {},
): { diff: Diff; conflicts: MergeConflict[] } {
  return new Merger(ours, theirs, options.prefer).run();
}

/**
 * `base` with what changed from it to `ours`, and what changed from it to `theirs`.
 *
 * @throws ConfigError that lists the conflicts, unless `prefer` settles them; see `mergeDiffs`.
 */
export function mergeConfigs<T>(
  base: T,
  ours: T,
  theirs: T,
  options: MergeOptions & Pick<ApplyOptions, 'origin'> = {},
): T {
  const writer = options.origin ?? origin();
  const [left, right] = [buildDiff(base, ours), buildDiff(base, theirs)];
  const { diff, conflicts } = mergeDiffs(left, right, options);
  if (conflicts.length > 0 && options.prefer === undefined) {
    const lines = conflicts.map(
      ({ ours: one, theirs: other }) =>
        `\n  ours: ${formatChange(left, one)}\n  theirs: ${formatChange(right, other)}`,
    );
    const count = conflicts.length === 1 ? 'a conflict' : `${conflicts.length} conflicts`;
    throw new ConfigError(`The configs cannot be merged: ${count}:${lines.join('')}`, {
      path: conflicts[0]!.path,
    });
  }
  return withOrigin(writer, () => applyDiff(diff, base));
}

type Side = 'ours' | 'theirs';

class Merger {
  private readonly table = new PathTable();
  private readonly diffs: Readonly<Record<Side, Diff>>;
  /** The changes of each side by path and by what of it they change. */
  private readonly slots: Readonly<Record<Side, Map<Path, Map<string, Change[]>>>>;
  private readonly removed: Readonly<Record<Side, ReadonlySet<Path>>>;
  /** The change of the diff that was given, for each with own paths. */
  private readonly given = new Map<Change, Change>();
  private readonly dropped = new Set<Change>();
  private readonly met = new Map<Change, Change>();
  private readonly conflicts: MergeConflict[] = [];
  /** Which of our added configs an equal one of theirs is. */
  private readonly equal = new Map<number, number>();

  constructor(
    ours: Diff,
    theirs: Diff,
    private readonly prefer: Side | undefined,
  ) {
    this.diffs = { ours: this.own(ours, 0), theirs: this.own(theirs, ours.added.length) };
    this.slots = { ours: this.slotsOf(this.diffs.ours), theirs: this.slotsOf(this.diffs.theirs) };
    const pathsOf = (diff: Diff): Set<Path> => new Set(diff.removed.map((part) => part.path));
    this.removed = { ours: pathsOf(this.diffs.ours), theirs: pathsOf(this.diffs.theirs) };
  }

  run(): { diff: Diff; conflicts: MergeConflict[] } {
    const { ours, theirs } = this.diffs;
    for (const [path, slots] of this.slots.theirs) {
      for (const [slot, changes] of slots) this.meet(this.slots.ours.get(path), slot, changes);
    }
    for (const change of theirs.changes) this.meetAround('ours', change, 'theirs');
    for (const change of ours.changes) this.meetAround('theirs', change, 'ours');
    const swap = (part: OldPart | AddedPart): OldPart | AddedPart => {
      const same = part instanceof AddedPart ? this.equal.get(part.index) : undefined;
      return same === undefined ? part : new AddedPart(same);
    };
    const changes = [...ours.changes, ...theirs.changes].filter((change) => !this.dropped.has(change));
    const added = [...ours.added, ...theirs.added].map((part) => mapPart(part, swap));
    const removed = new Map([...ours.removed, ...theirs.removed].map((part) => [part.path, part]));
    const diff = {
      changes: changes.map((change) => mapChange(change, swap)),
      added,
      removed: [...removed.values()],
      places: this.places(),
    };
    return { diff: prune(diff), conflicts: this.conflicts };
  }

  /** A diff whose paths are those of the table, and whose added configs count from `first`. */
  private own(diff: Diff, first: number): Diff {
    const swap = (part: OldPart | AddedPart): OldPart | AddedPart =>
      part instanceof AddedPart
        ? new AddedPart(part.index + first)
        : new OldPart(this.table.intern(part.path));
    const part = (each: PartConfig): PartConfig => ({
      ...mapPart(each, swap),
      path: this.table.intern(each.path),
    });
    return {
      changes: diff.changes.map((change) => {
        const own = mapChange({ ...change, path: this.table.intern(change.path) } as Change, swap);
        this.given.set(own, change);
        return own;
      }),
      added: diff.added.map(part),
      removed: diff.removed.map(part),
      places: diff.places.map((place) => ({ ...place, path: this.table.intern(place.path) })),
    };
  }

  private slotsOf(diff: Diff): Map<Path, Map<string, Change[]>> {
    const slots = new Map<Path, Map<string, Change[]>>();
    for (const change of diff.changes) {
      const at = getOrMake(slots, change.path, () => new Map());
      const slot = slotOf(change);
      getOrMake(at, slot, () => []).push(change);
    }
    return slots;
  }

  /** What ours does where theirs makes `changes`. */
  private meet(
    ours: ReadonlyMap<string, Change[]> | undefined,
    slot: string,
    changes: readonly Change[],
  ): void {
    const same = ours?.get(slot);
    if (same !== undefined) {
      const pairs = new Map<number, number>();
      const alike =
        same.length === changes.length && same.every((change, i) => this.isSame(change, changes[i]!, pairs));
      if (!alike) this.conflict(same, changes);
      else {
        for (const change of changes) this.dropped.add(change);
        for (const [one, other] of pairs) this.equal.set(other, one);
      }
    }
    // What one moves, the other must not take away.
    const other = slot === 'move' ? ours?.get('value') : slot === 'value' ? ours?.get('move') : undefined;
    if (other !== undefined && [...other, ...changes].some((change) => change.kind === 'remove'))
      this.conflict(other, changes);
  }

  /** Where one side changes something inside of what the other takes away. */
  private meetAround(around: Side, change: Change, inside: Side): void {
    const isOwn = change.kind === 'class' || change.kind === 'kind';
    const { config, field } = isOwn ? { config: change.path, field: undefined } : splitPath(change.path);
    const slots = this.slots[around];
    const found: Change[] = [];
    const start = change.kind === 'insert' ? change.path : change.path?.parent;
    for (let at = start; !isOwn && at !== config && at !== undefined; at = at.parent)
      found.push(...(slots.get(at)?.get('value') ?? []));
    const made = slots.get(config)?.get('class')?.[0];
    if (
      made?.kind === 'class' &&
      field !== undefined &&
      change.kind === 'set' &&
      !made.value.fields.has(field)
    )
      found.push(made);
    if (this.removed[around].has(config)) {
      for (let at = config; at !== undefined && found.length === 0; at = at.parent)
        found.push(...(slots.get(at)?.get('value') ?? []));
    }
    if (found.length === 0) return;
    if (inside === 'theirs') this.conflict(found, [change]);
    else this.conflict([change], found);
  }

  private conflict(ours: readonly Change[], theirs: readonly Change[]): void {
    const [one, other] = [ours[0]!, theirs[0]!];
    if (this.met.get(one) !== other) {
      this.met.set(one, other);
      const [given, against] = [this.given.get(one)!, this.given.get(other)!];
      this.conflicts.push({ path: formatLink(one.path), ours: given, theirs: against });
    }
    if (this.prefer !== 'ours') for (const change of ours) this.dropped.add(change);
    if (this.prefer !== 'theirs') for (const change of theirs) this.dropped.add(change);
  }

  /** Whether both do the same; `pairs` says which added configs are then one. */
  private isSame(ours: Change, theirs: Change, pairs: Map<number, number>): boolean {
    if (ours.kind !== theirs.kind) return false;
    if (ours.kind === 'move') return ours.before === (theirs as typeof ours).before;
    if (ours.kind === 'class' || ours.kind === 'kind') return ours.value === (theirs as typeof ours).value;
    if (!('value' in ours)) return true;
    return this.isSameValue(ours.value, (theirs as typeof ours).value, pairs);
  }

  private isSameValue(ours: DiffValue, theirs: DiffValue, pairs: Map<number, number>): boolean {
    const open: [DiffValue, DiffValue][] = [[ours, theirs]];
    for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
      const [a, b] = pair;
      if (a instanceof AddedPart && b instanceof AddedPart) {
        const known = pairs.get(a.index);
        const back = this.equal.get(b.index);
        if (known === b.index || back === a.index) continue;
        if (known !== undefined || back !== undefined) return false;
        pairs.set(a.index, b.index);
        const [one, other] = [
          this.diffs.ours.added[a.index]!,
          this.diffs.theirs.added[b.index - this.diffs.ours.added.length]!,
        ];
        if (one.info !== other.info || one.kind !== other.kind || tagText(one) !== tagText(other))
          return false;
        open.push([one.values, other.values]);
        continue;
      }
      if (a instanceof OldPart || b instanceof OldPart) {
        if (!(a instanceof OldPart && b instanceof OldPart && a.path === b.path)) return false;
        continue;
      }
      const [ones, others] = [partsOf(a), partsOf(b)];
      if (ones === undefined || others === undefined) {
        if (ones !== others || !leavesMatch(a, b)) return false;
        continue;
      }
      if (ones.length !== others.length || Array.isArray(a) !== Array.isArray(b)) return false;
      const named = new Map(others.map(([segment, part]) => [formatSegment(segment, true), part]));
      for (const [segment, part] of ones) {
        const name = formatSegment(segment, true);
        if (!named.has(name)) return false;
        open.push([part, named.get(name)]);
      }
    }
    return true;
  }

  private places(): DiffPlace[] {
    const { ours, theirs } = this.diffs;
    // Of two diffs that both move things, none says where things stand after both.
    const isPlain = ![...ours.changes, ...theirs.changes].some(changesStructure);
    const places = new Map([...ours.places, ...theirs.places].map((place) => [place.path, place]));
    return [...places.values()].map((place) =>
      isPlain ? place : { path: place.path, info: place.info, kind: place.kind },
    );
  }
}

function slotOf(change: Change): string {
  if (change.kind === 'insert') return `insert ${change.before}`;
  if (change.kind === 'addTag' || change.kind === 'removeTag') return `tag ${change.tag.name}`;
  return change.kind === 'class' || change.kind === 'kind' || change.kind === 'move' ? change.kind : 'value';
}

function tagText(part: PartConfig): string {
  return part.tags.map(({ field, tag, present }) => `${field} ${present ? '+' : '-'}${tag.name}`).join(' ');
}
