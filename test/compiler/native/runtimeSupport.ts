/** @file Checks written in C, built from the runtime's sources as the toolchain builds them. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseFlags, machineFlags } from '../../../src/compiler/native/toolchain/compilerFlags.js';
import { cpuFeatures } from '../../../src/compiler/native/toolchain/cpuFeatures.js';
import { openToolchain } from '../../../src/compiler/native/toolchain/index.js';
import { fileFlags, ownFlags } from '../../../src/compiler/native/toolchain/runtimeLibrary.js';
import { tries } from '../../faults/campaign.js';
import { compilerPath, execute, hasSanitizer, runtimeSources } from './compilerSupport.js';

const strict = ['-Wall', '-Wextra', '-Werror'];

/** The flags that a file asks for, and whether they are instructions, which not every compiler knows. */
function asked(file: string): { own: readonly string[] | undefined; optional: boolean } {
  const own = ownFlags(readFileSync(file, 'utf8'));
  return { own, optional: own?.some((flag) => flag.startsWith('-m')) ?? false };
}

/** What checks are built for. */
export interface Target {
  /** The compiler's path. */
  readonly compiler: string;
  /** Instructions that files without flags of their own may use. */
  readonly machine: readonly string[];
  /** Flags of the runtime's files, after all others, and of linking. */
  readonly flags: readonly string[];
}

/**
 * This machine, under the sanitizers of addresses and of undefined behaviour where it has them.
 *
 * @param machine whether files without flags of their own may use all of this CPU's instructions, as they do in use.
 */
export async function thisMachine(machine: boolean, folder: string): Promise<Target> {
  const sanitized = (await hasSanitizer('address,undefined', folder))
    ? ['-O1', '-g1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
    : ['-O2'];
  const instructions = machine ? machineFlags(await cpuFeatures()) : [];
  return { compiler: compilerPath(), machine: instructions, flags: sanitized };
}

/** Compiles one file, with its own flags after the others; false where the compiler lacks them. */
async function compileFile(
  { compiler, machine, flags }: Target,
  file: string,
  object: string,
  more: readonly string[] = [],
): Promise<boolean> {
  const { own, optional } = asked(file);
  const args = [...baseFlags, ...strict, '-O3', ...fileFlags(own, machine), ...flags, ...more];
  try {
    await execute(compiler, [...args, '-I', runtimeSources, '-c', file, '-o', object]);
    return true;
  } catch (error) {
    if (optional && /unrecognized|unknown|unsupported|bad value/.test(`${error}`)) return false;
    throw error;
  }
}

/** Maps items, two at a time: each is a process of the compiler. */
async function inPairs<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let i = 0; i < items.length; i += 2)
    results.push(...(await Promise.all(items.slice(i, i + 2).map(work))));
  return results;
}

/**
 * Compiles the runtime's files whose names match; a warning is an error.
 *
 * @returns the paths of the objects.
 */
export async function buildRuntime(sources: RegExp, target: Target, folder: string): Promise<string[]> {
  const files = readdirSync(runtimeSources)
    .filter((file) => file.endsWith('.c') && sources.test(file))
    .map((file) => join(runtimeSources, file));
  const object = (file: string): string => join(folder, `${basename(file)}.o`);
  const special = files.filter((file) => asked(file).optional);
  const built = await inPairs(special, (file) => compileFile(target, file, object(file)));
  const kept = special.filter((_, i) => built[i]);
  const having = kept.map((file) => `-DLT_HAVE_${basename(file, '.c').toUpperCase()}`);
  const rest = files.filter((file) => !special.includes(file));
  await inPairs(rest, (file) => compileFile(target, file, object(file), having));
  return [...kept, ...rest].map(object);
}

/**
 * Builds programs, one of each check, of the runtime's files whose names match. The checks themselves are optimised:
 * their loops take most of the time, and the sanitizers of the runtime's files watch the heap for them anyway.
 *
 * @returns the programs' paths.
 */
export async function buildChecks(
  checks: readonly string[],
  sources: RegExp,
  target: Target,
  folder: string,
): Promise<string[]> {
  const runtime = await buildRuntime(sources, target, folder);
  return inPairs(checks, (check) => buildCheck(check, runtime, target, folder));
}

/** One in so many cases is for every day. */
const DAILY_SHARE = 4;
/** Of those under sanitizers. */
const SANITIZED_SHARE = tries(1, DAILY_SHARE);

/**
 * Builds programs, one of each check, with the runtime as programs of users have it. Its memory is watched by guard pages,
 * and there are fewer cases.
 *
 * @returns the programs' paths.
 */
export async function buildGuarded(checks: readonly string[], folder: string): Promise<string[]> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) throw new Error(toolchain.reason);
  const { library } = toolchain.runtime;
  const guards = fileURLToPath(new URL('runtime/guardedMemory.h', import.meta.url));
  const flags = [...baseFlags, ...strict, '-O1', `-DSHARE=${DAILY_SHARE}`, '-include', guards];
  return inPairs(checks, async (check) => {
    const program = join(folder, basename(check, '.c'));
    const linked = [library, `-Wl,-rpath,${dirname(library)}`, '-lpthread', '-ldl', '-lm'];
    await execute(compilerPath(), [...flags, '-I', runtimeSources, check, '-o', program, ...linked]);
    return program;
  });
}

/** Builds one check with objects of the runtime. */
export async function buildCheck(
  check: string,
  runtime: readonly string[],
  target: Target,
  folder: string,
): Promise<string> {
  const { compiler, flags } = target;
  const program = join(folder, basename(check, '.c'));
  // Beside the objects of the runtime, which may have one of that name.
  const own = `${program}.check.o`;
  await compileFile({ compiler, machine: [], flags: ['-O2', `-DSHARE=${SANITIZED_SHARE}`] }, check, own);
  await execute(compiler, [...flags, ...runtime, own, '-o', program, '-lpthread', '-ldl', '-lm']);
  return program;
}
