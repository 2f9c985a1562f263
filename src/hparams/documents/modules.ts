/** @file Modules that documents carry: the files that declare their classes, constants and tags, listed and loaded. */
import { pathToFileURL } from 'node:url';
import { Configurable } from '../configurable.js';
import { classOf } from '../editing/edit.js';
import { ConfigError } from '../errors.js';
import {
  classesNamed,
  classOfAlias,
  concreteClasses,
  nameOf,
  registerClass,
  specifierOfDeclared,
} from '../fields/classNames.js';
import { isOfLibrary, specifierOfFile } from '../fields/declaringModule.js';
import { showValue } from '../fields/describe.js';
import { FIELDS } from '../fields/fields.js';
import { locateModule, projectOf } from '../fields/specifiers.js';
import { containerNamed } from '../nodes/containerTypes.js';
import { isTagDefined } from '../tags.js';
import type { AbstractClass } from '../types.js';
import { iterate } from '../walking/iterate.js';
import { type DocumentProblem, documentIn, isConstantNamed, isRecord, throwProblems } from './document.js';

type Namespace = Readonly<Record<string, unknown>>;

/** The names that each module gives a document. */
export class ModuleList {
  readonly #names = new Map<string, Set<string>>();

  add(specifier: string | undefined, name: string): void {
    if (specifier === undefined) return;
    const names = this.#names.get(specifier);
    if (names === undefined) this.#names.set(specifier, new Set([name]));
    else names.add(name);
  }

  addFile(file: string | undefined, name: string): void {
    if (file !== undefined) this.add(specifierOfFile(file), name);
  }

  /** As a document has it: nothing where all is the library's. */
  get entry(): { modules?: { [specifier: string]: string[] } } {
    if (this.#names.size === 0) return {};
    const listed = [...this.#names].map(([specifier, names]): [string, string[]] => [
      specifier,
      [...names].sort(),
    ]);
    return { modules: Object.fromEntries(listed.sort(([a], [b]) => (a < b ? -1 : 1))) };
  }
}

/** Classes available by loading their modules, exported or not. */
const knownByLoading = new WeakSet<AbstractClass>();

/** Makes the configurable classes that a module exports known by name to flags and files. */
export function registerExports(exports: Namespace): void {
  registerClass(...classesIn(exports));
}

function classesIn(exports: Namespace): AbstractClass[] {
  // `import` of a CommonJS module puts its exports below `default`, and perhaps beside it.
  const inside = isRecord(exports.default) ? Object.values(exports.default) : [];
  return [...Object.values(exports), ...inside].filter(
    (value): value is AbstractClass =>
      typeof value === 'function' && FIELDS in value && value !== Configurable,
  );
}

const byImport = (file: string): Promise<Namespace> => import(pathToFileURL(file).href);

/** Imports a file and makes the classes that it exports known by name. */
export async function importModule(
  file: string,
  load: (file: string) => Namespace | Promise<Namespace> = byImport,
): Promise<Namespace> {
  const exports = await load(file);
  registerExports(exports);
  for (const cls of concreteClasses()) knownByLoading.add(cls);
  return exports;
}

/** How `loadModules` finds and loads modules. */
export interface LoadModulesOptions {
  /** Folders of projects that the modules may belong to, tried in order. Default: the working directory. */
  readonly folders?: readonly string[];
  /** Name of the document in messages. */
  readonly file?: string | undefined;
  /** Loads a file. Default: by `import`. */
  readonly load?: (file: string) => Namespace | Promise<Namespace>;
}

/**
 * Imports the modules that a document of `toJSON`, or an experiment.json, lists: files of the project and of packages that
 * are installed in it, and no others. Returns the classes that the document means, for the option `classes` of `fromJSON`.
 *
 * @throws ConfigError with all that is wrong: specifiers that lead out of the project, and names that are unknown since
 *   their module is not there, fails to load, or does not export them.
 */
