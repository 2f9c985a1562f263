/** @file `luthier cache`: what is compiled on this machine, listed and removed. */
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Cache } from '../../src/compiler/native/toolchain/programCache.js';
import { formatAge } from '../../src/tools/cache.js';
import { type Finished, runLuthier, temporaryDirectory } from '../command.js';

/** A cache with three entries: one used an hour ago, one in use by this process, one that failed. */
async function someCache() {
  const XDG_CACHE_HOME = temporaryDirectory();
  const cache = Cache.open({ XDG_CACHE_HOME });
  const put = async (kind: 'runtime' | 'program', name: string): Promise<string> => {
    const wanted = { kind, name, dependencies: [], compiler: 'cc (GCC) 13.1.0' };
    const { folder } = await cache.entry(wanted, async (made) =>
      writeFileSync(join(made, cache.libraryName(wanted)), 'x'.repeat(5000)),
    );
    return folder;
  };
  const failing = cache.entry(
    { kind: 'program', name: 'broken', dependencies: [], compiler: 'cc' },
    async () => {
      throw new Error('it failed');
    },
  );
  await failing.catch(() => {});
  const old = await put('program', 'lm.Small|x');
  for (const name of readdirSync(old)) if (name.startsWith('use-')) rmSync(join(old, name));
  const hourAgo = new Date(Date.now() - 3_700_000);
  utimesSync(join(old, 'entry.json'), hourAgo, hourAgo);
  const used = await put('runtime', 'native runtime');
  const path = cache.path;
  const luthier = (...args: string[]): Promise<Finished> =>
    runLuthier(['cache', ...args], undefined, { XDG_CACHE_HOME });
  return { path, old, used, luthier };
}

describe('luthier cache', () => {
  it('lists what there is, what was used last first', async () => {
    const { path, old, luthier } = await someCache();
    const { code, stdout, stderr } = await luthier('list');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/^kind +name +size +unused for +compiler$/);
    expect(lines[1]).toMatch(/^runtime +native runtime +5\.\d\d kB +in use +cc \(GCC\) 13\.1\.0$/);
    expect(lines[2]).toMatch(/^failed +broken +\d+ B +\d+ s +cc$/);
    expect(lines[3]).toMatch(/^program +lm\.Small\|x +5\.\d\d kB +1 h +cc \(GCC\) 13\.1\.0$/);
    expect(lines.slice(4).join('\n')).toMatch(/^\n3 entries, 10\.\d kB of at most 512 MB, in .*\.\n$/);
    expect(stdout).toContain(` in ${path}.`);

    const json = JSON.parse((await luthier('list', '--format=json')).stdout);
    expect(json).toMatchObject({ path, limit: 512e6 });
    expect(json.entries).toHaveLength(3);
    expect(json.entries[2]).toEqual({
      kind: 'program',
      name: 'lm.Small|x',
      folder: old.slice(path.length + 1),
      bytes: expect.any(Number),
      lastUsed: expect.stringMatching(/^\d{4}-.*Z$/),
      inUse: false,
      compiler: 'cc (GCC) 13.1.0',
    });
  });

  it('removes what no process uses', async () => {
    const { path, old, used, luthier } = await someCache();
    expect(await luthier('clear')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^Removed 2 entries, 5\.\d\d kB from .*\. 1 entry is in use and was kept\.\n$/,
      ),
    });
    expect(existsSync(old)).toBe(false);
    expect(readdirSync(path)).toEqual([used.slice(path.length + 1)]);
    expect(await luthier('clear')).toMatchObject({
      code: 0,
      stdout: `Nothing was removed from ${path}. 1 entry is in use and was kept.\n`,
    });
    const { removed, kept } = JSON.parse((await luthier('clear', '--format=json')).stdout);
    expect(removed).toEqual([]);
    expect(kept).toMatchObject([{ kind: 'runtime', inUse: true }]);
  });

  it('finds nothing where nothing was compiled, and makes nothing', async () => {
    const XDG_CACHE_HOME = temporaryDirectory();
    const path = join(XDG_CACHE_HOME, 'luthier');
    expect(await runLuthier(['cache', 'list'], undefined, { XDG_CACHE_HOME })).toEqual({
      code: 0,
      signal: null,
      stdout: `No programs are cached in ${path}.\n`,
      stderr: '',
    });
    expect((await runLuthier(['cache', 'clear'], undefined, { XDG_CACHE_HOME })).stdout).toBe(
      `Nothing was removed from ${path}.\n`,
    );
    expect(existsSync(path)).toBe(false);
  });

  it('refuses what it does not know, and folders that others can write to', async () => {
    const XDG_CACHE_HOME = temporaryDirectory();
    const path = join(XDG_CACHE_HOME, 'luthier');
    mkdirSync(path);
    chmodSync(path, 0o777);
    const [unknown, open] = await Promise.all([
      runLuthier(['cache', 'cleer']),
      runLuthier(['cache', 'clear'], undefined, { XDG_CACHE_HOME }),
    ]);
    expect(unknown).toMatchObject({
      code: 2,
      stderr:
        "luthier cache has no action 'cleer'. Did you mean 'clear'? The actions are: list, clear, measure.\n",
    });
    expect(open).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^The cache \S+ is open to other users \(mode 0777\), .*, then chmod 700 \S+\.\n$/,
      ),
    });
  });
});

describe('formatAge', () => {
  it.each([
    [-5, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [7_200_000, '2 h'],
    [172_800_000, '2 d'],
  ])('%i ms is %s', (milliseconds, text) => expect(formatAge(milliseconds)).toBe(text));
});
