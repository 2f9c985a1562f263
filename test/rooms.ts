/**
 * @file Bundles of the rooms of src, for the processes that tests start: a process that loads 30 modules starts in half
 * the time of one that loads 400. What a room's own files import from each other is joined; what other rooms import of it
 * stays a module of its own, and each module keeps its room as its folder, for that is how classes are named.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type BuildOptions, build, type OutputFile, type Plugin } from 'esbuild';
import { globSync } from 'tinyglobby';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the bundles of this run. */
    readonly rooms: string;
  }
}

/** The sources. */
export const source = fileURLToPath(new URL('../src/', import.meta.url));
/** Where bundles are kept. */
export const kept = fileURLToPath(new URL('../out/rooms/', import.meta.url));

const roomOf = (file: string): string => relative(source, file).split(sep)[0]!;

/** The files of rooms that files of other rooms import. */
function entriesOf(texts: ReadonlyMap<string, string>): Set<string> {
  const imported = /^(?:import|export)(?! type\b)[^;]*?from '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm;
  const entries = new Set<string>();
  for (const [file, text] of texts) {
    for (const [, fixed, late] of text.matchAll(imported)) {
      const target = join(dirname(file), (fixed ?? late)!).replace(/js$/, 'ts');
      if (roomOf(target) !== roomOf(file) && texts.has(target)) entries.add(target);
    }
  }
  return entries;
}

/** Packages of many modules that one room imports, for their functions alone: they become a part of it. */
export const joined =
  /^(@uwdata\/flechette|csv-parse|fzstd|hyparquet|hyparquet-compressors|hysnappy|tinyglobby|fdir|picomatch)(\/|$)/;

/** The text of a source that knows where it is, whatever becomes of it. */
export const textOf = (path: string): string =>
  readFileSync(path, 'utf8').replace(/\bimport\.meta\.url\b/g, JSON.stringify(pathToFileURL(path).href));

/** How sources are compiled. */
export const common = {
  format: 'esm',
  platform: 'node',
  target: 'node20',
  keepNames: true,
  minifyWhitespace: true,
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: true, verbatimModuleSyntax: true } },
} as const satisfies BuildOptions;

/** Leaves other rooms alone, and tells modules where their sources are. */
const borders: Plugin = {
  name: 'rooms',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\./ }, ({ path, resolveDir, importer }) => {
      const target = join(resolveDir, path);
      if (importer === '' || !importer.startsWith(source) || roomOf(target) === roomOf(importer))
        return undefined;
      return { path: pathToFileURL(target).href, external: true };
    });
    onResolve({ filter: /^[^./]/ }, ({ path }) => (joined.test(path) ? undefined : { external: true }));
    onLoad({ filter: /\.ts$/ }, ({ path }) => ({ contents: textOf(path), loader: 'ts' }));
  },
};

/** A file of a bundle. */
type Bundled = Pick<OutputFile, 'path' | 'text'>;

/** zod is a hundred modules. */
async function bundledZod(): Promise<Bundled[]> {
  const { outputFiles } = await build({
    stdin: { contents: "export * from 'zod'; export { default } from 'zod';", resolveDir: source },
    outfile: join(source, 'zod.js'),
    bundle: true,
    write: false,
    minifyWhitespace: true,
    format: 'esm',
    platform: 'node',
  });
  return outputFiles;
}

async function bundled(room: string, entries: string[], mapped: boolean): Promise<Bundled[]> {
  const { outputFiles } = await build({
    ...common,
    entryPoints: entries,
    outbase: source,
    outdir: source,
    chunkNames: `${room}/[name]-[hash]`,
    bundle: true,
    splitting: true,
    write: false,
    sourcemap: mapped && 'inline',
    sourcesContent: false,
    plugins: [borders],
  });
  return outputFiles;
}

/** The package that is bundled beside the rooms. */
const zodVersion = readFileSync(createRequire(import.meta.url).resolve('zod/package.json'), 'utf8');

/** What the bundles of a room, or of all, are made of. */
export function digestOf(mapped: boolean, texts: Iterable<readonly [file: string, text: string]>): string {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)));
  hash.update(String(mapped));
  for (const [file, text] of texts) hash.update(`${file}\0${text}\0`);
  return hash.digest('hex');
}

/** Writes to another name first: another run may bundle at the same time. */
export function place(path: string, write: (path: string) => void): void {
  const part = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true });
  write(part);
  try {
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { recursive: true });
    if (!existsSync(path)) throw error;
  }
}

/** The bundle that was made of the same files, or a new one. */
async function keptBundle(digest: string, make: () => Promise<Bundled[]>): Promise<Bundled[]> {
  const file = join(kept, 'parts', digest);
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Bundled[];
  const made = (await make()).map(({ path, text }) => ({ path, text }));
  place(file, (part) => writeFileSync(part, JSON.stringify(made)));
  return made;
}

/** All sources, by their paths. */
export function sourceTexts(): Map<string, string> {
  const files = globSync('**/*.ts', { cwd: source, absolute: true }).sort();
  return new Map(files.map((file) => [join(file), readFileSync(file, 'utf8')]));
}

/** Bundles the rooms as they are now, unless they have been bundled before. Gives the folder. */
async function bundleRooms(mapped: boolean): Promise<string> {
  const texts = sourceTexts();
  const folder = join(kept, 'whole', digestOf(mapped, texts));
  if (existsSync(folder)) return folder;
  const entries = new Map<string, string[]>();
  for (const file of entriesOf(texts)) {
    const room = roomOf(file);
    // Reviews start processes by a file of their own, which records the files that it loads.
    if (!room.endsWith('.ts') && room !== 'review') entries.set(room, [...(entries.get(room) ?? []), file]);
  }
  const rooms = [...entries].map(([room, ofRoom]) => {
    const within = [...texts].filter(([file]) => roomOf(file) === room);
    const digest = digestOf(mapped, [...within, ['entries', ofRoom.toSorted().join()]]);
    return keptBundle(digest, () => bundled(room, ofRoom, mapped));
  });
  const outputs = await Promise.all([
    ...rooms,
    keptBundle(digestOf(false, [['zod', zodVersion]]), bundledZod),
  ]);
  place(folder, (part) => {
    for (const { path, text } of outputs.flat()) {
      const file = join(part, relative(source, path));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  });
  return folder;
}

/** Once before the first test, and before each run of those that are watched. */
export default async function provideRooms(project: TestProject): Promise<void> {
  // Reviews name places in the sources. Maps take a sixth of the time in which a process starts.
  const mapped = project.config.env.LONG !== undefined;
  const provide = async (): Promise<void> => project.provide('rooms', await bundleRooms(mapped));
  project.onTestsRerun(provide);
  await provide();
}
