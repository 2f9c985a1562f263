/** @file Assignments of a config file: values and nested fields by path. */

import { getPath, writePath } from '../editing/access.js';
import { PresentNames, partAt } from '../editing/presentNames.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { getOrMake } from '../nodes/containers.js';
import { nodesIn } from '../nodes/held.js';
import { type ConfigNode, deleteField, isExplicit, nodeOf, rawValue, writeField } from '../nodes/node.js';
import { formatPath, parsePath, type Segment } from '../walking/paths.js';
import { Decoder } from './decodeDocument.js';
import {
  type DocumentProblem,
  isRecord,
  type ReadOptions,
  reservedNames,
  throwProblems,
} from './document.js';
import type { Where } from './marks.js';
import { SetPaths } from './setPaths.js';
import type { Parsed } from './text.js';

/** One thing that a file sets. */
export interface Assignment {
  readonly path: readonly Segment[];
  /** A plain value, a config, or a `Section`. */
  readonly value: unknown;
  /** `file:line`. */
  readonly place: string;
}

/**
 * Nested fields: assignments to parts of the present value, or to a new record if no config is there. For a list of
 * nested fields, the assignments are to its items.
 */
export class Section {
  /** Error for a record that would replace earlier assignments of the file. */
  refuseRecord: ConfigError | undefined;

  constructor(
    /** Assignments, with paths relative to the section. */
    readonly assignments: readonly Assignment[],
    /** The record, or list, that it is where it cannot be gone into. */
    readonly toRecord: () => unknown,
    /** Number of items of a list. */
    readonly length?: number,
  ) {}
}

/** Reads a file that is no document: nested fields, paths, and configs written in place. */
export class FileReader {
  private readonly decoder: Decoder;

  constructor(
    private readonly parsed: Parsed,
    private readonly file: string,
    options: ReadOptions,
  ) {
    this.decoder = new Decoder(parsed, file, options, (node, fields, where) =>
      this.fill(node, fields, where),
    );
  }

  /** Everything that the file assigns, in order. @throws ConfigError with all that is wrong. */
  readAll(): Assignment[] {
    const { value } = this.parsed;
    // A file whose every line is a comment sets nothing.
    if (value === null) return [];
    if (!isRecord(value)) {
      throw new ConfigError(`A config file holds fields by name, got ${showValue(value)}.`, {
        place: this.file,
      });
    }
    const root: Where = { link: undefined, depth: 0, owner: value, key: '$class' };
    const made = Object.hasOwn(value, '$class')
      ? [{ path: [], value: this.decoder.attempt(() => this.decoder.read(value, root)), place: this.file }]
      : this.assignmentsOf(value, root);
    this.check();
    throwProblems(repeatsIn(made), 'The config file', this.file);
    return made;
  }

  private check(): void {
    throwProblems(this.decoder.takeProblems(), 'The config file', this.file);
  }

  private assignmentsOf(record: Record<string, unknown>, where: Where): Assignment[] {
    const made: Assignment[] = [];
    for (const key of Object.keys(record)) {
      if (Object.hasOwn(record, '$class') && reservedNames.has(key)) continue;
      const spot = this.decoder.inside(where, record, key, key);
      this.decoder.attempt(() => {
        const path = this.pathOf(key, spot);
        const link = path.reduce<Where['link']>((parent, segment) => ({ parent, segment }), where.link);
        const at = { ...spot, link };
        made.push({
          path,
          value: this.valueOf(record[key], at),
          place: this.decoder.placeOf(at) ?? this.file,
        });
      });
    }
    return made;
  }

  private pathOf(key: string, at: Where): Segment[] {
    let path: Segment[];
    try {
      path = parsePath(key);
    } catch {
      path = [{ key }];
    }
    if (path.length === 0) path = [{ key }];
    for (const segment of path)
      this.decoder.checkKey(String(typeof segment === 'object' ? segment.key : segment), at);
    return path;
  }

  private valueOf(value: unknown, at: Where): unknown {
    const isList = Array.isArray(value) && value.some(isPlain);
    if (!(isList || isPlain(value)) || this.decoder.isTooDeep(at)) return this.decoder.read(value, at);
    const toRecord = (): unknown => {
      const record = this.decoder.attempt(() => this.decoder.read(value, at));
      this.check();
      return record;
    };
    return isList
      ? new Section(this.itemsOf(value, at), toRecord, value.length)
      : new Section(this.assignmentsOf(value as Record<string, unknown>, at), toRecord);
  }

  /** The assignments of a list's items to those there. */
  private itemsOf(items: readonly unknown[], where: Where): Assignment[] {
    return items.map((item, i) => {
      const at = this.decoder.inside(where, items, i, i);
      return { path: [i], value: this.valueOf(item, at), place: this.decoder.placeOf(at) ?? this.file };
    });
  }

