/** @file The native runtime as a shared library, compiled once a machine from the C files beside this folder. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseFlags, linkFlags, machineFlags } from './compilerFlags.js';
import type { Cache, Entry, Wanted } from './programCache.js';
import { type Build, compile } from './runCompiler.js';

/** Where the runtime's sources are, and `luthier.h` for programs. */
export const runtimeFolder = fileURLToPath(new URL('../runtime', import.meta.url));

/** Compilers that work at the same time; each takes up to 300 MB. */
const parallel = Math.min(2, availableParallelism());

/** One file of the runtime. */
interface Source {
  readonly file: string;
  readonly text: string;
  /** What it is compiled with besides the common flags: its own, or those for this machine. */
  readonly flags: readonly string[];
  /** Made for instructions that not every compiler or architecture has: left out where it doesn't compile. */
  readonly optional: boolean;
}

/** The flags that a file's second line names, a comment that begins with `flags:`; `machine` are those for this machine. */
export function ownFlags(text: string): string[] | undefined {
  const line = text.split('\n', 2)[1] ?? '';
  return /^\/\* flags: (.*?) *\*\/$/.exec(line)?.[1]?.split(/\s+/);
}

/** What a file is compiled with besides the common flags. */
export function fileFlags(own: readonly string[] | undefined, machine: readonly string[]): readonly string[] {
  return own?.flatMap((flag) => (flag === 'machine' ? machine : [flag])) ?? machine;
}

function readSources(folder: string, machine: readonly string[]): { sources: Source[]; headers: string[] } {
  const names = readdirSync(folder).sort();
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  const sources = names
    .filter((name) => name.endsWith('.c'))
    .map((file) => {
      const text = read(file);
      const own = ownFlags(text);
      const optional = own?.some((flag) => flag.startsWith('-m')) ?? false;
      return { file, text, flags: fileFlags(own, machine), optional };
    });
  const headers = names.filter((name) => name.endsWith('.h')).flatMap((name) => [name, read(name)]);
  return { sources, headers };
}

/** What tells the others that a file is there: `gemmAvx2.c` gives LT_HAVE_GEMMAVX2. */
const havingFlag = ({ file }: Source): string =>
  `-DLT_HAVE_${file.replace(/\.c$/, '').replace(/\W/g, '_').toUpperCase()}`;

/** Runs `work` on all items, `parallel` at a time; results in the order of the items. */
async function eachOf<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at]!);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}

/**
 * The runtime's library, from the cache or compiled now, which takes seconds.
 *
 * @throws CompilerError with the compiler's message where a file that every machine needs does not compile.
 */
export async function runtimeLibrary(
  build: Omit<Build, 'folder' | 'log'>,
  cache: Cache,
  cpu: string,
  folder = runtimeFolder,
): Promise<Entry> {
  const machine = machineFlags(cpu);
  const { sources, headers } = readSources(folder, machine);
  const common = [...baseFlags, '-O3'];
  const wanted: Wanted = {
    kind: 'runtime',
    name: 'native runtime',
    compiler: build.compiler.version,
    parts: [cpu, ...common, ...machine, ...headers, ...sources.flatMap(({ file, text }) => [file, text])],
  };
  return cache.entry(wanted, async (made) => {
    const step: Build = { ...build, folder: made, log: cache.failed(wanted) };
    const object = ({ file }: Source): string => file.replace(/\.c$/, '.o');
    const compileOne = (source: Source, more: readonly string[] = []): Promise<boolean> => {
      const flags = [...common, ...source.flags, ...more, '-I', folder];
      return compile(step, [...flags, '-c', join(folder, source.file), '-o', object(source)], source);
    };
    const variants = sources.filter(({ optional }) => optional);
    const compiled = await eachOf(variants, (source) => compileOne(source));
    const kept = variants.filter((_, i) => compiled[i]);
    const rest = sources.filter(({ optional }) => !optional);
    await eachOf(rest, (source) => compileOne(source, kept.map(havingFlag)));
    const library = cache.libraryName(wanted);
    const objects = [...kept, ...rest].map(object);
    await compile(step, [...linkFlags(library), ...objects, '-o', library, '-lpthread', '-ldl', '-lm']);
    for (const file of objects) rmSync(join(made, file), { force: true });
  });
}
