/** @file Checks written in C, built from the runtime's sources as the toolchain builds them, under sanitizers. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { baseFlags, machineFlags } from '../../../src/compiler/native/toolchain/compilerFlags.js';
import { cpuFeatures } from '../../../src/compiler/native/toolchain/cpuFeatures.js';
import { fileFlags, ownFlags } from '../../../src/compiler/native/toolchain/runtimeLibrary.js';
import { compilerPath, execute, hasSanitizer, runtimeSources } from './compilerSupport.js';

const strict = ['-Wall', '-Wextra', '-Werror'];

/** The flags that a file asks for, and whether they are instructions, which not every compiler knows. */
function asked(file: string): { own: readonly string[] | undefined; optional: boolean } {
  const own = ownFlags(readFileSync(file, 'utf8'));
  return { own, optional: own?.some((flag) => flag.startsWith('-m')) ?? false };
}

/** Compiles one file, with its own flags after the others; false where the compiler lacks them. */
async function compileFile(
  file: string,
  object: string,
  flags: readonly string[],
  machine: readonly string[] = [],
): Promise<boolean> {
  const { own, optional } = asked(file);
  const args = [
    ...baseFlags,
    ...strict,
    ...fileFlags(own, machine),
    ...flags,
    '-I',
    runtimeSources,
    '-c',
    file,
    '-o',
    object,
  ];
  try {
    await execute(compilerPath(), args);
    return true;
  } catch (error) {
    if (optional && /unrecognized|unknown|unsupported/.test(`${error}`)) return false;
    throw error;
  }
}

/**
 * Builds programs, one of each check, of the runtime's files whose names match, under the sanitizers of addresses and of
 * undefined behaviour where the machine has them. The checks themselves are optimised instead: their loops take most of
 * the time, and the sanitizers watch the heap for them anyway.
 *
 * @param machine whether files without flags of their own may use all of this CPU's instructions, as they do in use.
 * @returns the programs' paths.
 */
export async function buildChecks(
  checks: readonly string[],
  sources: RegExp,
  machine: boolean,
  folder: string,
): Promise<string[]> {
  const sanitized = (await hasSanitizer('address,undefined', folder))
    ? ['-O1', '-g1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
    : ['-O2'];
  const files = readdirSync(runtimeSources)
    .filter((file) => file.endsWith('.c') && sources.test(file))
    .map((file) => join(runtimeSources, file));
  const object = (file: string): string => join(folder, `${basename(file)}.o`);
  const native = machine ? machineFlags(await cpuFeatures()) : [];
  const build = (file: string, flags: readonly string[]): Promise<boolean> =>
    compileFile(file, object(file), [...sanitized, ...flags], native);
  const special = files.filter((file) => asked(file).optional);
  const built = await Promise.all(special.map((file) => build(file, [])));
  const kept = special.filter((_, i) => built[i]);
  const having = kept.map((file) => `-DLT_HAVE_${basename(file, '.c').toUpperCase()}`);
  const rest = files.filter((file) => !special.includes(file));
  await Promise.all(rest.map((file) => build(file, having)));
  const shared = [...kept, ...rest].map(object);
  return Promise.all(
    checks.map(async (check) => {
      const program = join(folder, basename(check, '.c'));
      // Beside the objects of the runtime, which may have one of that name.
      const own = `${program}.check.o`;
      await compileFile(check, own, ['-O2']);
      await execute(compilerPath(), [
        ...sanitized,
        ...shared,
        own,
        '-o',
        program,
        '-lpthread',
        '-ldl',
        '-lm',
      ]);
      return program;
    }),
  );
}
