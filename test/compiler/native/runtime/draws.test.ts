/** @file Random numbers of the native runtime stay within their arrays, and do not depend on what else is drawn. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildChecks, thisMachine } from '../runtimeSupport.js';

it.skipIf(!hasCompiler)('arrays of many lengths, alone and together', async () => {
  const check = fileURLToPath(new URL('drawsCheck.c', import.meta.url));
  const folder = temporaryDirectory();
  const target = await thisMachine(true, folder);
  const [program] = await buildChecks([check], /^(draws|team)\.c$/, target, folder);
  expect(await execute(program!, [], { timeout: 60_000 })).toEqual({ stdout: '', stderr: '' });
});
