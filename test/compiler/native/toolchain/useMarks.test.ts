/** @file Marks of use by other machines: they hold for a week, also where a clock is wrong. */
import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inUse } from '../../../../src/compiler/native/toolchain/useMarks.js';
import { temporaryDirectory } from '../../../command.js';

const day = 24 * 3600;

test.each([
  ['of now', 0, true],
  ['of six days ago', -6 * day, true],
  ['of eight days ago', -8 * day, false],
  ['of a clock that is a day ahead', day, true],
  ['of a clock that is 52 years ahead', 52 * 365 * day, false],
])('a mark %s', (_, seconds, isUsed) => {
  const folder = temporaryDirectory();
  const mark = join(folder, 'use-elsewhere-1-1');
  writeFileSync(mark, '');
  const time = Date.now() / 1000 + seconds;
  utimesSync(mark, time, time);
  expect(inUse(folder)).toBe(isUsed);
  expect(existsSync(mark)).toBe(isUsed);
});
