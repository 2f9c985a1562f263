/**
 * @file Kernels of the native runtime against plain loops, up to the last element of memory: a part of the cases of
 * `kernels.long.ts`, by the kernel that this CPU has and by the one that every CPU has.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildGuarded } from '../runtimeSupport.js';

const names = [
  'attentionCheck',
  'gemmProducts',
  'convolutionCheck',
  'depthwiseCheck',
  'indexingCheck',
  'drawsCheck',
  'integersCheck',
  'teamCheck',
  'programCheck',
] as const;
type Name = (typeof names)[number];

describe.skipIf(!hasCompiler)('the native runtime', () => {
  let programs: Readonly<Record<Name, string>>;
  beforeAll(async () => {
    const sources = names.map((name) => fileURLToPath(new URL(`${name}.c`, import.meta.url)));
    const built = await buildGuarded(sources, temporaryDirectory());
    programs = Object.fromEntries(names.map((name, i) => [name, built[i]!])) as Record<Name, string>;
  });

  /** All that a check says. */
  const told = async (name: Name, ...args: string[]): Promise<string> => {
    const { stdout, stderr } = await execute(programs[name], args, { timeout: 60_000 });
    return stdout + stderr;
  };

  describe.each(['portable', 'auto'])('kernel %s', (kernel) => {
    it('attention', async () => {
      const parts = ['random', 'threads', 'slices', 'edges', 'empty', 'nan', 'windows', 'mask'];
      expect(await told('attentionCheck', kernel, ...parts)).toBe('');
    });

    it('products', async () => {
      const lines = (await told('gemmProducts', kernel)).trimEnd().split('\n');
      expect(lines.filter((line) => !/: ok$|^\w+ runs \w+$/.test(line))).toEqual([]);
      expect(lines).toHaveLength(24);
    });

    it('convolutions', async () => expect(await told('convolutionCheck', kernel)).toBe('finished\n'));
  });

  it('the environment selects the kernel, if there is one of that name', async () => {
    const chosen = async (name: string): Promise<string> =>
      (await execute(programs.gemmProducts, [], { env: { ...process.env, LUTHIER_KERNEL: name } })).stdout;
    expect(await chosen('portable')).toBe('portable portable\n');
    expect(await chosen('abacus')).toBe(await chosen('auto'));
  });

  it('convolutions of each channel', async () => expect(await told('depthwiseCheck')).toBe('finished\n'));

  it.each(['segments', 'cumulative', 'largest'])('%s', async (part) =>
    expect(await told('indexingCheck', part)).toBe(''),
  );

  it('products of integers have the same bits by all instructions', async () =>
    expect(await told('integersCheck')).toBe('finished\n'));

  it('arrays of random numbers, of many lengths, alone and together', async () =>
    expect(await told('drawsCheck')).toBe(''));

  it('threads that come late to a program', async () => expect(await told('programCheck')).toBe(''));

  it.each(['threads', 'callers', 'fork'])('the team of threads, %s', async (part) =>
    expect(await told('teamCheck', part, '10')).toBe(''),
  );
});