export async function loadModules(
  document: unknown,
  { folders = [process.cwd()], file: place, load }: LoadModulesOptions = {},
): Promise<AbstractClass[]> {
  const classes: AbstractClass[] = [];
  const problems: DocumentProblem[] = [];
  const projects = [...new Set(folders.map(projectOf))];
  for (const [specifier, names] of modulesOf(document, place)) {
    const fail = (problem: string, cause?: unknown): void => {
      problems.push({ path: 'modules', problem, place, cause });
    };
    const tried = projects.map((project) => locateModule(specifier, project));
    const found = tried.find((each) => 'file' in each) ?? tried[0]!;
    const failEach = (why: string, fix: string, cause?: unknown): void => {
      for (const name of unknownAmong(names)) fail(missing(name, specifier, why, fix), cause);
    };
    if (!('file' in found)) {
      if (found.isForeign)
        fail(`modules: '${specifier}' ${found.problem}. A document loads no other modules.`);
      else failEach(found.problem, 'Restore it');
      continue;
    }
    try {
      const exported = classesIn(await importModule(found.file, load));
      classes.push(...exported.filter((cls) => names.some((name) => shortName(name) === cls.name)));
      failEach('does not export it', 'Export it there');
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      const why = code === 'ERR_UNKNOWN_FILE_EXTENSION' ? untranslated : message;
      failEach(`fails to load (${why})`, 'Mend the file', error);
    }
  }
  throwProblems(problems, 'The config document', place);
  return classes;
}

/** Why a process cannot import TypeScript. */
export const untranslated =
  'This process does not load TypeScript: start it with node --import luthier/typescript PROGRAM.';

function missing(name: string, specifier: string, why: string, fix: string): string {
  return (
    `'${name}' is unknown: the document has it from ${specifier}, which ${why}. ${fix}; if it has moved, name its file ` +
    'under "modules"; if it was renamed, call registerAlias.'
  );
}

function shortName(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Those of the names of a document that nothing known has. */
function unknownAmong(names: readonly string[]): string[] {
  return names.filter((name) => {
    if (name.startsWith('#')) return !isTagDefined(name.slice(1));
    const isKnown = classesNamed(name).length > 0 || classesNamed(shortName(name)).length > 0;
    return !(isKnown || classOfAlias(name) || isConstantNamed(name) || containerNamed(name));
  });
}

function modulesOf(document: unknown, place: string | undefined): [string, string[]][] {
  const inside = documentIn(document);
  const modules = isRecord(inside) ? (inside.modules ?? {}) : {};
  const isNames = (names: unknown): names is string[] =>
    Array.isArray(names) && names.every((name) => typeof name === 'string');
  if (isRecord(modules) && Object.values(modules).every(isNames))
    return Object.entries(modules) as [string, string[]][];
  throw new ConfigError(
    `modules: expected lists of names by file, such as {"./src/layers.ts": ["MyLinear"]}, got ${showValue(modules)}.`,
    { place },
  );
}

/**
 * The classes of configs in `root` that no other process finds by their modules, each with the reason: those that are not
 * exported by the file that declares them, and those of no file of the project or a package.
 */
export async function unloadableClasses(root: unknown): Promise<string[]> {
  const classes = new Set(iterate(root).map(({ config }) => classOf(config) as AbstractClass));
  const lines: string[] = [];
  for (const cls of classes) {
    if (knownByLoading.has(cls) || isOfLibrary(cls)) continue;
    const specifier = specifierOfDeclared(cls);
    const located = specifier === undefined ? undefined : locateModule(specifier, projectOf(process.cwd()));
    if (located === undefined || !('file' in located)) {
      lines.push(`${nameOf(cls)}, which no file of this project or of a package declares`);
    } else if (!classesIn(await byImport(located.file)).includes(cls)) {
      lines.push(`${nameOf(cls)}, which ${specifier} does not export`);
    }
  }
  return lines;
}
