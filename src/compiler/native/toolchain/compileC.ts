/** @file Compilation of a program's C source to a shared library in the cache. */
import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { baseFlags, linkFlags, machineFlags } from './compilerFlags.js';
import type { Toolchain } from './index.js';
import type { Entry, Wanted } from './programCache.js';
import { compile } from './runCompiler.js';
import { runtimeFolder } from './runtimeLibrary.js';

/** Vectorisation as at -O3, without the passes that take most of its time. */
const optimization = ['-O2', '-ftree-vectorize'];

/** Compiler flags of a program for this CPU. @param defines macros defined as 1. @param machine the CPU's own flags. */
export const programFlags = (
  cpu: string,
  defines: readonly string[] = [],
  machine: readonly string[] = machineFlags(cpu),
): string[] => [...baseFlags, ...optimization, ...machine, ...defines.map((name) => `-D${name}=1`)];

/** Flags of a program in a toolchain: LUTHIER_CFLAGS has the last word. */
export const toolchainFlags = ({ cpu, env }: Toolchain, defines?: readonly string[]): string[] => [
  ...programFlags(cpu, defines),
  ...(env.LUTHIER_CFLAGS ?? '').split(/\s+/).filter(Boolean),
];

/** Options of compiling a program. */
export interface ProgramOptions {
  /** Name in messages and in the list of the cache. */
  readonly name: string;
  /** Macros defined as 1. */
  readonly defines?: readonly string[];
  /** Macros that each select one section of the source; those of large programs are compiled in parallel. */
  readonly sections?: readonly string[];
}

const SOURCE = 'program.c';

/** Smallest source, in characters, worth two compiler processes. Split, lm.Small's C takes 0.40 s instead of 0.76. */
const worthSections = 20_000;

/** The sections to compile separately; none where the source is compiled as a whole. */
function sectionsOf(source: string, { sections = [] }: ProgramOptions): readonly string[] {
  return source.length > worthSections && availableParallelism() > 1 ? sections : [];
}

/** Waits for all before throwing the first failure, since their folder is removed then. */
async function allOf(works: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(works)) if (result.status === 'rejected') throw result.reason;
}

/**
 * A program's library, from the cache or newly compiled.
 *
 * @param source C that includes luthier.h.
 * @throws CompilerError with the first lines of the compiler's message and the path of its log.
 */
export async function compileC(
  toolchain: Toolchain,
  source: string,
  options: ProgramOptions,
): Promise<Entry> {
  const { compiler, cache, runtime, env } = toolchain;
  const flags = toolchainFlags(toolchain, options.defines);
  const wanted: Wanted = {
    kind: 'program',
    name: options.name,
    compiler: compiler.version,
    // The name of the runtime's folder is a hash of its sources and the CPU.
    dependencies: [basename(runtime.folder), source, ...flags],
  };
  return cache.entry(wanted, async (folder) => {
    writeFileSync(join(folder, SOURCE), source);
    const build = { compiler, env, name: options.name, folder, log: cache.failed(wanted) };
    const common = [...flags, '-I', runtimeFolder];
    const sections = sectionsOf(source, options);
    const objects = sections.map((name) => `${name}.o`);
    await allOf(
      sections.map((name, i) => compile(build, [...common, `-D${name}`, '-c', SOURCE, '-o', objects[i]!])),
    );
    const library = cache.libraryName(wanted);
    await compile(build, [
      ...common,
      ...linkFlags(library, [`../${basename(runtime.folder)}`]),
      ...(sections.length === 0 ? [SOURCE] : objects),
      ...['-o', library, runtime.library, '-lm'],
    ]);
    for (const file of objects) rmSync(join(folder, file));
  });
}
