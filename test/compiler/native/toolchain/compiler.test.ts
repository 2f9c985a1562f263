/** @file Which compiler is taken, and what is said where there is none that will do. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findCompiler, installHint } from '../../../../src/compiler/native/toolchain/compiler.js';
import { whyUnsupported } from '../../../../src/compiler/native/toolchain/index.js';
import { temporaryDirectory } from '../../../command.js';
import { folderOf, gccSays } from './fakes.js';

const hint = installHint();
const needed = 'gcc 9 or newer, or clang 11 or newer';

it('says which systems have no machine code', () => {
  expect(whyUnsupported('linux', 'arm64')).toBeUndefined();
  expect(whyUnsupported('darwin', 'arm64')).toBeUndefined();
  expect(whyUnsupported('win32', 'x64')).toBe(
    'The native engine runs on Linux and macOS, and this is Windows.',
  );
  expect(whyUnsupported('linux', 'arm')).toBe(
    'The native engine runs on 64-bit processors, such as x64 and arm64, and this is arm.',
  );
});

describe('findCompiler', () => {
  it('takes the first of cc, gcc and clang', async () => {
    const PATH = folderOf({ gcc: gccSays('gcc (GCC) 14.2.1 20250110'), clang: 'echo clang version 19.1.0' });
    expect(await findCompiler({ PATH })).toEqual({
      command: join(PATH, 'gcc'),
      args: [],
      family: 'gcc',
      version: 'gcc (GCC) 14.2.1 20250110',
    });
  });

  it('takes $CC with its arguments, and then nothing else', async () => {
    const PATH = folderOf({
      ccache: `shift; ${gccSays('gcc (Debian 12.2.0-14) 12.2.0')}`,
      cc: gccSays('cc (GCC) 13.1.0'),
    });
    expect(await findCompiler({ PATH, CC: ' ccache  gcc ' })).toMatchObject({
      command: join(PATH, 'ccache'),
      args: ['gcc'],
    });
    expect(await findCompiler({ PATH, CC: 'tcc' })).toEqual({
      reason: `There is no C compiler: CC is 'tcc', which is not there. ${hint}`,
    });
    expect(await findCompiler({ PATH, CC: join(PATH, 'cc') })).toMatchObject({ version: 'cc (GCC) 13.1.0' });
  });

  it.each([
    ['Debian clang version 14.0.6', 'clang'],
    ['Apple clang version 15.0.0 (clang-1500.3.9.4)', 'clang'],
    ['Ubuntu clang version 18.1.3 (1ubuntu1)', 'clang'],
  ])('knows %s', async (version, family) => {
    const PATH = folderOf({ cc: `echo "${version}"; echo "Target: x86_64"` });
    expect(await findCompiler({ PATH })).toMatchObject({ family, version });
  });

  it.each([
    'cc (Debian 12.2.0-14+deb12u1) 12.2.0',
    'gcc (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0',
    'gcc-13 (Homebrew GCC 13.2.0) 13.2.0',
    'gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)',
  ])('knows %s', async (version) => {
    expect(await findCompiler({ PATH: folderOf({ cc: gccSays(version) }) })).toMatchObject({
      family: 'gcc',
      version,
    });
  });

  it('skips old, broken and foreign compilers, and reports all of them if none is usable', async () => {
    const commands = {
      cc: gccSays('cc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)'),
      gcc: 'echo "gcc: cannot execute cc1" >&2; exit 3',
      clang: 'echo "tcc version 0.9.27"',
    };
    const PATH = folderOf(commands);
    expect(await findCompiler({ PATH })).toEqual({
      reason:
        `${PATH}/cc is too old: 'cc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)'; ${needed}, is needed. ` +
        `${PATH}/gcc --version failed (exit code 3): gcc: cannot execute cc1. ` +
        `${PATH}/clang is neither gcc nor clang: 'tcc version 0.9.27'. ${hint}`,
    });
    const better = folderOf({ ...commands, clang: 'echo "clang version 17.0.1"' });
    expect(await findCompiler({ PATH: better })).toMatchObject({ command: join(better, 'clang') });
    expect(await findCompiler({ PATH: folderOf({ cc: 'echo "clang version 10.0.0"' }) })).toHaveProperty(
      'reason',
      expect.stringContaining(`is too old: 'clang version 10.0.0'; ${needed}, is needed.`),
    );
  });

  it('reports a PATH without a compiler', async () => {
    const reason = `There is no C compiler: PATH has neither cc, gcc nor clang. ${hint}`;
    expect(await findCompiler({ PATH: temporaryDirectory() })).toEqual({ reason });
    expect(await findCompiler({})).toEqual({ reason });
    // What can't be started is no compiler.
    const PATH = temporaryDirectory();
    writeFileSync(join(PATH, 'cc'), 'text', { mode: 0o644 });
    expect(await findCompiler({ PATH })).toEqual({ reason });
  });

  it('reports a file that is executable by its mode only', async () => {
    const PATH = temporaryDirectory();
    writeFileSync(join(PATH, 'cc'), '#!/nowhere/at/all\n', { mode: 0o755 });
    expect(await findCompiler({ PATH })).toEqual({
      reason: `${PATH}/cc --version failed (spawn ${PATH}/cc ENOENT). ${hint}`,
    });
  });

  it('never runs a shell', async () => {
    const PATH = folderOf({ gcc: gccSays('gcc (GCC) 13.1.0') });
    const CC = `gcc; touch ${PATH}/pwned`;
    expect(await findCompiler({ PATH, CC })).toHaveProperty('reason');
    expect(await findCompiler({ PATH })).toHaveProperty('command', join(PATH, 'gcc'));
  });
});

describe('installHint', () => {
  it.each([
    ['ID=debian', 'To install one: apt install gcc libc6-dev.'],
    ['ID=pop\nID_LIKE="ubuntu debian"', 'To install one: apt install gcc libc6-dev.'],
    ['ID="rocky"\nID_LIKE="rhel centos fedora"', 'To install one: dnf install gcc.'],
    ['ID=alpine', 'To install one: apk add gcc musl-dev.'],
    ['ID=arch', 'To install one: pacman -S gcc.'],
    ['ID=opensuse-leap\nID_LIKE="suse opensuse"', 'To install one: zypper install gcc.'],
    ['ID=nixos', `Install ${needed}, and the C library's headers.`],
  ])('%s', (release, expected) => {
    const file = join(temporaryDirectory(), 'os-release');
    writeFileSync(file, `NAME=X\n${release}\nVERSION_ID=1\n`);
    expect(installHint('linux', file)).toBe(expected);
  });

  it('knows macOS, and systems without os-release', () => {
    expect(installHint('darwin')).toBe('To install one: xcode-select --install.');
    expect(installHint('linux', '/nowhere')).toBe(`Install ${needed}, and the C library's headers.`);
  });
});
