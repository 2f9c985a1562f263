/** @file Graphs of diffs: removals are red, additions green, and an arrow leads from old to new values. */

import { AddedPart, type Change, type Diff, OldPart, type PartConfig, type Path } from '../diff/changes.js';
import { Resolver } from '../diff/editValue.js';
import { labelsOf, showDiffValue } from '../diff/formatDiff.js';
import { partsOf } from '../nodes/containers.js';
import type { ClassLabels } from '../printing/items.js';
import { formatPath, type Segment, shortPath } from '../walking/paths.js';
import { boxOf, Drawing, deepestPath, type GraphOptions, plainBox, svgOf } from './dot.js';
import { type Box, type Cell, cut, dim, dotOf, type Row } from './html.js';

interface DiffGraphOptions extends Omit<GraphOptions, 'maxDepth'> {
  /** The diff's old structure: if given, unchanged parts are drawn, too. */
  readonly old?: unknown;
}

const red = '#fce8e6';
const green = '#e6f4ea';
const removedTitle = '#f28b82';
const addedTitle = '#81c995';

/**
 * The graph of a diff in Graphviz's DOT language: the configs that changed, and those on the way to them. Old values
 * are red and new ones green, with an arrow between them where one became the other; so are whole configs that went
 * or came.
 */
export function diffToDot(diff: Diff, options: DiffGraphOptions = {}): string {
  return dotOf(new DiffDrawing(diff, options).draw(), options.direction ?? 'LR');
}

/** The graph of a diff, as `diffToDot` has it, as the text of an SVG file. */
export async function diffToSvg(diff: Diff, options: DiffGraphOptions = {}): Promise<string> {
  return svgOf(diffToDot(diff, options));
}

type FieldChange = Exclude<Change, { kind: 'class' | 'kind' }>;

/** Changes that discard the whole old value. */
const replaces: ReadonlySet<Change['kind']> = new Set(['set', 'delete', 'modify', 'remove', 'move']);

class DiffDrawing {
  /** The boxes of old configs; equal paths of a diff are one object. */
  private readonly old = new Map<Path, Box>();
  private readonly added: Box[];
  private readonly boxes = new Set<Box>();
  private readonly rowsByName = new Map<Box, Map<string, number>>();
  private readonly plainRoot = plainBox({});
  private readonly longest: number;
  private readonly diff: Diff;
  private readonly options: DiffGraphOptions;
  private readonly labels: ClassLabels;

  constructor(diff: Diff, options: DiffGraphOptions) {
    this.diff = diff;
    this.options = options;
    this.labels = labelsOf(diff);
    this.longest = options.maxStringLength ?? 40;
    this.added = diff.added.map((part) => ({
      ...boxOf(part, shortPath(part.path, deepestPath), this.labels),
      colour: addedTitle,
    }));
  }

  draw(): Box[] {
    const { diff } = this;
    if ('old' in this.options) this.drawOld(this.options.old);
    const drawn = new Set(this.boxes);
    for (const place of diff.places)
      this.addOld(place.path, () => boxOf(place, shortPath(place.path, deepestPath), this.labels));
    for (const part of diff.removed) {
      this.addOld(part.path, () => boxOf(part, shortPath(part.path, deepestPath), this.labels)).colour =
        removedTitle;
    }
    this.addOld(undefined, () => this.plainRoot);
    for (const box of this.added) this.boxes.add(box);
    for (const [path, box] of this.old) if (path !== undefined && !drawn.has(box)) this.link(path, box);
    for (const [i, part] of diff.added.entries()) this.fillPart(this.added[i]!, part, green);
    for (const part of diff.removed) {
      const box = this.old.get(part.path)!;
      if (!drawn.has(box)) this.fillPart(box, part, red);
    }
    for (const change of diff.changes) this.addChange(change);
    // A root that is no config has a box for its own changes only.
    const shown = [...this.boxes].filter((box) => box.rows.length > 0 || box !== this.plainRoot);
    return shown.length > 0 ? shown : [{ ...this.plainRoot, title: [{ text: 'no changes', italic: true }] }];
  }

  private drawOld(root: unknown): void {
    const drawing = new Drawing(this.options);
    for (const box of drawing.draw(root)) this.boxes.add(box);
    const resolver = new Resolver(root);
    for (const { path } of [...this.diff.places, ...this.diff.removed]) {
      const node = resolver.node(path);
      const box = node && drawing.boxes.get(node);
      if (box !== undefined) this.old.set(path, box);
    }
    const [first] = this.boxes;
    this.old.set(undefined, first!);
  }

  /** The box of the old config at `path`, made if there is none yet. */
  private addOld(path: Path, make: () => Box): Box {
    let box = this.old.get(path);
    if (box === undefined) this.old.set(path, (box = make()));
    this.boxes.add(box);
    return box;
  }

