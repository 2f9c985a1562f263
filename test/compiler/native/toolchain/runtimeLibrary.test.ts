/** @file The runtime as a library: which files are compiled with what, what is left out, when it is made anew. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compileC } from '../../../../src/compiler/native/toolchain/compileC.js';
import { type CCompiler, findCompiler } from '../../../../src/compiler/native/toolchain/compiler.js';
import { cpuFeatures } from '../../../../src/compiler/native/toolchain/cpuFeatures.js';
import { InterruptedBuild } from '../../../../src/compiler/native/toolchain/interrupted.js';
import { Cache } from '../../../../src/compiler/native/toolchain/programCache.js';
import {
  fileFlags,
  ownFlags,
  runtimeLibrary,
} from '../../../../src/compiler/native/toolchain/runtimeLibrary.js';
import { CompilerError } from '../../../../src/compiler/program/tensors.js';
import { loadKoffi } from '../../../../src/system/index.js';
import { temporaryDirectory } from '../../../command.js';
import { hasCompiler, runtimeSources } from '../compilerSupport.js';
import { scaling } from '../programs.js';
import { folderOf } from './fakes.js';

const env = process.env;
const compiler = (await findCompiler(env)) as CCompiler;
const cpu = await cpuFeatures();
const accepted = process.arch === 'x64' ? '-msse2' : '-mcpu=native';

/** A folder of sources, named so that a shell would stumble over it. */
function sourcesOf(files: Readonly<Record<string, string>>): string {
  const folder = join(temporaryDirectory(), 'run time $(touch x)');
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const newCache = (): Cache => Cache.open({ XDG_CACHE_HOME: join(temporaryDirectory(), "user's cache") });
const make = (folder: string, cache = newCache()) =>
  runtimeLibrary({ compiler, env, name: 'The runtime' }, cache, cpu, folder);

const small = {
  'answer.h': '#define ANSWER 40\n',
  'answer.c': '/* The answer. */\n#include "answer.h"\nint answer(void) { return ANSWER; }\n',
};

/** What the runtime's own files include. */
const headers = Object.fromEntries(
  readdirSync(runtimeSources)
    .filter((name) => name.endsWith('.h'))
    .map((name) => [name, readFileSync(join(runtimeSources, name), 'utf8')]),
);

/** What a function of the library returns. */
async function result(library: string, name: string): Promise<number> {
  const koffi = await loadKoffi();
  return koffi.load(library).func(`int ${name}(void)`)();
}

describe.skipIf(!hasCompiler)('runtimeLibrary', () => {
  it('compiles each file with its flags, and defines a macro per variant', async () => {
    const { library } = await make(
      sourcesOf({
        ...small,
        'kernelFine.c': `/* A variant. */\n/* flags: -DHERE=7 ${accepted} */\nint fine(void) { return HERE; }\n`,
        'kernelOdd.c': '/* Another. */\n/* flags: -mno-such-instructions */\nint odd(void) { return 1; }\n',
        'kernel.c': [
          '/* What chooses. */',
          '/* flags: -O1 */',
          'int fine(void);',
          '#ifdef LT_HAVE_KERNELODD',
          '#error this compiler has everything',
          '#endif',
          '#ifdef LT_HAVE_KERNELFINE',
          'int chosen(void) { return fine(); }',
          '#endif',
        ].join('\n'),
      }),
    );
    expect(await result(library, 'answer')).toBe(40);
    expect(await result(library, 'chosen')).toBe(7);
  });

  it('is made anew where a header, a source or the CPU is another', async () => {
    const cache = newCache();
    const folder = sourcesOf(small);
    const first = await make(folder, cache);
    expect(await make(folder, cache)).toEqual(first);
    // A copy elsewhere is the same.
    const copy = join(temporaryDirectory(), 'copy');
    cpSync(folder, copy, { recursive: true });
    expect(await make(copy, cache)).toEqual(first);
    writeFileSync(join(folder, 'answer.h'), '#define ANSWER 41\n');
    const second = await make(folder, cache);
    expect(await result(second.library, 'answer')).toBe(41);
    const build = { compiler, env, name: 'The runtime' };
    const other = await runtimeLibrary(build, cache, `${cpu} more`, folder);
    expect(new Set([first, second, other].map(({ library }) => library)).size).toBe(3);
    expect(readdirSync(first.folder).filter((name) => name.endsWith('.o'))).toEqual([]);
  });

  it('reports a file that does not compile, unless it is optional', async () => {
    const cache = newCache();
    const wrong = { 'wrong.c': '/* Wrong. */\n/* flags: -O2 */\nint wrong(void) { return nothing; }\n' };
    const error = await make(sourcesOf({ ...small, ...wrong }), cache).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CompilerError);
    const { message } = error as Error;
    expect(message).toMatch(
      /^The runtime: \/\S+ could not compile its C code \(exit code 1\):\n.*wrong\.c.*error: /,
    );
    expect(readFileSync(/ is in (.*)\.$/.exec(message)![1]!, 'utf8')).toContain('nothing');
  });
});

