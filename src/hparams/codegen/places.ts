/** @file The old configs that code of a diff speaks of: by their paths, or by names that are taken before anything moves. */

import { type DiffPlace, type Path, type PathTable, splitPath } from '../diff/types.js';
import { getPath } from '../editing/access.js';
import { ConfigError } from '../errors.js';
import { isCarrierClass } from '../fields/fields.js';
import { definitionOf, holderOf, innermost } from '../fields/schema.js';
import { formatLink, formatPath, type PathLink, type Segment } from '../walking/paths.js';
import { statement, text } from './code.js';
import type { Imports } from './imports.js';
import { type Names, nameCandidates, stringText } from './names.js';
import type { Body } from './plan.js';
import { memberText } from './values.js';

// Longer ones are hard to read; the text of all paths of a long chain would grow with the square of its length.
const longestChain = 3;

/** How code reaches the old configs. */
export class Places {
  private readonly places = new Map<Path, DiffPlace>();
  private readonly owners = new Map<Path, Path>();
  private readonly expressions = new Map<Path, { text: string; steps: number }>();
  private readonly used = new Set<Path>();

  constructor(
    places: readonly DiffPlace[],
    private readonly table: PathTable,
    private readonly names: Names,
    private readonly imports: Imports,
    private readonly typeOf: (place: DiffPlace) => string,
  ) {
    for (const place of places) {
      const path = table.intern(place.path);
      this.places.set(path, place);
      this.owners.set(path, path === undefined ? undefined : table.intern(splitPath(path).config));
    }
  }

  /** The config at `path`. @throws ConfigError where the diff does not say what it is. */
  at(path: Path): DiffPlace {
    const place = this.places.get(this.table.intern(path));
    if (place !== undefined) return place;
    throw new ConfigError('codegenDiff: the diff does not say which config stands at a path that it names.');
  }

  /** Notes that code speaks of the config at `path`. */
  use(path: Path): void {
    const { info } = this.at(path);
    if (isCarrierClass(info.cls)) {
      const where = formatLink(path);
      throw new ConfigError(
        `codegenDiff: ${where} is a value with tags of its own, which code sees through: it cannot change it, or move it. Use applyDiff, or write the container anew.`,
        { path: where },
      );
    }
    for (let at = this.table.intern(path); !this.used.has(at); at = this.owners.get(at)) {
      this.used.add(at);
      if (at === undefined) break;
    }
  }

  /** Whether code speaks of any old config. */
  get isUsed(): boolean {
    return this.used.size > 0;
  }

  /**
   * Writes what gives names to configs whose path alone would not do: because something on it changes, because its type
   * does not say which class stands there, or because it is long. `changes` says where values are replaced.
   */
  write(
    body: Body,
    root: string,
    changes: (path: PathLink) => boolean,
    needsName: (path: Path) => boolean,
  ): void {
    for (const path of this.outerFirst()) {
      const place = this.at(path);
      if (path === undefined) {
        this.expressions.set(path, { text: root, steps: 0 });
        continue;
      }
      const { config, field, inner } = splitPath(path);
      const owner = this.expressions.get(this.table.intern(config))!;
      const reached = `${owner.text}.${field}`;
      const isExact = inner.length === 0 && this.isDeclared(config, field!, place);
      if (isExact && owner.steps < longestChain && !changes(path) && !needsName(path)) {
        this.expressions.set(path, { text: reached, steps: owner.steps + 1 });
        continue;
      }
      const name = this.names.take(nameCandidates(path, place.info.name, ''));
      const found = this.reading(owner.text, this.at(config), field!, inner);
      const value = text(isExact ? found : `${found} as ${this.typeOf(place)}`);
      body.statements.push(statement(`const ${name} =`, value, body.indent));
      this.expressions.set(path, { text: name, steps: 0 });
    }
  }

  /** The configs that code speaks of, each behind the one that holds it. */
  private outerFirst(): Set<Path> {
    const ordered = new Set<Path>();
    for (const path of this.places.keys()) {
      if (!this.used.has(path)) continue;
      const around: Path[] = [];
      for (let at = path; !ordered.has(at); at = this.owners.get(at)) {
        around.push(at);
        if (at === undefined) break;
      }
      for (const each of around.reverse()) ordered.add(each);
    }
    return ordered;
  }

  /** What the config at `path` is called from now on. */
  rename(path: Path, name: string): void {
    this.expressions.set(this.table.intern(path), { text: name, steps: 0 });
  }

  /** The expression of the config at `path`. */
  text(path: Path): string {
    return this.expressions.get(this.table.intern(path))!.text;
  }

  /** Whether the field's type says that a config of this very class stands there. */
  private isDeclared(config: Path, field: string, { info, kind }: DiffPlace): boolean {
    const check = this.at(config).info.fields.get(field)?.check;
    if (check === undefined || innermost(check) !== check) return false;
    const holder = holderOf(check);
    return holder?.cls === info.cls && (holder.kind === 'factory') === (kind === 'partial');
  }

  private reading(owner: string, { info }: DiffPlace, field: string, inner: readonly Segment[]): string {
    const [first, second] = inner;
    if (first === undefined) return `${owner}.${field}`;
    const check = info.fields.get(field)?.check;
    const type = check && definitionOf(check).type;
    if (second === undefined) {
      if (typeof first === 'number' && (type === 'array' || type === 'tuple'))
        return `${owner}.${field}[${first}]`;
      if (typeof first === 'object' && type === 'record') return `${owner}.${field}${memberText(first.key)}`;
    }
    // Of a union or an optional field, the type says too little to step into it.
    const path = formatPath([field, ...inner]);
    return `${this.imports.library(getPath)}(${owner}, ${stringText(path)})`;
  }
}
