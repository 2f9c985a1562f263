/** @file Field changes between two rebuilt configs, with the places that set them. */
import {
  AddedPart,
  buildDiff,
  type Change,
  type Diff,
  type DiffValue,
  formatPath,
  iterate,
  OldPart,
  type PartConfig,
  type Segment,
} from '../../hparams/index.js';
import { collapse } from '../reports/collapse.js';
import type { FieldChange, Side } from '../reports/diffReport.js';
import type { ConfigEntry } from '../versions/protocol.js';
import { type Displayed, showJson, showParts } from './display.js';

type Path = Change['path'];

/** Changes of the fields, in the order of the old configs; items of lists with the same change are one line. */
export function fieldChanges(old: Displayed, now: Displayed): FieldChange[] {
  const diff = buildDiff(old.root, now.root);
  if (diff.changes.length === 0) return [];
  return collapse(new Lines(diff, old, now).make());
}

class Lines {
  private readonly oldEntries: ReadonlyMap<string, ConfigEntry>;
  private readonly newEntries: ReadonlyMap<string, ConfigEntry>;
  private readonly newPaths = new Map<string, string>();
  private readonly classes = new Map<string, string>();
  private readonly lines: FieldChange[] = [];
  private readonly reported = new Set<number>();

  constructor(
    private readonly diff: Diff,
    old: Displayed,
    now: Displayed,
  ) {
    this.oldEntries = entriesByPath(old);
    this.newEntries = entriesByPath(now);
    for (const { path, newPath, info } of diff.places) {
      const text = textOf(path);
      this.classes.set(text, info.name);
      if (newPath !== undefined) this.newPaths.set(text, textOf(newPath.path));
    }
  }

  make(): FieldChange[] {
    for (const change of this.diff.changes) this.add(change);
    return this.lines;
  }

  private add(change: Change): void {
    const { owner, field, inner } = split(change.path);
    const path = textOf(change.path);
    const newOwner = this.newPaths.get(owner);
    const newPath = newOwner === undefined ? undefined : join(newOwner, field, inner);
    const line = {
      path: path || '<root>',
      ...(newPath === undefined || newPath === path ? {} : { newPath }),
    };
    const at = newPath ?? path;
    switch (change.kind) {
      case 'class':
        this.lines.push({
          ...line,
          what: 'class',
          old: { text: change.old.name },
          new: { text: change.value.name },
        });
        return;
      case 'kind':
        this.lines.push({ ...line, what: 'kind', old: { text: change.old }, new: { text: change.value } });
        return;
      case 'set':
      case 'modify':
      case 'delete':
        this.addValue(change, line, at);
        return;
      case 'insert': {
        const text = `${this.show(change.value, at)} ${position(change.before)}`;
        this.lines.push({
          ...line,
          what: 'added',
          new: this.side(text, newOwner ?? owner, field, this.newEntries),
        });
        this.addParts(change.value);
        return;
      }
      case 'remove':
        this.lines.push({
          ...line,
          what: 'removed',
          old: this.side(this.showOld(change.old), owner, field, this.oldEntries),
        });
        return;
      case 'move':
        this.lines.push({
          ...line,
          what: 'moved',
          old: this.side(this.showOld(change.old), owner, field, this.oldEntries),
          new: this.side(`moved ${position(change.before)}`, newOwner ?? owner, field, this.newEntries),
        });
        return;
      default:
        // Tags describe fields; a change of tags alone changes nothing in the built objects.
        return;
    }
  }

  private addValue(
    change: Extract<Change, { kind: 'set' | 'modify' | 'delete' }>,
    line: { path: string; newPath?: string },
    at: string,
  ): void {
    const { owner, field, inner } = split(change.path);
    const newOwner = this.newPaths.get(owner) ?? owner;
    const sides: { old?: Side; new?: Side } = {};
    const before =
      change.kind === 'set' ? this.unset(this.oldEntries.get(owner), field, inner) : this.showOld(change.old);
    if (before !== undefined) sides.old = this.side(before, owner, field, this.oldEntries);
    const after =
      change.kind === 'delete'
        ? this.unset(this.newEntries.get(newOwner), field, inner)
        : this.show(change.value, at);
    if (after !== undefined) sides.new = this.side(after, newOwner, field, this.newEntries);
    const what = sides.old === undefined ? 'added' : sides.new === undefined ? 'removed' : 'changed';
    this.lines.push({ ...line, what, ...sides });
    if (change.kind !== 'delete') this.addParts(change.value);
  }

