/** @file Plans in the cache: found by what they depend on alone, whole or not at all; in processes as in use. */
import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { tf } from '../../../../src/compiler/index.js';
import { planPlace, type StoredPlan } from '../../../../src/compiler/native/stored/storedPlan.js';
import { type CachedEntry, listEntries } from '../../../../src/compiler/native/toolchain/cacheEntries.js';
import type { Toolchain } from '../../../../src/compiler/native/toolchain/index.js';
import { Cache } from '../../../../src/compiler/native/toolchain/programCache.js';
import { traceProgram } from '../../../../src/compiler/trace/tracedProgram.js';
import { startCommand, temporaryDirectory } from '../../../command.js';
import { longTest } from '../../../longTest.js';
import { hasCompiler } from '../compilerSupport.js';

/** A toolchain that makes nothing. */
const toolchainOf = (cache: Cache, more: Partial<Toolchain> = {}): Toolchain => ({
  compiler: { command: '/bin/cc', args: [], family: 'gcc', version: 'cc 1' },
  cpu: 'x64 avx2',
  cache,
  runtime: { folder: '/cache/runtime-1', library: '/cache/runtime-1/library.so' },
  env: {},
  ...more,
});

const graphOf = (f: (x: tf.Tensor) => tf.Tensor) =>
  traceProgram(({ x }) => f(x), { x: { shape: [4], dtype: 'float32' } }).graph;

const options = { name: 'p', defines: [] };
const newCache = (): Cache => Cache.open({ XDG_CACHE_HOME: temporaryDirectory() });

describe('a plan', () => {
  const table = Float32Array.from({ length: 4 }, (_, i) => i + 0.5);
  const graph = () => graphOf((x) => tf.mul(x, tf.tensor1d(table)));
  const folded: StoredPlan['constants'] = [
    Float32Array.of(Number.NaN, -0, Number.NEGATIVE_INFINITY),
    Int32Array.of(-5, 7),
    Uint8Array.of(1, 0, 1),
    new Float32Array(0),
  ];
  const part = {
    kind: 'loop',
    label: 'Mul',
    shares: [{ scope: 'net', share: 1 }],
    flops: 0,
    bytes: 8,
  } as const;
  const plan: StoredPlan = {
    source: 'int x;\n',
    constants: folded,
    storages: { inputs: { 0: 'bfloat16' }, outputs: {} },
    overwrites: [[0, 0]] as const,
    groups: [{ mesh: [2, 2], axes: [1] }],
    parts: [[part]],
  };
  const place = (
    cache: Cache,
    more = {},
    version: string | undefined = 'v1',
    toolchain = {},
    traced = graph(),
  ) => planPlace(toolchainOf(cache, toolchain), [traced], { ...options, ...more }, version)!;

  it('returns the stored plan, to the bit', async () => {
    const cache = newCache();
    expect(place(cache).find()).toBeUndefined();
    await place(cache).keep(plan);
    expect(place(cache).find()).toEqual(plan);
    expect(listEntries(cache.path)).toMatchObject([{ kind: 'plan', name: 'p', compiler: 'cc 1' }]);
  });

  it('has the constants of the graph from the graph that it is found by', async () => {
    const cache = newCache();
    const traced = graph();
    const data = traced.nodes.flatMap(({ inputs }) => inputs).find((value) => value.data !== undefined)!
      .data!;
    await place(cache, {}, 'v1', {}, traced).keep({ ...plan, constants: [folded[1]!, data] });
    const again = graph();
    const found = place(cache, {}, 'v1', {}, again).find()!;
    expect(found.constants).toEqual([folded[1], table]);
    expect(again.nodes.some(({ inputs }) => inputs.some((value) => value.data === found.constants[1]))).toBe(
      true,
    );
    const { library } = cacheEntry(cache);
    expect(JSON.parse(readFileSync(library, 'utf8')).constants).toEqual([expect.any(Object), 0]);
  });

  it.each([
    ['another version of the compiler', (cache: Cache) => place(cache, {}, 'v2')],
    [
      'another version of Node',
      (cache: Cache) => {
        const { version } = process;
        try {
          Object.defineProperty(process, 'version', { value: 'v1.2.3' });
          return place(cache);
        } finally {
          Object.defineProperty(process, 'version', { value: version });
        }
      },
    ],
    ['frozen inputs', (cache: Cache) => place(cache, { frozen: ['x'] })],
    ['inputs in bfloat16', (cache: Cache) => place(cache, { storages: { x: 'bfloat16' } })],
    ['macros', (cache: Cache) => place(cache, { defines: ['LUTHIER_PROFILE'] })],
    ['another name', (cache: Cache) => place(cache, { name: 'q' })],
    ['another CPU', (cache: Cache) => place(cache, {}, 'v1', { cpu: 'x64 avx512f' })],
    [
      'another runtime',
      (cache: Cache) => place(cache, {}, 'v1', { runtime: { folder: '/cache/runtime-2', library: '' } }),
    ],
    [
      'another graph',
      (cache: Cache) =>
        place(
          cache,
          {},
          'v1',
          {},
          graphOf((x) => tf.square(x)),
        ),
    ],
    [
      'a graph that follows',
      (cache: Cache) => planPlace(toolchainOf(cache), [graph(), graph()], options, 'v1')!,
    ],
    [
      'another C compiler',
      (cache: Cache) =>
        place(cache, {}, 'v1', { compiler: { ...toolchainOf(cache).compiler, version: 'cc 2' } }),
    ],
    ['flags of the user', (cache: Cache) => place(cache, {}, 'v1', { env: { LUTHIER_CFLAGS: '-O0' } })],
  ])('is not found with %s', async (_, other) => {
    const cache = newCache();
    await place(cache).keep(plan);
    expect(other(cache).find()).toBeUndefined();
    await other(cache).keep({ ...plan, source: 'int y;\n' });
    expect(place(cache).find()).toEqual(plan);
    expect(other(cache).find()?.source).toBe('int y;\n');
  });

  it.each([
    ['cut off', (file: string) => truncateSync(file, 20)],
    ['changed', (file: string) => writeFileSync(file, readFileSync(file, 'utf8').replace('int x', 'int y'))],
  ])('that is %s is as none, and written again', async (_, damage) => {
    const cache = newCache();
    await place(cache).keep(plan);
    damage(cacheEntry(cache).library);
    expect(place(cache).find()).toBeUndefined();
    await place(cache).keep(plan);
    expect(place(cache).find()).toEqual(plan);
  });
});

