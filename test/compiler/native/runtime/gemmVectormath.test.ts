/** @file The functions of vectormath.h against the C library in doubles, and against what ops/random.ts computes. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { machineFlags } from '../../../../src/compiler/native/toolchain/compilerFlags.js';
import { cpuFeatures } from '../../../../src/compiler/native/toolchain/cpuFeatures.js';
import { foldInHost, mix32 } from '../../../../src/compiler/random/randomWords.js';
import { temporaryDirectory } from '../../../command.js';
import { compilerPath, execute, hasCompiler, hasSanitizer, runtimeSources } from '../compilerSupport.js';

const folder = temporaryDirectory();
const sanitized = await hasSanitizer('address,undefined', folder);
const source = fileURLToPath(new URL('gemmVectormath.c', import.meta.url));

/** randomUniformHost at the positions that the program prints. */
const uniform = Array.from({ length: 8 }, (_, i) =>
  Math.fround((mix32(mix32((i * 1000003 + 0x12345678) | 0) ^ 0xfedcba98) >>> 8) * 2 ** -24),
);

const builds: [string, string[]][] = [
  ['for this machine', ['-O2', '-ftree-vectorize', ...machineFlags(await cpuFeatures())]],
  ['for any machine', ['-O2', '-ftree-vectorize']],
  [
    'under sanitizers',
    ['-O1', ...(sanitized ? ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'] : [])],
  ],
];

describe.skipIf(!hasCompiler)('vectormath.h', () => {
  it.each(builds)('%s', async (name, flags) => {
    const program = join(folder, name.replaceAll(' ', '_'));
    const common = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-fopenmp-simd'];
    const exact = ['-fno-math-errno', '-fno-trapping-math', '-I', runtimeSources];
    await execute(compilerPath(), [...common, ...exact, ...flags, source, '-o', program, '-lm']);
    const lines = (await execute(program, [])).stdout.trimEnd().split('\n');
    expect(lines.pop()).toBe('finished 42');
    const random = lines.pop()!.split(' ').slice(1).map(Number);
    expect(lines.filter((line) => !line.endsWith(': ok'))).toEqual([]);
    expect(random).toEqual([...uniform, ...foldInHost([5, 6], 42)]);
  });
});
