/** @file Mutants of the C runtime still apply to its sources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runtimeSources } from '../compiler/native/compilerSupport.js';
import { runtimeMutants } from './runtimeMutants.js';

it('each finds its text once, and changes it', () => {
  const stale = runtimeMutants.filter(({ file, find, replace }) => {
    const parts = readFileSync(join(runtimeSources, file), 'utf8').split(find);
    return parts.length !== 2 || find === replace;
  });
  expect(stale).toEqual([]);
});
