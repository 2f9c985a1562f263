/** @file Text of diffs and of their values. */
import { showLong, showValue } from '../fields/describe.js';
import type { ClassInfo } from '../fields/fields.js';
import { partsOf } from '../nodes/containers.js';
import type { Part } from '../nodes/containerTypes.js';
import { nodesIn } from '../nodes/held.js';
import { nodeOf } from '../nodes/node.js';
import { ClassLabels } from '../printing/items.js';
import { formatLink, formatSegment, isSameStep } from '../walking/paths.js';
import {
  AddedPart,
  type Change,
  collectParts,
  type Diff,
  type DiffValue,
  OldPart,
  type PartConfig,
  type Path,
  splitPath,
} from './changes.js';

/** How a diff is written. */
interface FormatDiffOptions {
  /** Whether terminal colours mark removals and additions. The default is false. */
  colour?: boolean;
}

/**
 * The changes as lines `path : old → new`, paths being those of the old structure. A config that is new is written
 * `#1 Mixer`, with its values on lines of their own, `#1.numHeads : 4`; so one can see where it is shared. Configs of
 * the old structure that are elsewhere now are named by their old paths: `Mixer of encoder.mixer`. A field that was
 * or is not set shows its default, `8 (default)`.
 */
export function formatDiff(diff: Diff, options: FormatDiffOptions = {}): string {
  return new DiffWriter(diff, options.colour === true).run();
}

// Written out in full, the paths of a long chain would take space that grows with the square of its length.
const deepestPath = 64;

class DiffWriter {
  private readonly lines: string[] = [];
  private readonly texts = new Map<Path, { readonly text: string; readonly depth: number }>();
  private readonly classes = new Map<Path, ClassInfo>();
  private readonly newClasses = new Map<Path, ClassInfo>();
  private count = 0;
  private readonly labels: ClassLabels;

  constructor(
    private readonly diff: Diff,
    private readonly colour: boolean,
  ) {
    this.labels = labelsOf(diff);
    for (const { path, info } of diff.places) this.classes.set(path, info);
    for (const change of diff.changes)
      if (change.kind === 'class') this.newClasses.set(change.path, change.value);
  }

  run(): string {
    for (const change of this.diff.changes) this.lines.push(this.line(change));
    for (const [i, part] of this.diff.added.entries()) this.addPart(`#${i + 1}`, part);
    return this.lines.join('\n');
  }

  private line(change: Change): string {
    const { path } = change;
    const where = this.path(path) || '<root>';
    const show = (value: DiffValue): string => this.show(value, path);
    const line = (old: string, now: string): string => `${where} : ${this.gone(old)} → ${this.come(now)}`;
    switch (change.kind) {
      case 'set':
        return line(this.unset(path, this.classes), show(change.value));
      case 'modify':
        return line(show(change.old), show(change.value));
      case 'delete': {
        const isKey = typeof path?.segment === 'object';
        return line(show(change.old), isKey ? '<removed>' : this.unset(path, this.newClasses));
      }
      case 'remove':
        return line(show(change.old), '<removed>');
      case 'class':
        return `${where} : class ${this.gone(this.labels.of(change.old))} → ${this.come(this.labels.of(change.value))}`;
      case 'kind':
        return line(change.old, change.value);
      case 'insert':
        return `${where} : ${this.position(change.before)} → ${this.come(show(change.value))}`;
      case 'move':
        return `${where} : ${show(change.old)} → moved ${this.position(change.before)}`;
      case 'addTag':
        return `${where} : ${this.come(`+ ${change.tag}`)}`;
      case 'removeTag':
        return `${where} : ${this.gone(`- ${change.tag}`)}`;
    }
  }

  /** Text of a field without an explicit value, in a config of its class in `classes` or in the old structure. */
  private unset(path: Path, classes: ReadonlyMap<Path, ClassInfo>): string {
    const { config, field, inner } = splitPath(path);
    const info = classes.get(config) ?? this.classes.get(config);
    if (field === undefined || inner.length > 0 || info === undefined) return '<not set>';
    const found = info.fields.get(field);
    if (found === undefined) return '<no such field>';
    if (found.default.kind === 'config') return '<default>';
    const value = found.default.kind === 'value' ? found.default.make() : undefined;
    return value === undefined ? '<not set>' : `${showLong(value)} (default)`;
  }

