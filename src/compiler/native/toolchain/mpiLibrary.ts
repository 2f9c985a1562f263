/** @file The library of collectives, compiled once per machine by the mpicc of its MPI. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompilerError } from '../../program/tensors.js';
import { findCompiler, type Missing } from './compiler.js';
import { baseFlags, linkFlags } from './compilerFlags.js';
import { Cache, type Wanted } from './programCache.js';
import { compile } from './runCompiler.js';
import { runtimeFolder } from './runtimeLibrary.js';

/**
 * Compiles calls of MPI with $MPICC, or the mpicc on PATH.
 *
 * @param source path of the C file.
 * @returns the library's path, or a sentence that says why there is none.
 */
export async function mpiLibrary(
  source: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly library: string } | Missing> {
  const command = (env.MPICC ?? '').trim() || 'mpicc';
  const compiler = await findCompiler({ ...env, CC: command });
  if ('reason' in compiler) {
    const named = env.MPICC === undefined ? "PATH has no 'mpicc'" : `MPICC is '${command}'`;
    return {
      reason:
        `There is no mpicc that works, which compiles the calls of MPI (${named}). Install the headers of the MPI that ` +
        'mpirun is of: apt install libopenmpi-dev, apt install libmpich-dev, or load its module.',
    };
  }
  const [text, header] = [source, join(runtimeFolder, 'collectives.h')].map((file) =>
    readFileSync(file, 'utf8'),
  );
  const flags = [...baseFlags, '-O3'];
  const wanted: Wanted = {
    kind: 'mpi',
    name: 'collectives',
    compiler: compiler.version,
    // The same gcc stands behind each MPI's mpicc.
    dependencies: [compiler.command, ...flags, header!, text!],
  };
  try {
    const cache = Cache.open(env);
    return await cache.entry(wanted, async (folder) => {
      const library = cache.libraryName(wanted);
      const build = { compiler, env, name: 'The collectives', folder, log: cache.failed(wanted) };
      const parts = [...linkFlags(library), '-I', runtimeFolder, source, '-o', library];
      await compile(build, [...flags, ...parts]);
    });
  } catch (error) {
    if (!(error instanceof CompilerError)) throw error;
    return { reason: error.message };
  }
}
