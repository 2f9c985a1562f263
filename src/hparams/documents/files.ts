/** @file Config files that people write: overrides of a config, or complete ones, in YAML or JSON. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, isAbsolute, join, resolve } from 'node:path';
import { deepCopy, isConfig } from '../editing/edit.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { AbstractClass, AnyConfig } from '../types.js';
import { formatPath } from '../walking/paths.js';
import { Assigner, type Assignment, FileReader } from './assignments.js';
import {
  type DocumentProblem,
  documentIn,
  isRecord,
  longestJson,
  longestWritten,
  notifier,
  problemFrom,
  type ReadOptions,
  throwProblems,
} from './document.js';
import { readDocument, toJSON } from './json.js';
import { type LoadModulesOptions, loadModules } from './modules.js';
import { parseJson, parseYaml, withPlaces } from './parse.js';
import { type Parsed, readText } from './text.js';
import { toYAML } from './yaml.js';

/**
 * Assignments of a file, in order: overrides as nested fields or as paths (`task.train.steps: 10`), or a complete
 * config, as written by `toYAML`, `toJSON` or experiment.json, or by hand as `$class: Name` with its fields. A
 * complete config has the empty path. Assignments of files in an `$include` list come first; their paths are relative
 * to the file's directory.
 *
 * @throws ConfigError with all problems and their lines.
 */
export function readConfigFile(file: string, options: ReadOptions = {}): Assignment[] {
  return readIncluding(file, options, []);
}

/** @param around the files that include this one, the outermost first */
function readIncluding(file: string, options: ReadOptions, includedBy: readonly string[]): Assignment[] {
  const path = resolve(file);
  if (includedBy.includes(path))
    throw new ConfigError(`The file includes itself: ${[...includedBy, path].join(' includes ')}.`, {
      place: file,
    });
  const whole = (value: unknown): Assignment[] => {
    if (!isRecord(value) || isConfig(value)) return [{ path: [], value, place: file }];
    return Object.entries(value).map(([key, part]) => ({ path: [key], value: part, place: file }));
  };
  const read = (parsed: Parsed): Assignment[] =>
    documentIn(parsed.value) === undefined
      ? [
          ...takeIncludes(parsed.value, file).flatMap((each) =>
            readIncluding(isAbsolute(each) ? each : join(dirname(file), each), options, [
              ...includedBy,
              path,
            ]),
          ),
          ...new FileReader(parsed, file, options).readAll(),
        ]
      : whole(readDocument(parsed, file, options));
  const format = formatOf(file);
  const longest = options.maxBytes ?? (format === 'json' ? longestJson : longestWritten);
  const text = readText(file, longest);
  if (format === 'yaml') return read(parseYaml(text, file));
  return parseJson(text, file, (parsed) => {
    if (documentIn(parsed.value) !== undefined || parsed.spotOf !== undefined) return read(parsed);
    if (text.length <= (options.maxBytes ?? longestWritten)) return read(withPlaces(parsed, text));
    throw new ConfigError(
      `A file of overrides has at most ${longestWritten} bytes; the option maxBytes sets the limit.`,
      { place: file },
    );
  });
}

/**
 * Imports the modules that a config file and its includes list, as `loadModules` does. Returns their classes, for the
 * option `classes` of `readConfigFile`.
 *
 * @throws ConfigError as `loadModules` does; other problems of the file are left to its reader.
 */
export async function loadFileModules(
  file: string,
  options: Omit<LoadModulesOptions, 'file'> = {},
): Promise<AbstractClass[]> {
  const classes: AbstractClass[] = [];
  const files = new Set([resolve(file)]);
  for (const each of files) {
    const value = parsedFile(each);
    classes.push(...(await loadModules(value, { ...options, file: each === resolve(file) ? file : each })));
    const included = isRecord(value) && documentIn(value) === undefined ? [value.$include].flat() : [];
    for (const path of included) if (typeof path === 'string') files.add(resolve(dirname(each), path));
  }
  return classes;
}

