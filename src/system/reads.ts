/** @file Record of a process's reads: files, listed folders, module look-ups, environment variables. */
import childProcess from 'node:child_process';
import fs from 'node:fs';
import Module, { register, syncBuiltinESMExports } from 'node:module';
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import workerThreads, { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';

type Callable = (this: unknown, ...args: unknown[]) => unknown;

/** Runs in the loader's thread: reports the places of module look-ups, and the modules found. */
const moduleHook = `
let port;
export function initialize(given) {
  port = given;
}
export async function resolve(specifier, context, next) {
  if (/^(\\.|\\/|file:)/.test(specifier)) port.postMessage(new URL(specifier, context.parentURL).href);
  const found = await next(specifier, context);
  port.postMessage(found.url);
  return found;
}
`;

/** Functions that list folders. */
const listing = /^(readdir|opendir|cp|glob)/;

const realpath = fs.realpathSync.native;

/** Git reads what a revision says, and no data of the working tree. */
const git = /^(?:\S*\/)?git(?:\s|$)/;
const library = fileURLToPath(new URL('..', import.meta.url));

/** The file, outside of the library, whose code runs at the moment; undefined for the library's own. */
function callingFile(): string | undefined {
  for (const line of (new Error().stack ?? '').split('\n').slice(1)) {
    const [, found] = /((?:file:\/\/)?\/[^()\s]+?)(?:\?[^:()]*)?:\d+:\d+\)?$/.exec(line) ?? [];
    const file = found?.startsWith('file:') ? fileURLToPath(found) : found;
    if (file === undefined || file === fileURLToPath(import.meta.url)) continue;
    return file.startsWith(library) ? undefined : file;
  }
  return undefined;
}

/** A path without symbolic links, as far as it is there. */
function realPath(path: string): string {
  try {
    return realpath(path);
  } catch {
    return path === dirname(path) ? path : join(realPath(dirname(path)), basename(path));
  }
}

/** The argument of a file function, as an absolute path; undefined for descriptors and the like. */
function pathOf(given: unknown): string | undefined {
  if (typeof given === 'string') return resolve(given);
  if (Buffer.isBuffer(given)) return resolve(given.toString());
  return given instanceof URL && given.protocol === 'file:' ? fileURLToPath(given) : undefined;
}

/** `original`, which reports its first argument before it runs. */
function telling(original: Callable, tell: (first: unknown) => void): Callable {
  const told: Callable = function (...args) {
    tell(args[0]);
    return Reflect.apply(original, this, args);
  };
  const properties: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(original);
  if ('native' in properties) properties.native!.value = telling(properties.native!.value, tell);
  return Object.defineProperties(told, properties);
}

/** Wraps the functions of a module to report their first arguments. */
function watch(module: object, tell: (name: string, first: unknown) => void): void {
  for (const [name, value] of Object.entries(module)) {
    if (typeof value !== 'function' || !/^[a-z]/.test(name)) continue;
    Object.assign(module, { [name]: telling(value, (first) => tell(name, first)) });
  }
}

/** Reports the environment variables that are read. */
function watchEnvironment(tell: (name: string) => void): void {
  process.env = new Proxy(process.env, {
    get(env, name) {
      if (typeof name === 'string') tell(name);
      return env[name as string];
    },
    has(env, name) {
      if (typeof name === 'string') tell(name);
      return name in env;
    },
    ownKeys(env) {
      tell('');
      return Reflect.ownKeys(env);
    },
    // The environment takes no descriptors, by which a proxy would set.
    set: (env, name, value) => {
      env[name as string] = value as string;
      return true;
    },
  });
}

/** Reports look-ups of both module loaders; the returned function collects those of the loader's own thread. */
function watchModules(note: (path: string) => void): () => void {
  const { port1, port2 } = new MessageChannel();
  register(`data:text/javascript,${encodeURIComponent(moduleHook)}`, { data: port2, transferList: [port2] });
  const loader = Module as unknown as { _resolveFilename: Callable };
  const find = loader._resolveFilename;
  loader._resolveFilename = function (request, parent, ...rest) {
    const importer = (parent as { filename?: string | null } | null)?.filename;
    const folder = importer == null ? process.cwd() : dirname(importer);
    if (/^[./]/.test(request as string)) note(resolve(folder, request as string));
    const found = Reflect.apply(find, this, [request, parent, ...rest]) as string;
    if (isAbsolute(found)) note(found);
    return found;
  };
  return () => {
    for (let told = receiveMessageOnPort(port1); told; told = receiveMessageOnPort(port1))
      if (told.message.startsWith('file:')) note(fileURLToPath(told.message));
  };
}

/**
 * Records this process's reads from now on, by Node's functions for files and by its module loaders, found or not.
 * Reads of child processes and threads are invisible: after such a start, everything counts as read. Native add-ons
 * are invisible, too.
 *
 * @returns a function that gives the absolute paths since its last call. A path with a trailing slash includes
 * everything below it. `env:NAME` is an environment variable, `env:` all of them. `started:FILE` is a start by the code of a
 * file outside of this library, git's aside.
 */
export function recordReads(): () => string[] {
  const known = new Set<string>();
  let fresh: string[] = [];
  const note = (path: string): void => {
    if (known.has(path)) return;
    known.add(path);
    fresh.push(path);
  };
  const noteFile = (name: string, given: unknown): void => {
    const path = pathOf(given);
    if (path === undefined) return;
    note(path);
    if (listing.test(name)) note(join(path, '/'));
  };
  const noteAll = (program: unknown): void => {
    note('/');
    const file = typeof program === 'string' && git.test(program) ? undefined : callingFile();
    if (file !== undefined) note(`started:${file}`);
  };
  for (const module of [fs, fs.promises]) watch(module, noteFile);
  const { loadEnvFile } = process;
  // Reads a file without any of these functions.
  process.loadEnvFile = telling(loadEnvFile as Callable, (path) =>
    noteFile('loadEnvFile', path ?? '.env'),
  ) as typeof loadEnvFile;
  watch(childProcess, (_, program) => noteAll(program));
  class RecordingWorker extends Worker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      noteAll(undefined);
      super(...args);
    }
  }
  Object.assign(workerThreads, { Worker: RecordingWorker });
  syncBuiltinESMExports();
  watchEnvironment((name) => note(`env:${name}`));
  const takeModules = watchModules(note);
  return () => {
    takeModules();
    const paths = fresh;
    fresh = [];
    known.clear();
    const files = paths.filter(isAbsolute);
    const real = files.map((path) => realPath(path) + (path.endsWith('/') ? sep : ''));
    return [...new Set([...paths, ...real])];
  };
}
