/** @file The cache: one build for all processes, whole entries only, a folder of the user's own, a bound on its size. */
import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { listEntries } from '../../../../src/compiler/native/toolchain/cacheEntries.js';
import { cachePath, checkFolder } from '../../../../src/compiler/native/toolchain/cacheFolder.js';
import { Cache, type Wanted } from '../../../../src/compiler/native/toolchain/programCache.js';
import { NativeEngineError } from '../../../../src/compiler/program/tensors.js';
import { startCommand, temporaryDirectory } from '../../../command.js';

/** An environment with a cache of its own. */
const newEnv = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  XDG_CACHE_HOME: temporaryDirectory(),
  ...more,
});

const wanted = (name: string, ...dependencies: string[]): Wanted => ({
  kind: 'program',
  name,
  dependencies,
  compiler: 'cc 1',
});

/** An entry whose library is this text. */
async function put(
  cache: Cache,
  want: Wanted,
  text = 'library',
): Promise<{ folder: string; built: boolean }> {
  let built = false;
  const { folder, library } = await cache.entry(want, async (made) => {
    built = true;
    writeFileSync(join(made, cache.libraryName(want)), text);
  });
  expect(readFileSync(library, 'utf8')).toBe(text);
  return { folder, built };
}

/** As if no process had opened the entry for so long. */
function age(folder: string, days: number): void {
  for (const name of readdirSync(folder)) if (name.startsWith('use-')) rmSync(join(folder, name));
  const then = new Date(Date.now() - days * 86_400_000);
  utimesSync(join(folder, 'entry.json'), then, then);
}

/** The number of a process that is no more. */
async function endedProcess(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => child.on('close', resolve));
  return child.pid!;
}

