/** @file Decoder of config documents, which checks each value as if it were written by hand and keeps all problems. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { infoOf } from '../fields/fields.js';
import { givenTwice, oldNameNotice } from '../fields/renamed.js';
import { newNode } from '../nodes/config.js';
import { refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, type NodeKind, type Origin, originText, writeField } from '../nodes/node.js';
import { type Segment, shortPath } from '../walking/paths.js';
import {
  type DocumentProblem,
  deepestDocument,
  findClass,
  isRecord,
  notifier,
  type ReadOptions,
  readTags,
  reservedNames,
} from './document.js';
import { decodeMark, type PartReader, type Where } from './marks.js';
import { entryLinks, formatSpot, joinPaths, type Parsed, type Spot } from './text.js';

/** Ends the reading of one value; without a problem, if that was reported already. */
class Fault extends Error {
  constructor(readonly found: (DocumentProblem & { entry: number | undefined }) | undefined) {
    super(found?.problem ?? 'This value depends on another that could not be read.');
  }
}

/** How the fields of a config that is written in place are set. */
type Fill = (node: ConfigNode, fields: Record<string, unknown>, where: Where) => void;

const kinds: readonly unknown[] = ['config', 'partial', 'argFactory'];

/** Reads the values of one document. */
export class Decoder implements PartReader {
  private readonly found: NonNullable<Fault['found']>[] = [];
  private readonly made: (ConfigNode | undefined)[] = [];
  /** Configs written in place, by the record that describes them: an alias leads to the same record. */
  private readonly inline = new Map<object, ConfigNode | undefined>();
  private readonly open = new Set<object>();
  /** Reports an old name, once. */
  readonly notify: (notice: string) => void;
  private entry: number | undefined;
  private values = 0;

  constructor(
    private readonly parsed: Parsed,
    private readonly writer: Origin,
    private readonly options: ReadOptions = {},
    private readonly fill: Fill = (node, fields, where) => this.writeAll(node, fields, where, true),
  ) {
    this.notify = notifier(options);
  }

  /** All problems, with the paths of a document's entries. */
  problems(root?: unknown, entries?: readonly unknown[]): DocumentProblem[] {
    if (this.found.length === 0) return [];
    const links = entries === undefined ? [] : entryLinks(root, entries);
    return this.found.map(({ entry, path, problem, ...rest }) => {
      if (entry === undefined) return { ...rest, path, problem: `${path}: ${problem}` };
      const whole = joinPaths(shortPath(links[entry]), path);
      return { ...rest, path: whole, problem: `Entry ${entry}, ${whole}: ${problem}` };
    });
  }

  /** The problems so far, which are then forgotten. */
  takeProblems(): DocumentProblem[] {
    const problems = this.problems();
    this.found.length = 0;
    return problems;
  }

  /** Whether the value at `where` is nested too deep. */
  isTooDeep(where: Where): boolean {
    return where.depth > deepestDocument;
  }

  /** Reads an entry of the list of configs, which later entries refer to by its number. */
  readEntry(entry: unknown, owner: object, number: number): void {
    this.entry = number;
    const where: Where = { link: undefined, depth: 0, owner, key: number };
    this.made.push(this.attempt(() => this.readConfig(entry, where)));
    this.entry = undefined;
  }

