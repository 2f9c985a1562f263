/** @file What compilers have said: remembered of programs that can't be another unnoticed, asked of all else. */
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachePath } from '../../../../src/compiler/native/toolchain/cacheFolder.js';
import { findCompiler } from '../../../../src/compiler/native/toolchain/compiler.js';
import { KnownCompilers } from '../../../../src/compiler/native/toolchain/knownCompilers.js';
import { temporaryDirectory } from '../../../command.js';
import { folderOf, gccSays } from './fakes.js';

/** A cache of its own, which is there. */
function newEnv(): NodeJS.ProcessEnv {
  const env = { XDG_CACHE_HOME: temporaryDirectory() };
  mkdirSync(cachePath(env), { mode: 0o700 });
  return env;
}

/** A program, which is no compiler, of this name; nobody starts it here. */
function programOf(name: string): string {
  const file = join(temporaryDirectory(), name);
  copyFileSync(process.platform === 'linux' ? '/bin/true' : process.execPath, file);
  chmodSync(file, 0o755);
  return file;
}

/** What a new process gets, and whether it asked. */
async function ask(env: NodeJS.ProcessEnv, command: string, code: number | string = 0) {
  const known = new KnownCompilers(env);
  let asked = false;
  const ended = await known.asked(command, async () => {
    asked = true;
    return { code, output: 'gcc 13' };
  });
  known.save();
  expect(ended).toEqual({ code: asked ? code : 0, output: 'gcc 13' });
  return asked;
}

describe.skipIf(process.platform !== 'linux')('a compiler', () => {
  it.each(['gcc', 'gcc-12', 'clang-19', 'x86_64-linux-gnu-gcc-12'])(
    'of the name %s is asked once',
    async (name) => {
      const [env, file] = [newEnv(), programOf(name)];
      expect(await ask(env, file)).toBe(true);
      expect(await ask(env, file)).toBe(false);
      // By a link as well, which may lead elsewhere later.
      const link = join(temporaryDirectory(), 'cc');
      symlinkSync(file, link);
      expect(await ask(env, link)).toBe(true);
      expect(await ask(env, link)).toBe(false);
    },
  );

  it('that has changed is asked again', async () => {
    const [env, file] = [newEnv(), programOf('gcc')];
    await ask(env, file);
    appendFileSync(file, 'x');
    expect(await ask(env, file)).toBe(true);
    expect(await ask(env, file)).toBe(false);
  });

  it.each(['cc', 'ccache', 'gcc-wrapper'])('behind %s may be another every time', async (name) => {
    const [env, file] = [newEnv(), programOf(name)];
    for (let i = 0; i < 2; i++) expect(await ask(env, file)).toBe(true);
  });

  it('that fails is asked again', async () => {
    const [env, file] = [newEnv(), programOf('gcc')];
    expect(await ask(env, file, 1)).toBe(true);
    expect(await ask(env, file)).toBe(true);
    expect(await ask(env, file)).toBe(false);
  });

  it('is asked where what is kept is damaged, or was open to others', async () => {
    const [env, file] = [newEnv(), programOf('gcc')];
    await ask(env, file);
    const kept = join(cachePath(env), 'compilers.json');
    const text = readFileSync(kept, 'utf8');
    for (const damaged of ['', 'null', text.slice(0, -3), '[["a"]]', '[[1, 2]]']) {
      writeFileSync(kept, damaged);
      expect(await ask(env, file)).toBe(true);
      expect(readFileSync(kept, 'utf8')).toBe(text);
    }
    chmodSync(cachePath(env), 0o777);
    expect(await ask(env, file)).toBe(true);
  });

  it('is asked where there is no cache, and none is made', async () => {
    const [env, file] = [{ XDG_CACHE_HOME: temporaryDirectory() }, programOf('gcc')];
    for (let i = 0; i < 2; i++) expect(await ask(env, file)).toBe(true);
    expect(existsSync(cachePath(env))).toBe(false);
  });
});

it('scripts, and what $CC is followed by, are always asked', async () => {
  const env = newEnv();
  const versions = ['gcc (GCC) 13.1.0', 'gcc (GCC) 14.1.0'];
  const PATH = folderOf({ gcc: '' });
  for (const version of versions)
    for (const CC of ['gcc', 'gcc -m64']) {
      writeFileSync(join(PATH, 'gcc'), `#!/bin/sh\n${gccSays(version)}\n`);
      const known = new KnownCompilers(env);
      expect(await findCompiler({ PATH, CC }, known)).toMatchObject({
        version: expect.stringContaining(version),
      });
      known.save();
    }
});
