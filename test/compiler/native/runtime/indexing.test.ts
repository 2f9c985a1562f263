/** @file Sums by segment, cumulative sums and top-k of the native runtime, against plain loops. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildChecks, thisMachine } from '../runtimeSupport.js';

const check = fileURLToPath(new URL('indexingCheck.c', import.meta.url));

describe.skipIf(!hasCompiler)('indexing', () => {
  let program = '';
  beforeAll(async () => {
    const folder = temporaryDirectory();
    const target = await thisMachine(true, folder);
    [program] = (await buildChecks([check], /^indexing\.c$/, target, folder)) as [string];
  });

  it.each(['segments', 'cumulative', 'largest'])('%s', async (part) => {
    expect(await execute(program, [part], { timeout: 60_000 })).toEqual({ stdout: '', stderr: '' });
  });
});
