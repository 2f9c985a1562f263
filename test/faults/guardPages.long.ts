/** @file Every case in machine code, every input, output and region of memory beside a closed page: nothing reaches beyond. */
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { typescript } from '../typescriptEnvironment.js';
import { draw, seed, title, tries } from './campaign.js';
import { guardedPrograms } from './guardedCases.js';

/** How many programs of each kind that is drawn. */
const DRAWN = tries(16, 2);
const programs = guardedPrograms(DRAWN);
const canGuard = process.platform === 'linux' && hasCompiler;

/** How a process on guarded memory ended, and the lines that it wrote. */
function runGuarded(kernel: string, numbers: readonly number[], which: 'all' | 'each' | 'beyond') {
  const args = ['--import', typescript, 'test/faults/guardedProgram.ts', kernel];
  const { stdout, stderr, signal, status } = spawnSync(
    process.execPath,
    [...args, String(DRAWN), numbers.join(','), which],
    { env: { ...process.env, SEED: String(seed), LUTHIER_GUARD_PAGES: '1' }, encoding: 'utf8' },
  );
  const lines = stdout.trim().split('\n');
  return { how: `${signal ?? status} ${stderr}`.trim(), last: lines.at(-1)!, isWhole: status === 0 };
}

/** What was killed, or failed, by case. */
function findings(kernel: string, numbers: readonly number[]): string[] {
  const found: string[] = [];
  let left = numbers;
  while (left.length > 0) {
    const { how, last, isWhole } = runGuarded(kernel, left, 'all');
    if (isWhole) return found;
    const number = Number.parseInt(last, 10);
    const alone = runGuarded(kernel, [number], 'each');
    found.push(`${alone.isWhole ? last : alone.last} (${alone.isWhole ? how : alone.how})`);
    left = left.slice(left.indexOf(number) + 1);
    if (Number.isNaN(number)) return found;
  }
  return found;
}

const all = programs.map((_, i) => i);
/** Those that are drawn, and as many of the others as there is time for. */
const chosen =
  tries(1, 0) === 1
    ? all
    : [
        ...all.slice(0, 3 * DRAWN),
        ...draw(fc.shuffledSubarray(all.slice(3 * DRAWN), { minLength: 8, maxLength: 8 }), 1, 0x9d)[0]!,
      ];

test.skipIf(!canGuard).each(['auto', 'avx512', 'avx2', 'portable'])(
  title(`nothing is touched beyond its end, kernel %s${canGuard ? '' : ' (needs Linux and a C compiler)'}`),
  (kernel) => expect(findings(kernel, kernel === 'auto' ? chosen : all.slice(0, 3 * DRAWN))).toEqual([]),
);

test.skipIf(!canGuard).each([
  ['end', 'a write behind the end'],
  ['start', 'a write before the start'],
])('what reaches beyond the %s is killed, and told', (side, what) => {
  expect(runGuarded(side, [], 'beyond')).toEqual({ how: 'SIGSEGV', last: what, isWhole: false });
});
