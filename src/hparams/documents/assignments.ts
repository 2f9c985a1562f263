/** @file Assignments of a config file: values and nested fields by path. */

import { getPath, writePath } from '../editing/access.js';
import { PresentNames, partAt } from '../editing/presentNames.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
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
import type { Parsed } from './text.js';

/** One thing that a file sets. */
export interface Assignment {
  readonly path: readonly Segment[];
  /** A plain value, a config, or a `Section`. */
  readonly value: unknown;
  /** `file:line`. */
  readonly place: string;
}

/** Nested fields: assignments to the parts of what stands there, or, where no config does, a record. */
export class Section {
  /** What to throw where it is a record that would replace what the file set before. */
  refuseRecord: ConfigError | undefined;

  constructor(
    /** What it assigns; the paths begin at the section's own place. */
    readonly assignments: readonly Assignment[],
    /** The record that it is where it cannot be gone into. */
    readonly toRecord: () => unknown,
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
    const isPlain = isRecord(value) && !Object.keys(value).some((key) => key.startsWith('$'));
    if (!isPlain || this.decoder.isTooDeep(at)) return this.decoder.read(value, at);
    return new Section(this.assignmentsOf(value, at), () => {
      const record = this.decoder.attempt(() => this.decoder.read(value, at));
      this.check();
      return record;
    });
  }

  /** Sets the fields of a config that is written in place: they may go into its defaults. */
  private fill(node: ConfigNode, fields: Record<string, unknown>, where: Where): void {
    const names = new PresentNames(this.decoder.notify);
    const assignments = this.assignmentsOf(fields, where);
    for (const { problem, place } of repeatsIn(assignments)) {
      this.decoder.report({ ...where, owner: fields, key: '$class' }, () => {
        throw new ConfigError(`${problem} (again at ${place})`);
      });
    }
    for (const assignment of assignments) {
      applyOne(node.proxy, assignment, names, (error, { path, place }) => {
        const key = Object.keys(fields).find((name) => formatPath(assignment.path) === name);
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
    }
  }
}

/**
 * Makes one assignment; `fail` is told what is wrong with it, or with the parts of a section. The first `known` steps of
 * its path have their present names.
 */
export function applyOne(
  root: unknown,
  assignment: Assignment,
  names: PresentNames,
  fail: (error: ConfigError, at: Assignment) => void,
  known = 0,
): void {
  const { value, place } = assignment;
  let { path } = assignment;
  try {
    path = names.path(root, path, place, known);
    if (value instanceof Section && nodesIn(partAt(root, path)).length > 0) {
      for (const inner of value.assignments) {
        applyOne(root, { ...inner, path: [...path, ...inner.path] }, names, fail, path.length);
      }
      return;
    }
    // A name that the root lacks is a slip, not a new part of it.
    if (path.length > 0 && nodeOf(root) === undefined) getPath(root, path.slice(0, 1));
    if (path.length === 0) replace(root, value, place);
    else writePath(root, path, place, () => (value instanceof Section ? recordOf(value) : value));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    fail(error, { path, value, place });
  }
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
    throw new ConfigError(`The file holds ${showValue(value)}, which cannot stand for ${showValue(root)}.`, {
      place,
    });
  }
  for (const field of target.info.fields.values()) {
    if (isExplicit(source, field.name)) writeField(target, field.name, rawValue(source, field), place);
    else if (isExplicit(target, field.name)) deleteField(target, field.name, place);
  }
}

/** A place that was set, and those on the way to it. */
interface Known {
  readonly place: string;
  readonly path: string;
}

/** The assignments, those in sections too, whose place an earlier one has set, or a part of it. */
function repeatsIn(assignments: readonly Assignment[]): DocumentProblem[] {
  const problems: DocumentProblem[] = [];
  const set = new Map<string, Known>();
  const below = new Map<string, Known>();
  const look = (found: readonly Assignment[], around: readonly Segment[]): void => {
    for (const { path: own, value, place } of found) {
      const steps = [...around, ...own];
      const path = formatPath(steps);
      const names = steps.map((step) => (typeof step === 'object' ? step.key : step));
      const keys = names.map((_, i) => JSON.stringify(names.slice(0, i + 1)));
      const key = keys.at(-1) ?? '[]';
      if (value instanceof Section) {
        // A section of a config adds to it, and one of a record is the whole of it.
        const earlier = set.get(key) ?? below.get(key);
        if (earlier !== undefined) value.refuseRecord = undoes(path, earlier, place, set.has(key));
        look(value.assignments, steps);
        continue;
      }
      const earlier = set.get(key) ?? below.get(key);
      if (earlier !== undefined) {
        problems.push({ problem: undoes(path, earlier, place, set.has(key)).problem, path, place });
        continue;
      }
      set.set(key, { place, path });
      for (const outer of keys.slice(0, -1)) if (!below.has(outer)) below.set(outer, { place, path });
    }
  };
  look(assignments, []);
  return problems;
}

function undoes(path: string, earlier: Known, place: string, isSame: boolean): ConfigError {
  const problem = isSame
    ? `${path}: set twice, first at ${earlier.place}`
    : `${path}: replaces ${earlier.path}, which is set at ${earlier.place}; set the whole before its parts`;
  return new ConfigError(problem, { path, place });
}
