/** @file The module that declares a class, as V8 knows it: at run time a class does not. */
import { existsSync } from 'node:fs';
import type { Session } from 'node:inspector';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectOf, specifierOf } from './specifiers.js';

/** V8's record of a function's location. */
interface Location {
  readonly scriptId: string;
}

interface Property {
  readonly name: string;
  readonly value?: { readonly value?: Location };
}

const files = new WeakMap<Function, string | undefined>();
/** URLs of scripts by their numbers; those that were loaded before the last look. */
const urls = new Map<string, string>();
const handle = Symbol.for('luthier.locatedFunction');

/** The file that declares `cls`; undefined where this Node has no inspector. The first look takes some 100 ms. */
function fileOf(cls: Function): string | undefined {
  if (!files.has(cls)) files.set(cls, pathOf(urlOf(cls)));
  return files.get(cls);
}

function pathOf(url: string | undefined): string | undefined {
  if (url === undefined || url === '') return undefined;
  const path = url.replace(/\?.*$/, '');
  return path.startsWith('file://') ? fileURLToPath(path) : path;
}

function urlOf(cls: Function): string | undefined {
  let inspector: typeof import('node:inspector');
  try {
    // Node can be built without it.
    inspector = createRequire(import.meta.url)('node:inspector');
  } catch {
    return undefined;
  }
  const session = new inspector.Session();
  session.connect();
  try {
    const script = scriptOf(cls, session);
    if (script !== undefined && !urls.has(script)) {
      session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
      session.post('Debugger.enable');
    }
    return script && urls.get(script);
  } finally {
    session.disconnect();
  }
}

/** The number of the script that declares `cls`. The session answers before its calls return. */
function scriptOf(cls: Function, session: Session): string | undefined {
  const holder = globalThis as { [handle]?: Function };
  holder[handle] = cls;
  const expression = "globalThis[Symbol.for('luthier.locatedFunction')]";
  let found: string | undefined;
  session.post('Runtime.evaluate', { expression }, (_, { result }) => {
    session.post('Runtime.getProperties', { objectId: result.objectId! }, (_, { internalProperties }) => {
      const properties = (internalProperties ?? []) as readonly Property[];
      found = properties.find(({ name }) => name === '[[FunctionLocation]]')?.value?.value?.scriptId;
    });
  });
  delete holder[handle];
  return found;
}

/** A class and the file that declares it. */
export interface Declared {
  readonly name: string;
  readonly file: string;
}

/** A class and those that it extends, the nearest first, each with its file; none where this Node has no inspector. */
export function lineageOf(cls: Function): Declared[] {
  const lineage: Declared[] = [];
  for (let at = cls; typeof at === 'function' && at.name !== ''; at = Object.getPrototypeOf(at)) {
    const file = fileOf(at);
    if (file !== undefined) lineage.push({ name: at.name, file });
  }
  return lineage;
}

const library = fileURLToPath(new URL('../../', import.meta.url));

const ofLibrary = new WeakSet<Function>();

/** Marks classes of the library, so that V8 need not be queried. */
export function markLibrary(classes: Iterable<Function>): void {
  for (const cls of classes) ofLibrary.add(cls);
}

/** Whether the library itself declares `cls`. */
export function isOfLibrary(cls: Function): boolean {
  return ofLibrary.has(cls) || fileOf(cls)?.startsWith(library) === true;
}

/** The specifier in documents of a file of the present project; undefined for the library's, and for one of no package. */
export function specifierOfFile(file: string): string | undefined {
  return file.startsWith(library) ? undefined : specifierOf(file, projectOf(process.cwd()));
}

/** As `specifierOfFile`, of the file that declares a class. */
export function specifierOfClass(cls: Function): string | undefined {
  const file = ofLibrary.has(cls) ? undefined : fileOf(cls);
  return file && specifierOfFile(file);
}

/**
 * The module that declares `cls`, as names of classes say it: the room of a class of the library (`layers`); else the file
 * from the working directory, or from the package that it belongs to, without its extension (`experiments/mine`).
 */
export function moduleOf(cls: Function): string | undefined {
  const file = fileOf(cls);
  if (file === undefined) return undefined;
  if (file.startsWith(library)) return file.slice(library.length).split(sep)[0]!;
  const path = relative(process.cwd(), file);
  const inside = path.startsWith('..') ? relative(packageOf(file), file) : path;
  return inside.replace(/\.[cm]?[jt]sx?$/, '').replaceAll(sep, '/');
}

function packageOf(file: string): string {
  for (let directory = dirname(file); ; directory = dirname(directory)) {
    if (existsSync(join(directory, 'package.json')) || directory === dirname(directory)) return directory;
  }
}