  /** Text of an unset field, or undefined if the class has no such field. */
  private unset(
    entry: ConfigEntry | undefined,
    field: string | undefined,
    inner: readonly Segment[],
  ): string | undefined {
    if (entry === undefined || field === undefined || inner.length > 0) return undefined;
    const value = entry.values[field];
    return value === undefined ? undefined : showJson(value);
  }

  private side(
    text: string,
    owner: string,
    field: string | undefined,
    entries: ReadonlyMap<string, ConfigEntry>,
  ): Side {
    const entry = entries.get(owner);
    if (entry === undefined || field === undefined) return { text };
    if (entry.defaults.includes(field)) return { text, isDefault: true, declaredBy: entry.class };
    const place = entry.places[field];
    return place === undefined ? { text } : { text, place };
  }

  private show(value: DiffValue, here: string): string {
    return showParts(value, (part) => {
      if (part instanceof OldPart) {
        const path = textOf(part.path);
        const name = this.classes.get(path) ?? 'config';
        return path === here ? name : `the ${name} of ${path || '<root>'}`;
      }
      const { info, path } = this.diff.added[part.index]!;
      const isFirst = !this.reported.has(part.index) && textOf(path).startsWith(here);
      return isFirst ? `a new ${info.name}` : `the new ${info.name} of ${textOf(path)}`;
    });
  }

  /** An old value, with the explicit values of removed configs. */
  private showOld(value: DiffValue): string {
    return showParts(value, (part) => (part instanceof OldPart ? this.describeOld(part) : 'a config'));
  }

  private describeOld(part: OldPart): string {
    const path = textOf(part.path);
    const entry = this.oldEntries.get(path);
    const name = entry?.class ?? this.classes.get(path) ?? 'config';
    const isGone = !this.newPaths.has(path);
    if (!isGone || entry === undefined) return name;
    const set = Object.entries(entry.values).filter(([field]) => !entry.defaults.includes(field));
    const shown = set.map(([field, each]) => `${field}: ${showJson(each)}`);
    return shown.length === 0 ? name : `${name} { ${shown.join(', ')} }`;
  }

  /** A line for each value that was set in the configs that are new in `value`. */
  private addParts(value: DiffValue): void {
    const open: DiffValue[] = [value];
    for (let next = open.shift(); next !== undefined; next = open.shift()) {
      if (next instanceof AddedPart) {
        if (this.reported.has(next.index)) continue;
        this.reported.add(next.index);
        const part = this.diff.added[next.index]!;
        for (const [field, inner] of this.setIn(part)) {
          const path = join(textOf(part.path), field, []);
          const side = this.side(this.show(inner, path), textOf(part.path), field, this.newEntries);
          this.lines.push({ what: 'added', path, new: side });
          open.push(inner);
        }
      } else if (Array.isArray(next)) open.push(...next);
      else if (typeof next === 'object' && next !== null && Object.getPrototypeOf(next) === Object.prototype)
        open.push(...Object.values(next));
    }
  }

  /** The values of a new config that somebody set. */
  private setIn(part: PartConfig): [string, DiffValue][] {
    const entry = this.newEntries.get(textOf(part.path));
    return Object.entries(part.values).filter(([field]) => entry?.defaults.includes(field) !== true);
  }
}

function entriesByPath({ root, entries }: Displayed): Map<string, ConfigEntry> {
  const byPath = new Map<string, ConfigEntry>();
  for (const { config, path } of iterate(root)) {
    const entry = entries.get(config);
    if (entry !== undefined) byPath.set(formatPath(path), entry);
  }
  return byPath;
}

function segments(path: Path): Segment[] {
  const steps: Segment[] = [];
  for (let at = path; at !== undefined; at = at.parent) steps.push(at.segment);
  return steps.reverse();
}

function textOf(path: Path): string {
  return formatPath(segments(path));
}

/** The config that a path ends in, its field, and the steps inside of that. */
function split(path: Path): { owner: string; field: string | undefined; inner: readonly Segment[] } {
  const steps = segments(path);
  const last = steps.findLastIndex((segment) => typeof segment === 'string');
  if (last < 0) return { owner: '', field: undefined, inner: steps };
  return {
    owner: formatPath(steps.slice(0, last)),
    field: steps[last] as string,
    inner: steps.slice(last + 1),
  };
}

function join(owner: string, field: string | undefined, inner: readonly Segment[]): string {
  const rest = formatPath([...(field === undefined ? [] : [field]), ...inner]);
  return owner === '' || rest.startsWith('[') ? owner + rest : `${owner}.${rest}`;
}

function position(before: number | 'end'): string {
  return before === 'end' ? 'at the end' : `before [${before}]`;
}