  private position(before: number | 'end'): string {
    return before === 'end' ? 'at the end' : `before [${before}]`;
  }

  private addPart(label: string, part: PartConfig): void {
    for (const [name, value] of Object.entries(part.values)) {
      this.lines.push(`${label}.${name} : ${this.come(this.show(value, undefined))}`);
    }
    for (const { field, tag, present } of part.tags) {
      const sign = present ? this.come(`+ ${tag}`) : this.gone(`- ${tag}`);
      this.lines.push(`${label}.${field} : ${sign}`);
    }
  }

  private classNameAt(path: Path): string {
    const info = this.classes.get(path);
    return info === undefined ? 'config' : this.labels.of(info);
  }

  /** A value; a config at `here` itself is named by its class alone. */
  private show(value: DiffValue, here: Path): string {
    if (value instanceof AddedPart)
      return `#${value.index + 1} ${this.labels.of(this.diff.added[value.index]!.info)}`;
    if (value instanceof OldPart) {
      const path = value.path;
      const name = this.classNameAt(path);
      return path !== undefined && isSamePath(path, here)
        ? name
        : `${name} of ${this.path(value.path) || '<root>'}`;
    }
    const parts = partsOf(value);
    if (parts === undefined || collectParts(value).length === 0) return showLong(value);
    return listed(value, parts, (part) => this.show(part, undefined));
  }

  /** The text of a path; one of more than 64 steps begins from a label that a line of its own explains. */
  private path(path: Path): string {
    if (path === undefined) return '';
    const open: NonNullable<Path>[] = [];
    let at: Path = path;
    for (; at !== undefined && !this.texts.has(at); at = at.parent) open.push(at);
    let { text, depth } = at === undefined ? { text: '', depth: 0 } : this.texts.get(at)!;
    for (let link = open.pop(); link !== undefined; link = open.pop()) {
      if (depth >= deepestPath) {
        const label = `@${++this.count}`;
        this.lines.push(`${label} : ${text}`);
        text = label;
        depth = 0;
      }
      text += formatSegment(link.segment, text === '');
      depth += 1;
      this.texts.set(link, { text, depth });
    }
    return text;
  }

  private gone(text: string): string {
    return this.colour ? `\u001b[31m${text}\u001b[39m` : text;
  }

  private come(text: string): string {
    return this.colour ? `\u001b[32m${text}\u001b[39m` : text;
  }
}

/** Whether two paths of a diff are equal; those to one config are one object. */
function isSamePath(a: Path, b: Path): boolean {
  let [one, other] = [a, b];
  for (; one !== other; one = one?.parent, other = other?.parent)
    if (one === undefined || other === undefined || !isSameStep(one.segment, other.segment)) return false;
  return true;
}

/** Labels of the classes in a diff. */
export function labelsOf(diff: Diff): ClassLabels {
  return new ClassLabels(() => [
    ...[...diff.places, ...diff.removed, ...diff.added].map(({ info }) => info),
    ...diff.changes.flatMap((change) => (change.kind === 'class' ? [change.old, change.value] : [])),
  ]);
}

/** A value on one line: configs by their classes, those of the old structure by their paths. */
export function showDiffValue(diff: Diff, value: DiffValue): string {
  if (value instanceof AddedPart) {
    const added = diff.added[value.index];
    return `a new ${added === undefined ? 'config' : labelsOf(diff).of(added.info)}`;
  }
  if (value instanceof OldPart) return `the config at ${formatLink(value.path) || '<root>'}`;
  const parts = nodeOf(value) === undefined && holdsParts(value) ? partsOf(value) : undefined;
  if (parts === undefined) return showValue(value);
  return listed(value, parts, (part) => showDiffValue(diff, part));
}

/** Whether a value of a diff or of the base contains configs. */
function holdsParts(value: DiffValue): boolean {
  return collectParts(value).length > 0 || nodesIn(value).length > 0;
}

/** The parts of a container on one line. */
function listed(value: unknown, parts: readonly Part[], show: (part: unknown) => string): string {
  const shown = parts.map(([segment, part]) =>
    typeof segment === 'object' ? `${segment.key}: ${show(part)}` : show(part),
  );
  return Array.isArray(value) ? `[${shown.join(', ')}]` : `{${shown.join(', ')}}`;
}