describe.skipIf(!hasCompiler)('a build that is kept from its end', () => {
  const files = {
    ...small,
    'kernelFast.c': `/* A variant. */\n/* flags: -O1 ${accepted} */\nint fast(void) { return 3; }\n`,
    'kernel.c':
      '/* What chooses. */\n/* flags: -O1 */\n#ifdef LT_HAVE_KERNELFAST\nint fast(void);\nint chosen(void) { return fast(); }\n#else\nint chosen(void) { return 1; }\n#endif\n',
  };

  /** The compiler behind a script that does something else for a variant. */
  const through = (does: string): CCompiler => {
    const script = `case "$*" in *kernelFast.c*) ${does};; esac\nexec ${compiler.command} "$@"`;
    return { ...compiler, command: join(folderOf({ wrapper: script }), 'wrapper') };
  };

  it.each([
    ['killed by a signal', 'kill -9 $$', 'ended by SIGKILL'],
    [
      'whose own compiler is killed',
      'echo "gcc: fatal error: Killed signal terminated program cc1" >&2; exit 1',
      'exit code 1',
    ],
    ['without memory', 'echo "cc1: error: out of memory allocating 65536 bytes" >&2; exit 1', 'exit code 1'],
    ['without its assembler', `echo "cc: error: cannot execute 'as': execvp: No such file" >&2; exit 1`, ''],
    ['that says nothing', 'exit 1', 'exit code 1'],
  ])('leaves nothing behind where a variant meets a compiler %s', async (_, does, how) => {
    const cache = newCache();
    const folder = sourcesOf(files);
    const broken = through(does);
    const build = { compiler: broken, env, name: 'The runtime' };
    const error = await runtimeLibrary(build, cache, cpu, folder).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(InterruptedBuild);
    expect((error as Error).message).toContain(
      `The runtime: ${broken.command} was kept from compiling its C code (${how}`,
    );
    expect(await result((await make(folder, cache)).library, 'chosen')).toBe(3);
  });

  it('leaves out a variant that the compiler refuses', async () => {
    const refusing = through('echo "kernelFast.c:3:1: error: unknown type name" >&2; exit 1');
    const build = { compiler: refusing, env, name: 'The runtime' };
    const { library } = await runtimeLibrary(build, newCache(), cpu, sourcesOf(files));
    expect(await result(library, 'chosen')).toBe(1);
  });

  it('reports a full disk with the folder and a fix', async () => {
    const cache = newCache();
    const full = through('echo "fatal error: error writing to ccX.s: No space left on device" >&2; exit 1');
    const build = { compiler: full, env, name: 'The runtime' };
    await expect(runtimeLibrary(build, cache, cpu, sourcesOf(files))).rejects.toThrow(
      `The runtime: the disk that the cache ${cache.path} is on is full. Make room there, ` +
        '`npx luthier cache clear` removes what no process uses; or set XDG_CACHE_HOME to a folder on another disk.',
    );
  });

  it('is another build with other arguments in $CC', async () => {
    const cache = newCache();
    const folder = sourcesOf(small);
    const libraries = [];
    for (const CC of [compiler.command, `${compiler.command} -O0`, `${compiler.command} -DANSWERS`]) {
      const named = (await findCompiler({ ...env, CC })) as CCompiler;
      libraries.push(
        (await runtimeLibrary({ compiler: named, env, name: 'The runtime' }, cache, cpu, folder)).library,
      );
    }
    expect(new Set(libraries).size).toBe(3);
  });
});

