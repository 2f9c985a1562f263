/** @file Elementwise functions of the runtime: the compiler makes vector instructions of each in a loop. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { programFlags } from '../../../../src/compiler/native/toolchain/compileC.js';
import { cpuFeatures } from '../../../../src/compiler/native/toolchain/cpuFeatures.js';
import { temporaryDirectory } from '../../../command.js';
import { compilerPath, execute, hasCompiler, runtimeSources } from '../compilerSupport.js';

const isGcc =
  hasCompiler && (await execute(compilerPath(), ['--version'])).stdout.includes('Free Software Foundation');

/** Bounded by a product of 64 bits, for which AVX2 has no instruction. */
const SCALAR = ['lt_random_int'];

const headers = readdirSync(runtimeSources).filter((file) => file.endsWith('math.h'));
const declaration = /^LT_MATH (\w+) (lt_\w+)\(([^*)]*)\)/gm;
const functions = headers
  .flatMap((file) => [...readFileSync(join(runtimeSources, file), 'utf8').matchAll(declaration)])
  .map(([, result, name, parameters]) => ({
    result: result!,
    name: name!,
    types: parameters!.split(',').map((parameter) => parameter.trim().split(' ')[0]!),
  }));

/** A function on one line that calls another for each element, as loops of programs do. */
function loopOf({ result, name, types }: (typeof functions)[number]): string {
  const parameters = types.map((type, i) => `const ${type} *restrict x${i}`);
  const call = `${name}(${types.map((_, i) => `x${i}[j]`)})`;
  return (
    `void loop_${name}(${result} *restrict y, ${parameters}) ` +
    `{ _Pragma("omp simd") for (int32_t j = 0; j < 512; j++) y[j] = ${call}; }`
  );
}

describe.skipIf(!isGcc || process.arch !== 'x64')('the compiler', () => {
  it('finds vector instructions for every function', async () => {
    expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(['lt_erff', 'lt_powf']));
    const folder = temporaryDirectory();
    const source = join(folder, 'loops.c');
    writeFileSync(source, ['#include "vectormath.h"', ...functions.map(loopOf), ''].join('\n'));
    const flags = [...programFlags(await cpuFeatures()), '-I', runtimeSources, '-fopt-info-vec-optimized'];
    const { stderr } = await execute(compilerPath(), [...flags, '-c', source, '-o', join(folder, 'loops.o')]);
    const vectorized = new Set(
      [...stderr.matchAll(/^[^\n]*loops\.c:(\d+):/gm)].map(([, line]) => Number(line)),
    );
    const left = functions.filter((_, i) => !vectorized.has(i + 2)).map(({ name }) => name);
    expect(left.filter((name) => !SCALAR.includes(name))).toEqual([]);
  });
});
