/** @file Products of the native runtime against loops in doubles, by every microkernel that this CPU runs, under sanitizers. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { ownFlags } from '../../../../src/compiler/native/toolchain/runtimeLibrary.js';
import { temporaryDirectory } from '../../../command.js';
import { compilerPath, execute, hasCompiler, hasSanitizer, runtimeSources } from '../compilerSupport.js';

const folder = temporaryDirectory();
const program = join(folder, 'products');
const sanitized = (await hasSanitizer('address,undefined', folder))
  ? ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
  : [];
const common = [
  '-std=gnu11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-fopenmp-simd',
  '-fno-math-errno',
  '-fno-trapping-math',
];

/** Compiles one file of the runtime as the toolchain would, sanitized; false where the compiler lacks its flags. */
async function compiled(file: string, defines: readonly string[]): Promise<boolean> {
  const own = ownFlags(readFileSync(join(runtimeSources, file), 'utf8')) ?? [];
  const args = [...common, ...own, ...sanitized, ...defines, '-c', join(runtimeSources, file)];
  try {
    await execute(compilerPath(), [...args, '-o', join(folder, `${file}.o`)]);
    return true;
  } catch (error) {
    if (own.some((flag) => flag.startsWith('-m')) && /unrecognized|unknown|unsupported/.test(`${error}`))
      return false;
    throw error;
  }
}

describe.skipIf(!hasCompiler)('products', () => {
  beforeAll(async () => {
    const files = readdirSync(runtimeSources).filter((file) => /^(gemm.*|team)\.c$/.test(file));
    const special = files.filter((file) => /Avx/.test(file));
    const kept: string[] = [];
    await Promise.all(special.map(async (file) => (await compiled(file, [])) && kept.push(file)));
    const defines = kept.map((file) => `-DLT_HAVE_${file.replace('.c', '').toUpperCase()}`);
    const rest = files.filter((file) => !special.includes(file));
    await Promise.all(rest.map((file) => compiled(file, defines)));
    // The check itself is not sanitized: its loops take most of the time, and the heap's edges are watched anyway.
    const check = fileURLToPath(new URL('gemmProducts.c', import.meta.url));
    await execute(compilerPath(), [
      ...common,
      '-O2',
      '-I',
      runtimeSources,
      '-c',
      check,
      '-o',
      `${program}.o`,
    ]);
    const objects = [`${program}.o`, ...[...kept, ...rest].map((file) => join(folder, `${file}.o`))];
    await execute(compilerPath(), [...sanitized, ...objects, '-o', program, '-lpthread', '-ldl', '-lm']);
  });

  /** What the program says where all is right. */
  const report = (float32: string, bfloat16: string): string =>
    Object.entries({ float32, bfloat16 })
      .flatMap(([precision, kernel]) => [
        `${precision} runs ${kernel}\n`,
        ...['packing', 'gemm', 'products', 'special cases', 'peak'].map(
          (group) => `${precision} ${group}: ok\n`,
        ),
      ])
      .join('');

  it.each([
    ['portable', 'portable'],
    ['avx2', 'avx2'],
    ['avx512', 'avx512'],
    ['avx512bf16', 'avx512'],
  ])('%s', async (kernel, float32) => {
    const { stdout } = await execute(program, [kernel], { timeout: 120_000 });
    const here = kernel === 'portable' || stdout !== `${kernel}: not here\n`;
    expect(stdout).toBe(here ? report(float32, kernel) : `${kernel}: not here\n`);
  });

  it('knows no other kernel', async () => {
    expect((await execute(program, ['sse'])).stdout).toBe('sse: not here\n');
  });

  it('the environment chooses the kernel, where it names one', async () => {
    const chosen = async (name: string): Promise<string> =>
      (await execute(program, [], { env: { ...process.env, LUTHIER_KERNEL: name } })).stdout;
    expect(await chosen('portable')).toBe('portable portable\n');
    expect(await chosen('abacus')).toBe(await chosen('auto'));
  });
});
