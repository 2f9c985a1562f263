/** @file `luthier` and `luthier/typescript` under older Nodes. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';

/** The output of a Node that says it is of another version, and its exit code. */
function underNode(version: string, ...args: readonly string[]): readonly [number, string] {
  const preload = join(temporaryDirectory(), 'version.cjs');
  writeFileSync(preload, `Object.defineProperty(process, 'version', { value: 'v${version}' });`);
  try {
    return [
      0,
      execFileSync(process.execPath, ['--require', preload, ...args], { encoding: 'utf8', stdio: 'pipe' }),
    ];
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: string };
    return [status, stderr];
  }
}

test('an older Node is told in one line which is needed', () => {
  const told = (version: string) => `Luthier needs Node 20.19 or newer: this is Node ${version}.\n`;
  const command = ['src/tools/luthier.js', 'train', '--exp=lm.Small'];
  for (const version of ['18.20.8', '20.18.3'])
    expect(underNode(version, ...command)).toEqual([1, told(version)]);
  const program = ['--import', './src/system/typescript.js', '--eval', '1'];
  expect(underNode('18.20.8', ...program)).toEqual([1, told('18.20.8')]);
  expect(underNode('20.19.0', ...program)).toEqual([0, '']);
  expect(underNode('22.1.0', ...program)).toEqual([0, '']);
});