  /** Sets the fields of a config that is written in place: they may go into its defaults. */
  private fill(node: ConfigNode, fields: Record<string, unknown>, where: Where): void {
    const assignments = this.assignmentsOf(fields, where);
    for (const { problem, place } of repeatsIn(assignments)) {
      this.decoder.report({ ...where, owner: fields, key: '$class' }, () => {
        throw new ConfigError(`${problem} (again at ${place})`);
      });
    }
    let current: Assignment;
    const assigner = new Assigner(node.proxy, this.decoder.notify, (error, { path, place }) => {
      const key = Object.keys(fields).find((name) => formatPath(current.path) === name);
      // The decoder puts the whole path before the problem.
      const own = `${formatPath(path)}: `;
      const isOwn = error.problem.startsWith(own);
      const link = path.reduce<Where['link']>((parent, segment) => ({ parent, segment }), where.link);
      const at = { ...where, link: isOwn ? link : where.link, owner: fields, key: key ?? '$class' };
      this.decoder.report(at, () => {
        throw new ConfigError(isOwn ? error.problem.slice(own.length) : error.problem, {
          place,
          cause: error.cause,
        });
      });
    });
    for (current of assignments) assigner.apply(current);
  }
}

/** Whether a value is a record of fields, not a config or another mark. */
function isPlain(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && !Object.keys(value).some((key) => key.startsWith('$'));
}

/** @throws ConfigError for a list of nested fields that has more or fewer items than the one at `path`. */
function checkLength({ length }: Section, standing: unknown, path: readonly Segment[]): void {
  if (length === undefined || !Array.isArray(standing) || standing.length === length) return;
  const at = formatPath(path);
  const count = (n: number) => `${n} item${n === 1 ? '' : 's'}`;
  throw new ConfigError(
    `${at}: has ${count(standing.length)}, and the file sets fields of ${count(length)}: give as many, {} for one ` +
      `without changes, name one, as ${at}[0], or give each a $class, for a new list.`,
    { path: at },
  );
}

function recordOf(section: Section): unknown {
  if (section.refuseRecord !== undefined) throw section.refuseRecord;
  return section.toRecord();
}

/** Gives a config all that another of its class has. */
function replace(root: unknown, value: unknown, place: string): void {
  const target = nodeOf(root);
  const source = nodeOf(value);
  if (
    target === undefined ||
    source === undefined ||
    target.info !== source.info ||
    target.kind !== source.kind
  ) {
    throw new ConfigError(`The file holds ${showValue(value)}, which cannot replace ${showValue(root)}.`, {
      place,
    });
  }
  for (const field of target.info.fields.values()) {
    if (isExplicit(source, field.name)) writeField(target, field.name, rawValue(source, field), place);
    else if (isExplicit(target, field.name)) deleteField(target, field.name, place);
  }
}

/** The assignments, those in sections too, to paths that an earlier one has set, or part of which it has. */
function repeatsIn(assignments: readonly Assignment[]): DocumentProblem[] {
  const problems: DocumentProblem[] = [];
  const paths = new SetPaths();
  const look = (found: readonly Assignment[], prefix: readonly Segment[]): void => {
    for (const { path: own, value, place } of found) {
      const steps = [...prefix, ...own];
      const error = paths.conflict(steps, place);
      if (value instanceof Section) {
        // A section of a config adds to it, and one of a record is the whole of it.
        value.refuseRecord = error;
        look(value.assignments, steps);
      } else if (error !== undefined) {
        problems.push({ problem: error.problem, path: formatPath(steps), place });
      } else paths.add(steps, place);
    }
  };
  look(assignments, []);
  return problems;
}

/** Assignments to one root: names of fields, and paths that were set, by file. */
export class Assigner {
  private readonly names: PresentNames;
  private readonly paths = new Map<string, { readonly written: SetPaths; readonly items: SetPaths }>();

  constructor(
    private readonly root: unknown,
    notify: (notice: string) => void,
    private readonly fail: (error: ConfigError, at: Assignment) => void,
  ) {
    this.names = new PresentNames(notify);
  }

  /**
   * Applies one assignment; reports its problems, or those of a section's parts.
   *
   * @param known number of leading steps of its path that use present names.
   */
  apply({ path: given, value, place }: Assignment, known = 0): void {
    const { root } = this;
    let path = given;
    try {
      path = this.names.path(root, path, place, known);
      if (value instanceof Section && nodesIn(partAt(root, path)).length > 0) {
        checkLength(value, partAt(root, path), path);
        for (const inner of value.assignments)
          this.apply({ ...inner, path: [...path, ...inner.path] }, path.length);
        return;
      }
      // A name that the root lacks is a slip, not a new part of it.
      if (path.length > 0 && nodeOf(root) === undefined) getPath(root, path.slice(0, 1));
      this.setOnce(path, place);
      if (path.length === 0) replace(root, value, place);
      else writePath(root, path, place, () => (value instanceof Section ? recordOf(value) : value));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.fail(error, { path, value, place });
    }
  }

  /** Two texts may lead to one item of a list, counted from its start and from its end. */
  private setOnce(path: readonly Segment[], place: string): void {
    const steps = path.map((step, i) => {
      const list = typeof step === 'number' && step < 0 ? partAt(this.root, path.slice(0, i)) : undefined;
      return Array.isArray(list) ? list.length + (step as number) : step;
    });
    const file = place.replace(/(:\d+)+$/, '');
    const { written, items } = getOrMake(this.paths, file, () => ({
      written: new SetPaths(),
      items: new SetPaths(),
    }));
    const error = items.conflict(steps, place, path);
    // Errors of the text alone were reported when the file was read.
    if (error !== undefined && written.conflict(path, place) === undefined) throw error;
    written.add(path, place);
    items.add(steps, place);
  }
}
