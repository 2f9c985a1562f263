/** @file The team of threads keeps its promises, on futexes and on condition variables, under sanitizers. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { runs } from '../../../faults/campaign.js';
import { compilerPath, execute, hasCompiler, hasSanitizer, runtimeSources } from '../compilerSupport.js';

const folder = temporaryDirectory();
const checks = ['threads', 'callers', 'fork', 'sleep', 'pauses'];
const builds = (
  [
    { sanitizer: undefined, waiting: 'futexes' },
    { sanitizer: 'address,undefined', waiting: 'futexes' },
    { sanitizer: 'address,undefined', waiting: 'conditions' },
    { sanitizer: 'thread', waiting: 'futexes' },
    { sanitizer: 'thread', waiting: 'conditions' },
  ] as const
).map((build, i) => ({ ...build, program: join(folder, `team${i}`) }));

for (const { sanitizer, waiting, program } of builds) {
  const available = sanitizer === undefined ? hasCompiler : await hasSanitizer(sanitizer, folder);
  describe.skipIf(!available)(`${waiting}, ${sanitizer ?? 'optimised'}`, () => {
    it('compiles without a warning', async () => {
      const { stderr } = await execute(compilerPath(), [
        ...['-std=gnu11', '-fopenmp-simd', '-Wall', '-Wextra', '-Werror'],
        ...(sanitizer === undefined ? ['-O2'] : ['-O1', '-g', `-fsanitize=${sanitizer}`]),
        ...(waiting === 'conditions' ? ['-DLT_NO_FUTEX'] : []),
        ...['-I', runtimeSources, join(runtimeSources, 'team.c')],
        fileURLToPath(new URL('teamCheck.c', import.meta.url)),
        ...['-o', program, '-lpthread', '-ldl', '-lm'],
      ]);
      expect(stderr).toBe('');
    });

    // The thread sanitizer itself can't start threads after a fork.
    const possible = checks.filter((check) => !(check === 'fork' && sanitizer === 'thread'));
    it.each(possible)('%s', async (check) => {
      expect(await execute(program, [check, String(runs(200, 8))], { timeout: 600_000 })).toEqual({
        stdout: '',
        stderr: '',
      });
    });
  });
}
