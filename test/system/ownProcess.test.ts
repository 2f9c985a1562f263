/** @file The command as a child process: what it inherits of Node's flags, and how its output is told apart. */
import { afterEach, expect, test, vi } from 'vitest';
import { OwnProcess } from '../../src/system/ownProcess.js';

const { execArgv } = process;
afterEach(() => {
  process.execArgv = execArgv;
  vi.restoreAllMocks();
});

test("it has Node's flags but for tsx, which it loads itself, and each of its lines has the prefix", async () => {
  const loads = (word: string) => `data:text/javascript,console.log("${word}")`;
  process.execArgv = [
    ...['--max-old-space-size=300', '--import', 'tsx', '--import=tsx', '-r', 'tsx/cjs'],
    ...[`--import=${loads('first')}`, '--import', loads('second')],
  ];
  const lines: unknown[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(line) > 0);
  expect(await new OwnProcess(['list', '--help'], '[3] ').ended).toBe(0);
  expect(lines.slice(0, 2)).toEqual(['[3] first\n', '[3] second\n']);
  expect(lines.slice(2).join('')).toMatch(/^\[3\] .*Lists experiments[^\n]*\n(\[3\] [^\n]+\n)+$/);
});
