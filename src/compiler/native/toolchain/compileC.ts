/** @file Compilation of a program's C source to a shared library in the cache. */
import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { baseFlags, linkFlags, machineFlags } from './compilerFlags.js';
import type { Toolchain } from './index.js';
import type { Entry, Wanted } from './programCache.js';
import { compile } from './runCompiler.js';
import { runtimeFolder } from './runtimeLibrary.js';

/** Vectors as at -O3, without what takes its time to compile. */
const optimization = ['-O2', '-ftree-vectorize'];

/** What a program is compiled with on this CPU. @param defines macros that are defined as 1. */
export const programFlags = (cpu: string, defines: readonly string[] = []): string[] => [
  ...baseFlags,
  ...optimization,
  ...machineFlags(cpu),
  ...defines.map((name) => `-D${name}=1`),
];

/** How a program is compiled. */
export interface ProgramOptions {
  /** For messages and for the list of the cache. */
  readonly name: string;
  /** Macros that are defined as 1. */
  readonly defines?: readonly string[];
  /** Macros of which each leaves one part of the source: those of a large one are compiled at the same time. */
  readonly parts?: readonly string[];
}

const SOURCE = 'program.c';

/** Less is compiled about as fast as another compiler starts. In parts, the C of lm.Small takes 0.40 s and not 0.76. */
const worthParts = 20_000;

/** The parts that are compiled by themselves; none where the source is compiled as a whole. */
function partsOf(source: string, { parts = [] }: ProgramOptions): readonly string[] {
  return source.length > worthParts && availableParallelism() > 1 ? parts : [];
}

/** Waits for all before it tells what went wrong: what they work in is put away then. */
async function allOf(works: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(works)) if (result.status === 'rejected') throw result.reason;
}

/**
 * The library of a program, from the cache or compiled now.
 *
 * @param source C that includes luthier.h.
 * @throws CompilerError with the first lines of the compiler's message and the place of its log.
 */
export async function compileC(
  toolchain: Toolchain,
  source: string,
  options: ProgramOptions,
): Promise<Entry> {
  const { compiler, cpu, cache, runtime, env } = toolchain;
  const flags = programFlags(cpu, options.defines);
  const wanted: Wanted = {
    kind: 'program',
    name: options.name,
    compiler: compiler.version,
    // The runtime's folder is named by the hash of its sources, and of the CPU.
    parts: [basename(runtime.folder), source, ...flags],
  };
  return cache.entry(wanted, async (folder) => {
    writeFileSync(join(folder, SOURCE), source);
    const build = { compiler, env, name: options.name, folder, log: cache.failed(wanted) };
    const common = [...flags, '-I', runtimeFolder];
    const parts = partsOf(source, options);
    const objects = parts.map((name) => `${name}.o`);
    await allOf(
      parts.map((name, i) => compile(build, [...common, `-D${name}`, '-c', SOURCE, '-o', objects[i]!])),
    );
    const library = cache.libraryName(wanted);
    await compile(build, [
      ...common,
      ...linkFlags(library, [`../${basename(runtime.folder)}`]),
      ...(parts.length === 0 ? [SOURCE] : objects),
      ...['-o', library, runtime.library, '-lm'],
    ]);
    for (const file of objects) rmSync(join(folder, file));
  });
}