/** Content of a config file; undefined for one that cannot be read or lists no modules. */
function parsedFile(file: string): unknown {
  try {
    const text = readText(file, longestJson);
    // Most files list none, and parsing takes a while.
    if (!/\bmodules\b|\$include\b/.test(text)) return undefined;
    if (formatOf(file) === 'yaml') return parseYaml(text, file).value;
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Removes and returns the `$include` of a file's value. */
function takeIncludes(value: unknown, file: string): string[] {
  if (!isRecord(value) || !Object.hasOwn(value, '$include')) return [];
  const { $include } = value;
  delete value.$include;
  const files = [$include].flat();
  if (files.every((each) => typeof each === 'string')) return files;
  throw new ConfigError(`$include: expected a file or a list of files, got ${showValue($include)}.`, {
    place: file,
  });
}

/**
 * Applies the assignments, in order, to a config or to arrays and records of configs. Each value is checked as if
 * written in code; its history has its line in the file.
 *
 * @throws ConfigError with all problems and their lines; valid assignments are applied.
 */
export function applyAssignments(
  root: unknown,
  assignments: readonly Assignment[],
  options: Pick<ReadOptions, 'notify'> = {},
): void {
  const problems: DocumentProblem[] = [];
  const assigner = new Assigner(root, notifier(options), (error, { path, place }) =>
    problems.push(problemFrom(error, formatPath(path), place)),
  );
  for (const assignment of assignments) assigner.apply(assignment);
  throwProblems(problems, 'The config file', filesOf(problems));
}

/** The file that the problems are in; several where the assignments are from several. */
function filesOf(problems: readonly DocumentProblem[]): string {
  const files = problems.map(({ place }) => place!.replace(/(:\d+)+$/, ''));
  return [...new Set(files)].join(', ');
}

/** Applies a file to `root`, in place. @throws ConfigError as `readConfigFile` and `applyAssignments` do. */
export function applyConfigFile(root: unknown, file: string, options: ReadOptions = {}): void {
  applyAssignments(root, readConfigFile(file, options), options);
}

/**
 * The complete config of a file; or a copy of `root` with the file applied.
 *
 * @throws ConfigError as `applyConfigFile` does, and for a file of overrides without a root.
 */
export function loadConfigFile<C extends AnyConfig>(file: string, options: ReadOptions & { root: C }): C;
export function loadConfigFile(file: string, options?: ReadOptions): unknown;
export function loadConfigFile(file: string, options: ReadOptions & { root?: AnyConfig } = {}): unknown {
  const assignments = readConfigFile(file, options);
  if (options.root !== undefined) {
    const root = deepCopy(options.root);
    applyAssignments(root, assignments, options);
    return root;
  }
  const [first] = assignments;
  if (assignments.length === 1 && first!.path.length === 0) return first!.value;
  if (assignments.every(({ place }) => place === file)) {
    return Object.fromEntries(assignments.map(({ path, value }) => [path[0], value]));
  }
  throw new ConfigError(
    'The file holds overrides, not a complete config: name its config by loadConfigFile(file, { root }), or give it a $class.',
    { place: first?.place ?? file },
  );
}

/** Writes `root` to a file, as JSON or YAML by its extension; a reader never sees half of it. */
export function saveConfigFile(root: unknown, file: string): void {
  const format = formatOf(file);
  const text =
    format === 'json' ? `${JSON.stringify(toJSON(root, { paths: true }), null, 1)}\n` : toYAML(root);
  const draft = `${file}.${process.pid}.tmp`;
  try {
    writeFileSync(draft, text, { flush: true });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new ConfigError(`'${file}' cannot be written: ${(error as Error).message}`, { cause: error });
  }
}

function formatOf(file: string): 'json' | 'yaml' {
  const extension = extname(file).toLowerCase();
  if (extension === '.json') return 'json';
  if (extension === '.yaml' || extension === '.yml') return 'yaml';
  throw new ConfigError(`${showValue(file)}: a config file ends in .json, .yaml or .yml.`);
}