  /** The result of `read`; undefined after a problem, which is recorded. */
  attempt<R>(read: () => R): R | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (error.found !== undefined) this.found.push(error.found);
      return undefined;
    }
  }

  /** Records problems of `action` at `where`. */
  report(where: Where, action: () => void): void {
    this.attempt(() => {
      try {
        action();
      } catch (error) {
        if (error instanceof ConfigError) this.fail(where, error.problem, error.cause);
        throw error;
      }
    });
  }

  /** Ends the reading of the value at `where`. */
  fail(where: Where, problem: string, cause?: unknown): never {
    const place = this.placeOf(where, true);
    throw new Fault({ path: shortPath(where.link), problem, place, cause, entry: this.entry });
  }

  /** `file:line` of the value at `where`, optionally with its column; the writer of the document if it has no lines. */
  placeOf(where: Where, withColumn = false): string | undefined {
    const origin = this.originOf(where, withColumn);
    return typeof origin === 'string' ? origin : originText(origin);
  }

  private originOf({ owner, key }: Where, withColumn = false): Origin {
    const { file, spotOf } = this.parsed;
    const spot: Spot | undefined = spotOf?.(owner, key);
    if (spot === undefined) return file ?? this.writer;
    return formatSpot(file, withColumn ? spot : { line: spot.line });
  }

  /** Decodes `value`. */
  read(value: unknown, where: Where): unknown {
    this.values += 1;
    if (this.values > (this.parsed.mostValues ?? Infinity)) {
      this.fail(where, `the aliases expand to more than ${this.parsed.mostValues} values.`);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (this.isTooDeep(where)) {
      this.fail(where, `values are nested more than ${deepestDocument} levels deep.`);
    }
    if (Array.isArray(value)) return value.map((item, i) => this.read(item, this.inside(where, value, i, i)));
    const record = value as Record<string, unknown>;
    const keys = Object.keys(record);
    if (keys.includes('$class')) return this.readConfig(record, where).proxy;
    const mark = keys.find((key) => key.startsWith('$'));
    if (mark === undefined) return this.readRecord(record, where);
    if (keys.length > 1) {
      this.fail(where, `the mark '${mark}' stands alone, without ${keys.find((key) => key !== mark)}.`);
    }
    try {
      return decodeMark(this, mark, record[mark], { ...where, owner: record, key: mark });
    } catch (error) {
      if (error instanceof ConfigError) this.fail(where, error.problem, error.cause);
      throw error;
    }
  }

  /** Place of the part `key` of `owner`, which is at `where`. */
  inside(where: Where, owner: object, key: string | number, segment: Segment): Where {
    return { link: { parent: where.link, segment }, depth: where.depth + 1, owner, key };
  }

  private readRecord(record: Record<string, unknown>, where: Where): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const key of Object.keys(record)) {
      const inner = this.inside(where, record, key, { key });
      this.checkKey(key, inner);
      made[key] = this.read(record[key], inner);
    }
    return made;
  }

  /** Refuses a key that would reach an object's prototype. */
  checkKey(key: string, where: Where): void {
    if (refusedKeys.has(key)) this.fail(where, `'${key}' is not allowed as a key.`);
  }

  /** The config of an earlier entry. */
  entryAt(number: unknown, where: Where): unknown {
    if (!Number.isInteger(number) || Number(number) < 0 || Number(number) >= this.made.length) {
      this.fail(where, `there is no config ${showValue(number)} before this.`);
    }
    const node = this.made[Number(number)];
    if (node === undefined) throw new Fault(undefined);
    return node.proxy;
  }

  /** Reads `{class, values}` or `{$class, …values}`. */
  private readConfig(entry: unknown, where: Where): ConfigNode {
    const inPlace = isRecord(entry) && Object.hasOwn(entry, '$class');
    if (!isRecord(entry) || !(inPlace || isRecord(entry.values))) {
      this.fail(where, `a config needs "class", "values" and perhaps "kind", got ${showValue(entry)}.`);
    }
    if (this.open.has(entry)) this.fail(where, 'a config must not contain itself.');
    if (this.inline.has(entry)) {
      const known = this.inline.get(entry);
      if (known === undefined) throw new Fault(undefined);
      return known;
    }
    // If reading it fails, references to it are not reported again.
    this.inline.set(entry, undefined);
    const mark = inPlace ? '$' : '';
    const node = this.makeNode(entry, mark, where);
    this.inline.set(entry, node);
    this.open.add(entry);
    if (inPlace) this.fill(node, entry, where);
    else this.writeAll(node, entry.values as Record<string, unknown>, where, false);
    this.open.delete(entry);
    const tags = entry[`${mark}tags`];
    if (tags !== undefined) {
      const at = { ...where, owner: entry, key: `${mark}tags` };
      this.report(at, () => readTags(node, this.withPresentNames(node, tags), this.originOf(at)));
    }
    return node;
  }

  private makeNode(entry: Record<string, unknown>, mark: string, where: Where): ConfigNode {
    const at = { ...where, owner: entry, key: `${mark}class` };
    const name = entry[`${mark}class`];
    const kind = entry[`${mark}kind`] ?? 'config';
    if (typeof name !== 'string') this.fail(at, `expected the name of a class, got ${showValue(name)}.`);
    if (!kinds.includes(kind)) {
      const wrong = { ...at, key: `${mark}kind` };
      this.fail(wrong, `expected a kind: 'config', 'partial' or 'argFactory', got ${showValue(kind)}.`);
    }
    try {
      const cls = findClass(name, this.parsed.value, this.options.classes ?? [], this.notify);
      const node = newNode(infoOf(cls), kind as NodeKind);
      return node;
    } catch (error) {
      if (error instanceof ConfigError) this.fail(at, error.problem);
      throw error;
    }
  }

  /** Writes each of `fields` as it is; in place, names such as `$class` describe the config itself. */
  private writeAll(node: ConfigNode, fields: Record<string, unknown>, where: Where, inPlace: boolean): void {
    for (const name of Object.keys(fields)) {
      if (inPlace && reservedNames.has(name)) continue;
      const at = this.inside(where, fields, name, name);
      this.attempt(() => {
        const value = this.read(fields[name], at);
        this.report({ ...at, link: where.link }, () =>
          this.write(node, this.presentName(node, name, fields), value, at),
        );
      });
    }
  }

  /** The present name of a field, given its name in the document and those of its siblings. */
  private presentName({ info }: ConfigNode, name: string, among: object): string {
    const present = info.oldNames[name];
    if (present === undefined) return name;
    this.notify(oldNameNotice('The config document', info.name, name, present));
    const other = Object.keys(among).find(
      (each) => each !== name && (info.oldNames[each] ?? each) === present,
    );
    if (other !== undefined) throw new ConfigError(givenTwice(info.name, present, name, other));
    return present;
  }

  private withPresentNames(node: ConfigNode, tags: unknown): unknown {
    if (!isRecord(tags)) return tags;
    const named = Object.entries(tags).map(([name, value]) => [this.presentName(node, name, tags), value]);
    return Object.fromEntries(named);
  }

  /** Writes one field; the history gets the place in the document. */
  write(node: ConfigNode, name: string, value: unknown, at: Where): void {
    writeField(node, name, value, this.originOf(at));
  }
}