/** The plan in the cache, and its file. */
function cacheEntry({ path }: { readonly path: string }, name = 'p'): CachedEntry & { library: string } {
  const entry = listEntries(path).find((each) => each.kind === 'plan' && each.name === name)!;
  return { ...entry, library: join(entry.folder, 'plan.json') };
}

/** Puts another factor into a plan, as one that is whole: whether it is used then shows. */
function exchange({ library, folder }: CachedEntry & { library: string }, from: string, to: string): void {
  const text = readFileSync(library, 'utf8').replace(from, to);
  writeFileSync(library, text);
  const manifest = join(folder, 'entry.json');
  const sha256 = createHash('sha256').update(text).digest('hex');
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), sha256 }));
}

describe.skipIf(!hasCompiler || process.env.LONG !== '1')('processes', () => {
  const name = `plan ${process.pid}`;
  const path = join(process.env.XDG_CACHE_HOME!, 'luthier');
  const compilerFolder = fileURLToPath(new URL('../../../../src/compiler', import.meta.url));

  async function run(
    folder: string,
    factor: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<any> {
    const script = 'test/compiler/native/stored/doublingProgram.ts';
    const { code, stdout, stderr } = await startCommand(
      [folder, name, String(factor)],
      undefined,
      script,
      env,
    ).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  }

  const allOf = (value: number): object => ({ results: [value, value, value, value] });

  longTest('take the plan of the same graph and the same compiler, and no other', async () => {
    const folder = join(temporaryDirectory(), 'compiler');
    cpSync(compilerFolder, folder, { recursive: true });
    for (const [from, to] of [
      ['../../../../node_modules', '../node_modules'],
      ['../../../../src/system', '../system'],
      ['../../../../src/files', '../files'],
    ] as const)
      symlinkSync(fileURLToPath(new URL(from, import.meta.url)), join(folder, to));
    // A process that starts while modules change keeps no plans.
    await setTimeout(100);
    expect(await run(folder, 1234.5)).toEqual(allOf(1234.5));
    exchange(cacheEntry({ path }, name), '1234.5', '4321.5');
    expect(await run(folder, 1234.5)).toEqual(allOf(4321.5));
    // Another graph; all stages are asked for; marks are wanted, and layers.
    expect(await run(folder, 1234)).toEqual(allOf(1234));
    const dump = temporaryDirectory();
    expect(await run(folder, 1234.5, { LUTHIER_DUMP: dump })).toEqual(allOf(1234.5));
    for (let i = 0; i < 2; i++)
      expect(await run(folder, 1234.5, { PROFILED: '1' })).toEqual({ ...allOf(1234.5), layers: ['net'] });
    // The compiler has changed.
    appendFileSync(join(folder, 'passes/cse.ts'), '\n');
    expect(await run(folder, 1234.5)).toEqual(allOf(1234.5));
  });
});
