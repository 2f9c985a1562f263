/** @file Ranks that are threads exchange what they should and touch nothing else, under sanitizers. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { compilerPath, execute, hasSanitizer, runtimeSources } from '../compilerSupport.js';

const folder = temporaryDirectory();

for (const sanitizer of ['address,undefined', 'thread'])
  it.skipIf(!(await hasSanitizer(sanitizer, folder)))(`collectives, ${sanitizer}`, async () => {
    const program = join(folder, sanitizer);
    const { stderr } = await execute(compilerPath(), [
      ...['-std=gnu11', '-fopenmp-simd', '-Wall', '-Wextra', '-Werror', '-O1', '-g'],
      ...[`-fsanitize=${sanitizer}`, '-fno-sanitize-recover=all', '-I', runtimeSources],
      ...['threadRanks.c', 'collectives.c'].map((file) => join(runtimeSources, file)),
      fileURLToPath(new URL('ranksCheck.c', import.meta.url)),
      ...['-o', program, '-lpthread', '-lm'],
    ]);
    expect(stderr).toBe('');
    expect(await execute(program, [], { timeout: 600_000 })).toEqual({ stdout: '', stderr: '' });
  });
