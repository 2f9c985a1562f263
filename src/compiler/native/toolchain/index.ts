/** @file The native toolchain: compiler, CPU, cache and compiled runtime, or the reason for its absence. */
import { CompilerError } from '../../program/tensors.js';
import { reserveThreads } from '../library.js';
import { type CCompiler, findCompiler, installHint, type Missing } from './compiler.js';
import { cpuFeatures } from './cpuFeatures.js';
import { InterruptedBuild } from './interrupted.js';
import { Cache, type Entry } from './programCache.js';
import { runtimeLibrary } from './runtimeLibrary.js';

export type { Missing } from './compiler.js';

/** Everything needed to compile a program. */
export interface Toolchain {
  readonly compiler: CCompiler;
  /** CPU model and extensions. */
  readonly cpu: string;
  readonly cache: Cache;
  readonly runtime: Entry;
  /** Environment of the compiler's processes. */
  readonly env: NodeJS.ProcessEnv;
}

/** Toolchains by the environment variables that they depend on. */
const opened = new Map<string, Promise<Toolchain | Missing>>();
const variables = ['CC', 'PATH', 'XDG_CACHE_HOME', 'HOME', 'LUTHIER_CACHE_MB', 'LUTHIER_CFLAGS'];

/**
 * Finds a compiler, and compiles the runtime if the cache has none for it, which takes seconds. The result is kept for
 * the life of the process.
 *
 * @returns the toolchain, or a sentence that says why there is none and how to fix that.
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

/** A sentence that says why this system cannot run machine code, whatever its compiler. */
export function whyUnsupported(
  platform: string = process.platform,
  arch: string = process.arch,
): string | undefined {
  if (platform === 'win32') return 'The native engine runs on Linux and macOS, and this is Windows.';
  if (/^(arm|ia32|mips|mipsel|ppc|s390)$/.test(arch))
    return `The native engine runs on 64-bit processors, such as x64 and arm64, and this is ${arch}.`;
  return undefined;
}

async function open(env: NodeJS.ProcessEnv): Promise<Toolchain | Missing> {
  const unsupported = whyUnsupported();
  if (unsupported !== undefined) return { reason: unsupported };
  const compiler = await findCompiler(env);
  if ('reason' in compiler) return compiler;
  try {
    const cache = Cache.open(env);
    const cpu = await cpuFeatures();
    const build = { compiler, env, name: 'The native runtime' };
    const runtime = await runtimeLibrary(build, cache, cpu).catch(withoutRuntime);
    if ('reason' in runtime) return runtime;
    // Checks that koffi is installed, and that the folder's disk allows loading code.
    await reserveThreads(runtime.library, 1);
    return { compiler, cpu, cache, runtime, env };
  } catch (error) {
    // Whatever the system refuses, other engines run without the toolchain.
    const { code, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof CompilerError) && code === undefined) throw error;
    return { reason: message };
  }
}

/** The compiler failed on files known to be correct: recommends another one, and keeps the log for inspection. */
function withoutRuntime(error: unknown): Missing {
  if (!(error instanceof CompilerError)) throw error;
  if (error instanceof InterruptedBuild) return { reason: error.message };
  const lines = error.message.split('\n');
  const said = lines.length > 3 ? [lines[0], lines[1], lines.at(-1)] : lines;
  return { reason: [...said, installHint()].join(' ') };
}

export { type CachedEntry, dropEntry, listEntries, removeLeftovers } from './cacheEntries.js';
export { cacheLimit, cachePath, checkFolder, makeFolder } from './cacheFolder.js';
