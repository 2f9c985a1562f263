/**
 * @file Views of source files, kept in the cache folder: whoever lists, starts or reviews experiments waits for the
 * TypeScript compiler only where a file has changed.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { explain, readRegularFile } from '../../files/index.js';
import typescript from '../../system/typescript.cjs';
import type { FileEntry, SourceProblem } from './fileEntry.js';
import { parseSource } from './sourceFile.js';

const require = createRequire(import.meta.url);

/** The maps of a view, which JSON has not. */
const maps = ['classes', 'records', 'exports', 'imports', 'reexports', 'lines'] as const;
type MapName = (typeof maps)[number];

/** A view as it is kept. */
type Kept = Omit<FileEntry, MapName> & Record<MapName, [string, never][]>;

/** Limit of kept views: those of a project of a thousand files, and of earlier versions of them. */
const mostViews = 4000;

const digestOf = (...parts: readonly string[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex');
};

/** Where views are kept, and a digest of the code that makes them. */
function openCache(): { readonly folder: string; readonly reader: string } | undefined {
  const own = typescript.ownFolder(process.env);
  if (own === undefined) return undefined;
  const folder = join(own, 'sources');
  const code = ['./readSource', './sourceFile', './classExpressions', './moduleLoads', './sharedState'].map(
    (name) =>
      readFileSync(fileURLToPath(new URL(`${name}${extname(import.meta.url)}`, import.meta.url)), 'utf8'),
  );
  const { version } = require('typescript/package.json') as { version: string };
  const make = () => mkdirSync(folder, { recursive: true, mode: 0o700 });
  // All are made again in less time than it takes to look which of them are old.
  if (make() === undefined && readdirSync(folder).length > mostViews) {
    rmSync(folder, { recursive: true });
    make();
  }
  return { folder, reader: digestOf(version, ...code) };
}

let opened: ReturnType<typeof openCache> | null = null;

/** Opens the cache once; without one, every process parses every file. */
function cache(): ReturnType<typeof openCache> {
  if (opened === null) {
    try {
      opened = openCache();
    } catch {
      opened = undefined;
    }
  }
  return opened;
}

/** The problem of a file that overflows the parser's stack. */
export const tooDeep = 'It is nested too deeply.';

/** Most bytes of a source file. */
const longest = 16_000_000;

/** The view of a file with this text. @throws RangeError where it is nested too deeply. */
function viewOf(path: string, text: string): FileEntry {
  const place = cache();
  if (place === undefined) return parseSource(path, text);
  const file = join(place.folder, `${digestOf(place.reader, extname(path), text)}.json`);
  try {
    const [digest, json] = readFileSync(file, 'utf8').split('\n', 2) as [string, string];
    if (digest !== digestOf(json)) throw new Error('damaged');
    const { problem, ...kept } = JSON.parse(json) as Kept;
    const ofMaps = maps.map((name) => [name, new Map(kept[name])]);
    return {
      ...kept,
      ...(Object.fromEntries(ofMaps) as Pick<FileEntry, MapName>),
      problem: problem && { ...problem, file: path },
    };
  } catch {
    // Missing or damaged.
  }
  const entry = parseSource(path, text);
  try {
    const ofMaps = maps.map((name) => [name, [...entry[name]]]);
    const part = `${file}.${process.pid}`;
    const json = JSON.stringify({ ...entry, ...Object.fromEntries(ofMaps) });
    writeFileSync(part, `${digestOf(json)}\n${json}`);
    renameSync(part, file);
  } catch {
    // The next process parses it again.
  }
  return entry;
}

/** A file of which nothing is known. */
function unread(problem: SourceProblem): FileEntry {
  const nothing = new Map<string, never>();
  return {
    ...{ classes: nothing, records: nothing, exports: nothing, imports: nothing, reexports: nothing },
    ...{ lines: nothing, stars: [], others: [], problem, changesOthers: false },
    loads: { specifiers: [], unfollowed: [{ line: 1, what: 'cannot be read' }] },
  };
}

/** Reads a file, of whose last text the view is kept. One that cannot be read declares nothing. */
export function readSourceFile(path: string): FileEntry {
  try {
    const text = readRegularFile(path, longest).toString();
    return viewOf(path, text);
  } catch (error) {
    // The parser descends as deeply as the text is nested.
    const message = error instanceof RangeError ? tooDeep : `${explain(error)}.`;
    return unread({ file: path, message });
  }
}
