/** @file All cases of the native runtime's kernels against plain loops, by every microkernel, under sanitizers. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { oneIn, seed, tries } from '../../../faults/campaign.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildChecks, thisMachine } from '../runtimeSupport.js';

const checks = [
  'attentionCheck.c',
  'gemmProducts.c',
  'convolutionCheck.c',
  'depthwiseCheck.c',
  'indexingCheck.c',
  'drawsCheck.c',
  'integersCheck.c',
].map((name) => fileURLToPath(new URL(name, import.meta.url)));
const kernels = oneIn(2, ['portable', 'neon', 'avx2', 'avx512', 'avx512bf16', 'amx']);

/** Paths of the checks' programs. */
type Programs = [string, string, string, string, string, string, string];

function attentionOf(program: () => string, kernel: string): void {
  it.each(['random', 'threads', 'slices', 'edges', 'long', 'empty', 'nan', 'windows', 'mask'])(
    '%s',
    async (part) => {
      const { stdout } = await execute(program(), [kernel, part], { timeout: 600_000 });
      expect(['', `${kernel}: not here\n`]).toContain(stdout);
    },
  );
}

describe.skipIf(!hasCompiler)('instructions of this machine', () => {
  let [attention, products, convolutions, depthwise, indexing, draws, integers]: Programs = [
    ...(['', '', '', '', '', '', ''] as const),
  ];
  beforeAll(async () => {
    const sources =
      /^(gemm.*|attention.*|quantized.*|integer.*|team|winograd.*|depthwise|indexing|draws|random|pages|productRate)\.c$/;
    const folder = temporaryDirectory();
    const target = await thisMachine(true, folder);
    // Few CPUs have AMX: its tiles are emulated. Where they are real, `kernels.test.ts` tests them.
    const flags = [...target.flags, '-DLT_EMULATED_TILES'];
    const programs = await buildChecks(checks, sources, { ...target, flags }, folder);
    [attention, products, convolutions, depthwise, indexing, draws, integers] = programs as Programs;
  });

  describe.each(kernels)('attention, %s', (kernel) => attentionOf(() => attention, kernel));

  it.each(kernels)('convolutions, %s', async (kernel) => {
    const { stdout } = await execute(convolutions, [kernel], { timeout: 600_000 });
    expect(['finished\n', `${kernel}: not here\n`]).toContain(stdout);
  });

  it('convolutions of each channel', async () => {
    expect((await execute(depthwise, [], { timeout: 600_000 })).stdout).toBe('finished\n');
  });

  it.each(['segments', 'cumulative', 'largest'])('%s', async (part) => {
    expect(await execute(indexing, [part], { timeout: 60_000 })).toEqual({ stdout: '', stderr: '' });
  });

  it('products of integers have the same bits by all instructions', async () => {
    expect((await execute(integers, [], { timeout: 60_000 })).stdout).toBe('finished\n');
  });

  it('arrays of random numbers, of many lengths, alone and together', async () => {
    expect(await execute(draws, [], { timeout: 60_000 })).toEqual({ stdout: '', stderr: '' });
  });

  /** What the program says where all is right. */
  const report = (float32: string, bfloat16: string): string =>
    Object.entries({ float32, bfloat16, rounded: float32, kept: float32 })
      .flatMap(([precision, kernel]) => [
        `${precision} runs ${kernel}\n`,
        ...['packing', 'gemm', 'products', 'special cases', 'peak'].map(
          (group) => `${precision} ${group}: ok\n`,
        ),
      ])
      .join('');

  const floats = [
    ['portable', 'portable'],
    ['neon', 'neon'],
    ['avx2', 'avx2'],
    ['avx512', 'avx512'],
    ['avx512bf16', 'avx512'],
    ['amx', 'avx512'],
  ].filter(([kernel]) => kernels.includes(kernel!));
  it.each(floats as [string, string][])('products, %s', async (kernel, float32) => {
    const { stdout } = await execute(products, [kernel], { timeout: 600_000 });
    const here = kernel === 'portable' || stdout !== `${kernel}: not here\n`;
    expect(stdout).toBe(here ? report(float32, kernel) : `${kernel}: not here\n`);
  });

  it('no other kernel is known', async () => {
    expect((await execute(products, ['sse'])).stdout).toBe('sse: not here\n');
  });

  it('the environment variable selects the kernel', async () => {
    const chosen = async (name: string): Promise<string> =>
      (await execute(products, [], { env: { ...process.env, LUTHIER_KERNEL: name } })).stdout;
    expect(await chosen('portable')).toBe('portable portable\n');
    expect(await chosen('abacus')).toBe(await chosen('auto'));
  });
});

// Without the machine's instructions, loops are what other CPUs run. With SHORT=1, one run in three tries them.
describe.skipIf(!hasCompiler || seed % tries(1, 3) !== 0)('instructions of any machine', () => {
  let attention = '';
  beforeAll(async () => {
    const sources = /^(gemm|gemmP.*|quantizedP.*|integerP.*|attention.*|team)\.c$/;
    const folder = temporaryDirectory();
    const target = await thisMachine(false, folder);
    [attention] = (await buildChecks([checks[0]!], sources, target, folder)) as [string];
  });

  describe('attention, portable', () => attentionOf(() => attention, 'portable'));
});
