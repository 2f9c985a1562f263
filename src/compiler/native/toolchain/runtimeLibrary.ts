/** @file The native runtime as a shared library, compiled once per machine from its C sources. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseFlags, linkFlags, machineFlags } from './compilerFlags.js';
import type { Cache, Entry, Wanted } from './programCache.js';
import { type Build, compile } from './runCompiler.js';

/** Folder of the runtime's sources, and of `luthier.h` for programs. */
export const runtimeFolder = fileURLToPath(new URL('../runtime', import.meta.url));

/** Parallel compiler processes; each takes up to 300 MB. */
const parallel = Math.min(2, availableParallelism());

/** A source file of the runtime. */
interface Source {
  readonly file: string;
  readonly text: string;
  /** Flags besides the common ones: the file's own, or the machine's. */
  readonly flags: readonly string[];
  /**
   * Whether the file needs instructions that not every compiler or architecture has; skipped where it doesn't compile.
   */
  readonly optional: boolean;
}

/** Flags in the comment `flags:` on a file's second line; `machine` stands for the flags of this machine. */
export function ownFlags(text: string): string[] | undefined {
  const line = text.split('\n', 2)[1] ?? '';
  return /^\/\* flags: (.*?) *\*\/$/.exec(line)?.[1]?.split(/\s+/);
}

/** A file's flags besides the common ones. */
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

/** Macro that tells other files that this one is present: LT_HAVE_GEMMAVX2 for `gemmAvx2.c`. */
const havingFlag = ({ file }: Source): string =>
  `-DLT_HAVE_${file.replace(/\.c$/, '').replace(/\W/g, '_').toUpperCase()}`;

/** Maps items concurrently, `parallel` at a time; results keep the order of the items. */
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
 * The runtime's library, from the cache or newly compiled, which takes seconds.
 *
 * @throws CompilerError with the compiler's message where a required file does not compile.
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
    dependencies: [
      cpu,
      ...common,
      ...machine,
      ...headers,
      ...sources.flatMap(({ file, text }) => [file, text]),
    ],
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