  /** An edge from the old config around the one at `path`. */
  private link(path: NonNullable<Path>, box: Box): void {
    const { owner, steps } = this.ownerOf(path);
    const name = formatPath(steps);
    const value = [{ text: box.title[0]!.text }];
    this.addRow(owner, plainRow({ text: cut(name, this.longest) }, value, [box]), name);
  }

  /** The old config that a path leads through last, and the steps from there. */
  private ownerOf(path: NonNullable<Path>): { owner: Box; steps: Segment[] } {
    const steps: Segment[] = [path.segment];
    let at = path.parent;
    while (at !== undefined && !this.old.has(at)) {
      steps.push(at.segment);
      at = at.parent;
    }
    return { owner: this.old.get(at)!, steps: steps.reverse() };
  }

  private fillPart(box: Box, part: PartConfig, background: string): void {
    for (const [name, value] of Object.entries(part.values)) {
      const tags = part.tags.filter((state) => state.field === name && state.present);
      const row: Row = {
        name: { text: cut(name, this.longest), background },
        tags: tags.map(({ tag }) => `#${tag.name}`),
        value: [this.cellOf(value, background)],
        targets: this.targetsOf(value),
      };
      this.addRow(box, row, name);
    }
  }

  private addChange(change: Change): void {
    const { path } = change;
    if (change.kind === 'class' || change.kind === 'kind') {
      const [before, after] =
        change.kind === 'class'
          ? [this.labels.of(change.old), this.labels.of(change.value)]
          : [change.old, change.value];
      this.old.get(path)!.title = changed({ text: before, bold: true }, { text: after, bold: true });
      return;
    }
    const root = { owner: this.old.get(undefined)!, steps: [] };
    const { owner, steps } = path === undefined ? root : this.ownerOf(path);
    const where = formatPath(steps) || 'value';
    this.addRow(owner, this.rowOf(change, where), replaces.has(change.kind) ? where : undefined);
  }

  private rowOf(change: FieldChange, where: string): Row {
    const name = cut(change.kind === 'insert' ? `${where}[+]` : where, this.longest);
    if ('tag' in change) {
      const background = change.kind === 'addTag' ? green : red;
      return plainRow({ text: name }, [{ text: `#${change.tag.name}`, background }]);
    }
    if (change.kind === 'set' || change.kind === 'insert') {
      const cell = this.cellOf(change.value, green);
      return plainRow({ text: name, background: green }, [cell], this.targetsOf(change.value));
    }
    const before = this.cellOf(change.old, change.kind === 'move' ? undefined : red);
    const targets = this.targetsOf(change.old);
    if (change.kind === 'modify') {
      const after = this.cellOf(change.value, green);
      return plainRow({ text: name }, changed(before, after), [...targets, ...this.targetsOf(change.value)]);
    }
    if (change.kind === 'move') {
      const to = change.before === 'end' ? '→ the end' : `→ before [${change.before}]`;
      return plainRow({ text: name }, [before, { text: to, colour: dim }], targets);
    }
    return plainRow({ text: name, background: red }, [before], targets);
  }

  /** Adds a row, in the place of the one that is called `replaced`, if there is one. */
  private addRow(box: Box, row: Row, replaced?: string): void {
    let rows = this.rowsByName.get(box);
    if (rows === undefined) {
      rows = new Map(box.rows.map(({ name }, i) => [name.text, i]));
      this.rowsByName.set(box, rows);
    }
    const i = replaced === undefined ? undefined : rows.get(replaced);
    if (i !== undefined) box.rows[i] = row;
    else {
      if (replaced !== undefined) rows.set(replaced, box.rows.length);
      box.rows.push(row);
    }
  }

  private cellOf(value: unknown, background?: string): Cell {
    return { text: this.textOf(value), ...(background === undefined ? {} : { background }) };
  }

  private textOf(value: unknown): string {
    const box = value instanceof OldPart ? this.old.get(value.path) : undefined;
    return cut(box?.title[0]?.text ?? showDiffValue(this.diff, value), this.longest);
  }

  /** The boxes of the configs in a value. */
  private targetsOf(value: unknown): Box[] {
    if (value instanceof AddedPart) return this.added.slice(value.index, value.index + 1);
    if (value instanceof OldPart) {
      const box = this.old.get(value.path);
      return box === undefined ? [] : [box];
    }
    return (partsOf(value) ?? []).flatMap(([, part]) => this.targetsOf(part));
  }
}

function plainRow(name: Cell, value: readonly Cell[], targets: readonly Box[] = []): Row {
  return { name, tags: [], value, targets };
}

function changed(before: Cell, after: Cell): Cell[] {
  return [
    { ...before, background: red },
    { text: '→', colour: dim },
    { ...after, background: green },
  ];
}
