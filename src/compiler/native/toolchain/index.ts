/** @file The native toolchain: a compiler, the CPU, the cache and the compiled runtime; or why there is none. */
import { CompilerError } from '../../tensors.js';
import { reserveThreads } from '../library.js';
import { type CCompiler, findCompiler, installHint, type Missing } from './compiler.js';
import { cpuFeatures } from './cpuFeatures.js';
import { InterruptedBuild } from './interrupted.js';
import { Cache, type Entry } from './programCache.js';
import { runtimeLibrary } from './runtimeLibrary.js';

export type { Missing } from './compiler.js';

/** All that compiling a program takes. */
export interface Toolchain {
  readonly compiler: CCompiler;
  /** What the CPU can do. */
  readonly cpu: string;
  readonly cache: Cache;
  readonly runtime: Entry;
  /** What the compiler is started with. */
  readonly env: NodeJS.ProcessEnv;
}

/** Toolchains by what of the environment they depend on. */
const opened = new Map<string, Promise<Toolchain | Missing>>();
const variables = ['CC', 'PATH', 'XDG_CACHE_HOME', 'HOME', 'LUTHIER_CACHE_MB'];

/**
 * Looks for a compiler, and compiles the runtime where the cache has none for it, which takes seconds. What was found
 * stays for the life of the process.
 *
 * @returns the toolchain, or a sentence that says why there is none and what would help.
 */
export function openToolchain(env: NodeJS.ProcessEnv = process.env): Promise<Toolchain | Missing> {
  const key = JSON.stringify(variables.map((name) => env[name] ?? null));
  let toolchain = opened.get(key);
  if (toolchain === undefined) {
    toolchain = open({ ...env });
    opened.set(key, toolchain);
  }
  return toolchain;
}

async function open(env: NodeJS.ProcessEnv): Promise<Toolchain | Missing> {
  if (process.platform === 'win32') return { reason: 'The native engine runs on Linux and macOS.' };
  const compiler = await findCompiler(env);
  if ('reason' in compiler) return compiler;
  try {
    const cache = Cache.open(env);
    const cpu = await cpuFeatures();
    const build = { compiler, env, name: 'The native runtime' };
    const runtime = await runtimeLibrary(build, cache, cpu).catch(withoutRuntime);
    if ('reason' in runtime) return runtime;
    // Whether koffi is there, and whether the folder is on a disk that code may be loaded from.
    await reserveThreads(runtime.library, 1);
    return { compiler, cpu, cache, runtime, env };
  } catch (error) {
    // Whatever the system refuses, the other engines run without it.
    const { code, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof CompilerError) && code === undefined) throw error;
    return { reason: message };
  }
}

/** A compiler that fails at files that are known to be right is one to be replaced: the log is for those who wonder. */
function withoutRuntime(error: unknown): Missing {
  if (!(error instanceof CompilerError)) throw error;
  if (error instanceof InterruptedBuild) return { reason: error.message };
  const lines = error.message.split('\n');
  const said = lines.length > 3 ? [lines[0], lines[1], lines.at(-1)] : lines;
  return { reason: [...said, installHint()].join(' ') };
}
