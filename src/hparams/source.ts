/** @file Where in the user's code a config was written, found cheaply and formatted late. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A line of code, the file relative to the working directory. */
export interface Place {
  file: string;
  line: number;
  column: number;
  functionName: string | undefined;
}

/** A captured stack: the text is only made when it is asked for, for that is the dear part. */
export interface Trace {
  readonly stack?: string;
}

// Enough for the frames of this library that a write passes through, and the caller's behind them.
const frameLimit = 10;
const ownDirectory = fileURLToPath(new URL('.', import.meta.url));
const frame = /^\s*at (?:async )?(?:(.*?) \()?((?:file:\/\/|[A-Za-z]:[\\/]|\/|\.)?[^()]*?):(\d+):(\d+)\)?$/;

/** Remembers the present stack without formatting it; fewer frames are cheaper. */
export function captureTrace(frames = frameLimit): Trace {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = frames;
  const trace = new Error();
  Error.stackTraceLimit = limit;
  return trace;
}

/** The first frame of `trace` outside this library, or undefined where there is none. */
export function placeOf(trace: Trace): Place | undefined {
  for (const text of (trace.stack ?? '').split('\n')) {
    const match = frame.exec(text);
    if (match === null) continue;
    const file = plainPath(match[2]!);
    if (file === undefined || isLibraryFile(file)) continue;
    return { file: shorten(file), line: Number(match[3]), column: Number(match[4]), functionName: match[1] };
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
  return file.startsWith(ownDirectory) || /[\\/]node_modules[\\/](immer|zod)[\\/]/.test(file);
}

function shorten(file: string): string {
  const short = relative(process.cwd(), file);
  return short === '' || short.startsWith('..') ? file : short.replaceAll('\\', '/');
}
