/** @file Source positions of writes, captured cheaply and formatted on demand. */
import { dirname, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from './errors.js';

/** A line of code, the file relative to the working directory. */
export interface Place {
  file: string;
  line: number;
  column: number;
  functionName: string | undefined;
}

/** A captured stack: its text, the expensive part, is made on first use. */
export interface Trace {
  readonly stack?: string;
}

// Enough for the frames of this library that a write passes through, and the caller's behind them.
const frameLimit = 10;
const ownUrl = new URL('.', import.meta.url);
const frame = /^\s*at (?:async )?(?:(.*?) \()?((?:file:\/\/|[A-Za-z]:[\\/]|\/|\.)?[^()]*?):(\d+):(\d+)\)?$/;

/** Remembers the present stack without formatting it; fewer frames are cheaper. */
export function captureTrace(frames = frameLimit): Trace {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = frames;
  const trace = new Error();
  Error.stackTraceLimit = limit;
  return trace;
}

// With source maps, frames name the sources instead of the running files.
const ownDirectories = new Set([fileURLToPath(ownUrl), ownDirectoryInStack()]);

function ownDirectoryInStack(): string {
  const match = frame.exec(captureTrace(1).stack?.split('\n')[1] ?? '');
  return dirname(plainPath(match?.[2] ?? '') ?? '') + sep;
}

const excluded = new Set<string>();

/**
 * Skips frames of files that end with `file` when the place of a write is recorded, so that a module of helpers
 * attributes its writes to its callers. `file` is the end of a path, or the module's `import.meta.url`.
 *
 * Returns a function that ends this.
 */
export function excludeFromPlaces(file: string): () => void {
  const path = plainPath(file);
  if (path === undefined || path === '') {
    throw new ConfigError(`excludeFromPlaces() takes the end of a file's path, or its URL, got '${file}'.`);
  }
  excluded.add(path);
  return () => {
    excluded.delete(path);
  };
}

/** The first frame of `trace` outside this library, or undefined if there is none. */
export function placeOf(trace: Trace): Place | undefined {
  const place = absolutePlaceOf(trace);
  return place && { ...place, file: shorten(place.file) };
}

/** The file of that frame, as an absolute path. */
export function fileOfTrace(trace: Trace): string | undefined {
  return absolutePlaceOf(trace)?.file;
}

function absolutePlaceOf(trace: Trace): Place | undefined {
  for (const text of (trace.stack ?? '').split('\n')) {
    const match = frame.exec(text);
    if (match === null) continue;
    const file = plainPath(match[2]!);
    if (file === undefined || isLibraryFile(file)) continue;
    return { file, line: Number(match[3]), column: Number(match[4]), functionName: match[1] };
  }
  return undefined;
}

/** `file:line` of the caller, or undefined. */
export function placeText(trace: Trace): string | undefined {
  const place = placeOf(trace);
  return place && `${place.file}:${place.line}`;
}

function plainPath(file: string): string | undefined {
  if (file.startsWith('node:') || file === '<anonymous>' || file === 'native') return undefined;
  const withoutQuery = file.replace(/\?.*$/, '');
  if (!withoutQuery.startsWith('file://')) return withoutQuery;
  try {
    return fileURLToPath(withoutQuery);
  } catch {
    return undefined;
  }
}

function isLibraryFile(file: string): boolean {
  for (const directory of ownDirectories) if (file.startsWith(directory)) return true;
  for (const end of excluded) if (file.endsWith(end)) return true;
  return /[\\/]node_modules[\\/](immer|zod)[\\/]/.test(file);
}

function shorten(file: string): string {
  const short = relative(process.cwd(), file);
  return short === '' || short.startsWith('..') ? file : short.replaceAll('\\', '/');
}