describe('an entry', () => {
  it('is built once per set of dependencies', async () => {
    const env = newEnv();
    const cache = Cache.open(env);
    expect((await put(cache, wanted('a', 'source'))).built).toBe(true);
    expect((await put(cache, wanted('a', 'source'))).built).toBe(false);
    expect((await put(Cache.open(env), wanted('a', 'source'))).built).toBe(false);
    expect((await put(cache, wanted('a', 'other'))).built).toBe(true);
    expect((await put(cache, wanted('b', 'source'))).built).toBe(true);
    expect((await put(cache, { ...wanted('a', 'source'), compiler: 'cc 2' })).built).toBe(true);
    expect((await put(cache, wanted('a', 'sou', 'rce'))).built).toBe(true);
    expect(listEntries(cache.path)).toHaveLength(5);
  });

  it('is built once for concurrent requests', async () => {
    const cache = Cache.open(newEnv());
    let builds = 0;
    const entries = await Promise.all(
      [1, 2, 3].map(() =>
        cache.entry(wanted('a'), async (made) => {
          builds++;
          await new Promise((resolve) => setTimeout(resolve, 20));
          writeFileSync(join(made, cache.libraryName(wanted('a'))), 'x');
        }),
      ),
    );
    expect(builds).toBe(1);
    expect(new Set(entries.map(({ library }) => library)).size).toBe(1);
  });

  it.each([
    ['cut off', (file: string) => truncateSync(file, 3)],
    ['longer', (file: string) => appendFileSync(file, 'x')],
    ['gone', (file: string) => rmSync(file)],
  ])('whose library is %s is built again', async (_, damage) => {
    const cache = Cache.open(newEnv());
    const { folder } = await put(cache, wanted('a'));
    damage(join(folder, cache.libraryName(wanted('a'))));
    expect((await put(cache, wanted('a'))).built).toBe(true);
    expect((await put(cache, wanted('a'))).built).toBe(false);
  });

  it.each(['', '{"library":', 'null', '{}'])('whose manifest is %j is built again', async (text) => {
    const cache = Cache.open(newEnv());
    const { folder } = await put(cache, wanted('a'));
    writeFileSync(join(folder, 'entry.json'), text);
    expect((await put(cache, wanted('a'))).built).toBe(true);
    expect((await put(cache, wanted('a'))).built).toBe(false);
  });

  it('is rebuilt if one of its files is anything but a file, without blocking on it', async () => {
    const cache = Cache.open(newEnv());
    const want = wanted('a');
    const { folder } = await put(cache, want);
    for (const name of ['entry.json', cache.libraryName(want)]) {
      const path = join(folder, name);
      for (const make of [
        () => execFileSync('mkfifo', [path]),
        () => mkdirSync(join(path, 'below'), { recursive: true }),
        () => symlinkSync('/dev/zero', path),
        () => {
          writeFileSync(path, '');
          truncateSync(path, 6e9);
        },
      ]) {
        rmSync(path);
        make();
        expect((await put(cache, want)).built, `${name}: ${make}`).toBe(true);
      }
    }
  });

  it('is used even where it can’t be marked', async () => {
    const cache = Cache.open(newEnv());
    const { folder } = await put(cache, wanted('a'));
    const mark = join(folder, readdirSync(folder).find((name) => name.startsWith('use-'))!);
    rmSync(mark);
    mkdirSync(mark);
    expect((await put(cache, wanted('a'))).built).toBe(false);
    rmSync(mark, { recursive: true });
  });

  it('whose build fails is kept aside, and tried again', async () => {
    const cache = Cache.open(newEnv());
    const failing = cache.entry(wanted('a'), async (made) => {
      writeFileSync(join(made, 'compiler.log'), 'no');
      throw new NativeEngineError('it failed');
    });
    await expect(failing).rejects.toThrow('it failed');
    expect(readFileSync(join(cache.failed(wanted('a')), 'compiler.log'), 'utf8')).toBe('no');
    expect(listEntries(cache.path)).toMatchObject([{ kind: 'failed', name: 'a', inUse: false }]);
    expect((await put(cache, wanted('a'))).built).toBe(true);
    expect(existsSync(cache.failed(wanted('a')))).toBe(false);
    expect(readdirSync(cache.path).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('a build without error and without result is reported', async () => {
    const making = Cache.open(newEnv()).entry(wanted('a'), async () => {});
    await expect(making).rejects.toThrow(
      new NativeEngineError('a: cc 1 ended without an error and without a result.'),
    );
  });
});

describe('processes', () => {
  it('race for the same entries, and all have whole ones', async () => {
    const env = { XDG_CACHE_HOME: temporaryDirectory() };
    const racers = Array.from({ length: 4 }, () =>
      startCommand(['20'], undefined, 'test/compiler/native/toolchain/raceProgram.ts', env),
    );
    for (const { code, stdout, stderr } of await Promise.all(racers.map(({ finished }) => finished)))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '20 entries\n', stderr: '' });
    const path = cachePath(env);
    // Nothing is left of those who were too late, and of marks.
    expect(readdirSync(path).filter((name) => !/^program-[0-9a-f]{32}$/.test(name))).toEqual([]);
    expect(listEntries(path)).toHaveLength(20);
    expect(listEntries(path).some(({ inUse }) => inUse)).toBe(false);
  });
});

describe('the size', () => {
  it('evicts the least recently used entries, never those in use', async () => {
    const env = newEnv({ LUTHIER_CACHE_MB: '0.01' });
    const cache = Cache.open(env);
    const text = 'x'.repeat(3000);
    const folders = [];
    for (const name of ['a', 'b', 'c']) folders.push((await put(cache, wanted(name), text)).folder);
    // All three are in use by this process.
    expect(listEntries(cache.path).map(({ inUse }) => inUse)).toEqual([true, true, true]);
    folders.forEach((folder, i) => {
      age(folder, [2, 3, 1][i]!);
    });
    await put(cache, wanted('d'), text);
    expect(listEntries(cache.path).map(({ name }) => name)).toEqual(['d', 'c', 'a']);
    await put(Cache.open({ ...env, LUTHIER_CACHE_MB: '0' }), wanted('e'), text);
    expect(listEntries(cache.path).map(({ name }) => name)).toEqual(['e', 'd']);
  });

  it('is bound among many small entries, all of which are not looked at for each', async () => {
    const cache = Cache.open(newEnv({ LUTHIER_CACHE_MB: '0.1' }));
    const leftover = join(cache.path, `.build-${await endedProcess()}-0`);
    let looks = 0;
    for (let i = 0; i < 60; i++) {
      mkdirSync(leftover, { recursive: true });
      age((await put(cache, wanted(String(i)), 'x'.repeat(3000))).folder, 60 - i);
      if (!existsSync(leftover)) looks++;
    }
    const entries = listEntries(cache.path);
    expect(entries.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(1.1e5);
    expect(entries.map(({ name }) => Number(name)).slice(0, 25)).toEqual(
      Array.from({ length: 25 }, (_, i) => 59 - i),
    );
    expect(looks).toBeLessThan(50);
  });

  it('keeps entries of other live processes, and ignores marks of dead ones', async () => {
    const env = newEnv({ LUTHIER_CACHE_MB: '0' });
    const cache = Cache.open(env);
    const other = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)']);
    const dead = await endedProcess();
    const names = { living: other.pid, dead };
    for (const [name, pid] of Object.entries(names)) {
      const { folder } = await put(cache, wanted(name));
      const own = readdirSync(folder).find((file) => file.startsWith('use-'))!;
      age(folder, 1);
      writeFileSync(join(folder, own.replace(`-${process.pid}-`, `-${pid}-`)), '');
    }
    await put(cache, wanted('new'));
    expect(listEntries(cache.path).map(({ name }) => name)).toEqual(['new', 'living']);
    other.kill();
  });

  it('removes leftovers of killed processes, without counting them', async () => {
    const cache = Cache.open(newEnv());
    const dead = await endedProcess();
    mkdirSync(join(cache.path, `.build-${dead}-0123`));
    mkdirSync(join(cache.path, `program-01.dropped-${dead}`));
    mkdirSync(join(cache.path, `.build-${process.pid}-0123`));
    await put(cache, wanted('a'));
    expect(readdirSync(cache.path).filter((name) => !/^program-[0-9a-f]+$/.test(name))).toEqual([
      `.build-${process.pid}-0123`,
    ]);
  });

  it('is a number', () => {
    expect(() => Cache.open(newEnv({ LUTHIER_CACHE_MB: 'much' }))).toThrow(
      new NativeEngineError("LUTHIER_CACHE_MB: expected a number of megabytes, got 'much'."),
    );
  });
});

describe('the folder', () => {
  it('is made for its owner alone', () => {
    const env = newEnv({ XDG_CACHE_HOME: join(temporaryDirectory(), 'deep', 'down') });
    expect(Cache.open(env).path).toBe(join(env.XDG_CACHE_HOME!, 'luthier'));
    expect(statSync(cachePath(env)).mode & 0o777).toBe(0o700);
  });

  it('is where the XDG directories say', () => {
    expect(cachePath({ HOME: '/srv/a' })).toBe('/srv/a/.cache/luthier');
    expect(cachePath({ HOME: '/srv/a', XDG_CACHE_HOME: '/x' })).toBe('/x/luthier');
    // Relative paths count as none.
    expect(cachePath({ HOME: '/srv/a', XDG_CACHE_HOME: 'x' })).toBe('/srv/a/.cache/luthier');
  });

  it('is refused where others can write to it', () => {
    const env = newEnv();
    mkdirSync(cachePath(env));
    chmodSync(cachePath(env), 0o775);
    expect(() => Cache.open(env)).toThrow(
      new NativeEngineError(
        `The cache ${cachePath(env)} is open to other users (mode 0775), who could put code of theirs into it: ` +
          `look at what is in it, then chmod 700 ${cachePath(env)}.`,
      ),
    );
  });

  it('is mended where it is empty, and others could only read it', () => {
    const env = newEnv();
    mkdirSync(cachePath(env));
    chmodSync(cachePath(env), 0o755);
    expect(Cache.open(env)).toMatchObject({ path: cachePath(env), notice: undefined });
    expect(statSync(cachePath(env)).mode & 0o777).toBe(0o700);
    mkdirSync(join(cachePath(env), 'reviews'));
    chmodSync(cachePath(env), 0o755);
    expect(() => Cache.open(env)).toThrow(' is open to other users (mode 0755), ');
  });

  it.skipIf(process.getuid?.() !== 0)('is refused where it belongs to someone else', () => {
    const env = newEnv();
    mkdirSync(cachePath(env), { mode: 0o700 });
    chownSync(cachePath(env), 1234, 1234);
    expect(() => Cache.open(env)).toThrow(
      new NativeEngineError(
        `The cache ${cachePath(env)} belongs to user 1234, not to ${userInfo().username} (0): ` +
          'remove it, or set XDG_CACHE_HOME to a folder of your own.',
      ),
    );
  });

  /** What a cache is told of whose folder is below these, from the outer one, with such modes and owners. */
  const noticeBelow = (...folders: { mode: number; uid?: number; gid?: number }[]): string | undefined => {
    let path = temporaryDirectory();
    for (const [i, { mode, uid = 0, gid = 0 }] of folders.entries()) {
      path = join(path, `${i}`);
      mkdirSync(path);
      if (process.getuid?.() === 0) chownSync(path, uid, gid);
      chmodSync(path, mode);
    }
    const cache = Cache.open({ XDG_CACHE_HOME: path });
    expect(cache.path.startsWith(path)).toBe(cache.notice === undefined);
    return cache.notice?.replaceAll(dirname(dirname(path)), '…');
  };

  it('is not used where others could exchange it or a folder above', () => {
    expect(noticeBelow({ mode: 0o777 }, { mode: 0o755 })).toBe(
      'The cache …/0/1/luthier is not used, for …/0 is open to other users (mode 0777), who could exchange it: ' +
        'programs are compiled again by every process. Set XDG_CACHE_HOME to a folder of your own.',
    );
    expect(noticeBelow({ mode: 0o755 }, { mode: 0o703 })).toMatch(
      / …\/0\/1 is open to other users \(mode 0703\)/,
    );
    // Sticky: what is in it belongs to whoever made it.
    expect(noticeBelow({ mode: 0o1777 }, { mode: 0o755 })).toBeUndefined();
    // The group that has the number of the user is the user's own.
    if (process.getuid?.() === process.getgid?.())
      expect(noticeBelow({ mode: 0o775 }, { mode: 0o755 })).toBeUndefined();
  });

  it.skipIf(process.getuid?.() !== 0)('is not used where a folder above belongs to others (as root)', () => {
    expect(noticeBelow({ mode: 0o755, uid: 1234 }, { mode: 0o755 })).toMatch(
      / …\/0 belongs to user 1234, who /,
    );
    expect(noticeBelow({ mode: 0o1777, uid: 1234 }, { mode: 0o755 })).toMatch(
      / …\/0 belongs to user 1234, who /,
    );
    expect(noticeBelow({ mode: 0o775, gid: 1234 }, { mode: 0o755 })).toMatch(/ …\/0 is open to other users /);
  });

  it('is judged by where symbolic links lead to, and they are not followed again', () => {
    const [folder, open] = [temporaryDirectory(), temporaryDirectory()];
    for (const name of ['safe', 'link']) mkdirSync(join(folder, name));
    chmodSync(open, 0o777);
    const env = { XDG_CACHE_HOME: join(folder, 'link/to') };
    symlinkSync(join(folder, 'safe'), env.XDG_CACHE_HOME);
    expect(Cache.open(env).path).toBe(join(folder, 'safe/luthier'));
    rmSync(env.XDG_CACHE_HOME);
    symlinkSync(open, env.XDG_CACHE_HOME);
    expect(Cache.open(env).notice).toContain(` for ${open} is open to other users (mode 0777), `);
    expect(() => checkFolder(cachePath(env))).toThrow(
      new NativeEngineError(
        `The cache ${cachePath(env)} is not safe: ${open} is open to other users (mode 0777), who could exchange it. ` +
          'Set XDG_CACHE_HOME to a folder of your own.',
      ),
    );
  });

  it('has no place where the temporary folder is not safe either', () => {
    const open = temporaryDirectory();
    chmodSync(open, 0o777);
    vi.stubEnv('TMPDIR', open);
    try {
      expect(() => Cache.open({ XDG_CACHE_HOME: open })).toThrow(
        /^The temporary folder \S+ is not safe: \S+ is open to other users \(mode 0777\), who could exchange it\. Set TMPDIR to a folder of your own\.$/,
      );
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('falls back to a temporary folder where it can’t be written', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const cache = Cache.open({ XDG_CACHE_HOME: file });
    expect(cache.notice).toBe(
      `The cache ${file}/luthier can't be written (ENOTDIR: not a directory, mkdir '${file}/luthier'): ` +
        'programs are compiled again by every process. Set XDG_CACHE_HOME to a folder of your own.',
    );
    expect(statSync(cache.path).mode & 0o777).toBe(0o700);
    await put(cache, wanted('a'));
  });

  it.skipIf(!existsSync('/dev/full'))('on a full disk is told of, and takes the next build', async () => {
    const cache = Cache.open(newEnv());
    await expect(cache.entry(wanted('a'), async () => writeFileSync('/dev/full', 'x'))).rejects.toThrow(
      `a: the disk that the cache ${cache.path} is on is full. Make room there, ` +
        '`npx luthier cache clear` removes what no process uses; or set XDG_CACHE_HOME to a folder on another disk.',
    );
    await put(cache, wanted('a'));
  });

  it('a folder that vanishes is reported', async () => {
    const cache = Cache.open(newEnv());
    rmSync(cache.path, { recursive: true });
    await expect(put(cache, wanted('a'))).rejects.toThrow(/^a: the cache can't be written: ENOENT: .*\.$/);
  });
});
