/** @file Mutants of a source file and their places. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { mutantsOf } from './candidates.js';

test('mutants of StrykerJS and slips stand where they say, and messages have none', async () => {
  const folder = temporaryDirectory();
  const lines = [
    'export function check(size: number) {',
    "  if (size < 2) throw new Error('Size is below 2.');",
    '}',
  ];
  writeFileSync(join(folder, 'a.ts'), lines.join('\n'));
  const mutants = await mutantsOf(folder, 'a.ts');
  expect(
    mutants.map(({ kind, line, column, original, replacement }) => ({
      at: `${line}:${column}`,
      kind,
      original,
      replacement,
    })),
  ).toEqual([
    {
      at: '1:37',
      kind: 'BlockStatement',
      original: lines.join('\n').slice(36),
      replacement: '{}',
    },
    { at: '2:7', kind: 'ConditionalExpression', original: 'size < 2', replacement: 'true' },
    { at: '2:7', kind: 'ConditionalExpression', original: 'size < 2', replacement: 'false' },
    { at: '2:7', kind: 'EqualityOperator', original: 'size < 2', replacement: 'size <= 2' },
    { at: '2:7', kind: 'EqualityOperator', original: 'size < 2', replacement: 'size >= 2' },
    { at: '2:14', kind: 'NextNumber', original: '2', replacement: '3' },
  ]);
});
