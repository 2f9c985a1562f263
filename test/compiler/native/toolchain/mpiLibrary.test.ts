/** @file The library of collectives: which mpicc compiles it, when it is made anew, and why there is none. */
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mpiLibrary } from '../../../../src/compiler/native/toolchain/mpiLibrary.js';
import { loadKoffi } from '../../../../src/system/index.js';
import { temporaryDirectory } from '../../../command.js';
import { hasCompiler } from '../compilerSupport.js';
import { folderOf } from './fakes.js';

const own = process.env.PATH ?? '';
/** Commands called mpicc that are the machine's compiler. */
const mpicc = () => folderOf({ mpicc: 'exec cc "$@"' });
const cache = temporaryDirectory();
const made = (source: string, env: NodeJS.ProcessEnv) =>
  mpiLibrary(source, { XDG_CACHE_HOME: cache, ...env });

function sourceOf(answer: number): string {
  const file = join(temporaryDirectory(), 'mpi.c');
  writeFileSync(file, `int answer(void) { return ${answer}; }\n`);
  return file;
}

async function libraryOf(source: string, env: NodeJS.ProcessEnv): Promise<string> {
  const found = await made(source, env);
  if ('reason' in found) throw new Error(found.reason);
  return found.library;
}

describe.skipIf(!hasCompiler)('mpiLibrary', () => {
  it('is made once for each mpicc and source', async () => {
    const [first, second] = [mpicc(), mpicc()];
    const onPath = (folder: string) => ({ PATH: `${folder}${delimiter}${own}` });
    const library = await libraryOf(sourceOf(40), onPath(first));
    expect(await libraryOf(sourceOf(40), onPath(first))).toBe(library);
    expect(await libraryOf(sourceOf(40), { ...onPath(second), MPICC: join(first, 'mpicc') })).toBe(library);
    const others = [
      await libraryOf(sourceOf(40), onPath(second)),
      await libraryOf(sourceOf(41), onPath(first)),
    ];
    expect(new Set([library, ...others]).size).toBe(3);
    const koffi = await loadKoffi();
    expect(koffi.load(others[1]!).func('int answer(void)')()).toBe(41);
  });

  it('says why there is none', async () => {
    const hint =
      'Install the headers of the MPI that mpirun is of: apt install libopenmpi-dev, apt install libmpich-dev, or load its module.';
    expect(await made(sourceOf(1), { PATH: folderOf({}) })).toEqual({
      reason: `There is no mpicc that works, which compiles the calls of MPI (PATH has no 'mpicc'). ${hint}`,
    });
    expect(await made(sourceOf(1), { PATH: own, MPICC: '/nowhere/mpicc' })).toEqual({
      reason: `There is no mpicc that works, which compiles the calls of MPI (MPICC is '/nowhere/mpicc'). ${hint}`,
    });
    const broken = join(temporaryDirectory(), 'mpi.c');
    writeFileSync(broken, '#include <no_such_header.h>\n');
    const found = await made(broken, { PATH: `${mpicc()}${delimiter}${own}` });
    expect(found).toEqual({
      reason: expect.stringMatching(/^The collectives: .*mpicc could not compile its C code/),
    });
  });
});