describe.skipIf(!hasCompiler)('compileC', () => {
  it('finds the runtime, once for each source, set of macros and runtime', async () => {
    const cache = newCache();
    const team = join(runtimeSources, 'team.c');
    const runtime = await make(sourcesOf({ ...headers, 'team.c': readFileSync(team, 'utf8') }), cache);
    const toolchain = { compiler, cpu, cache, runtime, env };
    const first = await compileC(toolchain, scaling(4), { name: 'a' });
    expect(await compileC(toolchain, scaling(4), { name: 'a' })).toEqual(first);
    const others = [
      await compileC(toolchain, scaling(5), { name: 'a' }),
      await compileC(toolchain, scaling(4), { name: 'a', defines: ['LUTHIER_PROFILE'] }),
    ];
    expect(new Set([first, ...others].map(({ library }) => library)).size).toBe(3);
    // An entry that someone damaged is compiled again.
    writeFileSync(first.library, 'no library');
    expect((await compileC(toolchain, scaling(4), { name: 'a' })).library).toBe(first.library);
    expect(readFileSync(first.library).subarray(0, 10).toString('latin1')).not.toBe('no library');
  });

  it('compiles the sections of a large source separately, and reports an error in one', async () => {
    const cache = newCache();
    const runtime = await make(sourcesOf(small), cache);
    const toolchain = { compiler, cpu, cache, runtime, env };
    const sections = ['ONE', 'TWO'];
    const sourceOf = (two: string): string =>
      `#if !defined(ONE) && !defined(TWO)\n#define ONE\n#define TWO\n#endif\nint one(void);\n#ifdef ONE\nint one(void) { return 1; }\n#endif\n#ifdef TWO\n${two}\n#endif\n/*${' '.repeat(20_000)}*/\n`;
    const source = sourceOf('int answer(void) { return 41 + one(); }');
    const { folder, library } = await compileC(toolchain, source, { name: 'a', sections });
    expect(await result(library, 'answer')).toBe(42);
    expect(readdirSync(folder).filter((name) => /^(ONE|TWO)/.test(name))).toEqual([]);
    const wrong = sourceOf('int answer(void) { return nothing; }');
    const error = await compileC(toolchain, wrong, { name: 'b', sections }).catch(
      (caught: unknown) => caught,
    );
    expect((error as Error).message).toMatch(
      /^b: \/\S+ could not compile its C code \(exit code 1\):\nprogram\.c.*error: /,
    );
    const log = readFileSync(/ is in (.*)\.$/.exec((error as Error).message)![1]!, 'utf8');
    expect(log).toContain('nothing');
  });

  it('gives LUTHIER_CFLAGS the last word, and keeps programs by it', async () => {
    const cache = newCache();
    const runtime = await make(sourcesOf(small), cache);
    const source = '#ifdef __OPTIMIZE__\n#error optimized\n#endif\nint one(void) { return ONE; }\n';
    const compiled = (flags?: string) => {
      const toolchain = { compiler, cpu, cache, runtime, env: { ...env, LUTHIER_CFLAGS: flags } };
      return compileC(toolchain, source, { name: 'one', defines: ['ONE'] });
    };
    const first = await compiled(' -O0  ');
    expect(await compiled('-O0')).toEqual(first);
    const other = await compiled('-O0 -UONE -DONE=2');
    expect([await result(first.library, 'one'), await result(other.library, 'one')]).toEqual([1, 2]);
    await expect(compiled()).rejects.toThrow('optimized');
  });
});

it('ownFlags reads the second line alone', () => {
  expect(ownFlags('/* a */\n/* flags: -mavx2  -mfma */\nint x;')).toEqual(['-mavx2', '-mfma']);
  expect(ownFlags('/* a */\nint x;\n/* flags: -mavx2 */')).toBeUndefined();
  expect(ownFlags('/* flags: -mavx2 */')).toBeUndefined();
});

it('a file is compiled for this machine unless it names its own flags, which may include those', () => {
  const machine = ['-march=native', '-mprefer-vector-width=512'];
  expect(fileFlags(undefined, machine)).toEqual(machine);
  expect(fileFlags(['-O2'], machine)).toEqual(['-O2']);
  expect(fileFlags(['machine', '-ffp-contract=off'], machine)).toEqual([...machine, '-ffp-contract=off']);
});
