/** @file Planted hangs: endless loops in an input, in its thread, in a program, in machine code; an input that waits for a stopped process. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readStatus } from '../../../src/runs/runStatus.js';
import { startCommand, temporaryDirectory } from '../../command.js';
import { metricLines, stateAt, stepReached } from '../runs.js';
import { hungRun, LIMIT } from './hangs.js';

test.each([
  ['input', 'input', /Main thread:\n {4}at spinForever .*hanging\.ts/],
  ['prefetch', 'input', /\[worker \d+\] prefetch train:\n {4}at spinForever .*hanging\.ts/],
  ['callback', 'callback', /Main thread:\n {4}at spinForever .*hanging\.ts/],
])(
  'an endless loop in %s is found, told with its stack, and the last step is saved',
  async (where, unit, stack) => {
    const { log, step, seconds, stdout } = await hungRun(where);
    expect(seconds).toBeLessThan(LIMIT + 2);
    expect(log.split('\n')[0]).toContain(`It is in: ${unit}.`);
    expect(log).toMatch(stack);
    expect(stdout).toContain(`Saved at step ${step} of 100000; the same command goes on from there.`);
  },
  120_000,
);

test('an endless loop in machine code saves nothing, and names the newest checkpoint', async () => {
  const [folder, directory] = [temporaryDirectory(), temporaryDirectory()];
  const [header, trigger] = [join(folder, 'hang.h'), join(folder, 'hang')];
  writeFileSync(
    header,
    `#include <unistd.h>
     #include "program.h"
     static inline int until_gone(void) { while (access("${trigger}", F_OK) == 0) {} return 0; }
     #define lt_run(...) (until_gone(), lt_run(__VA_ARGS__))`,
  );
  const flags = ['--exp=hanging.Hanging', `--job_log_dir=${directory}`, '--engine=native'];
  const run = startCommand(flags, undefined, undefined, { LUTHIER_CFLAGS: `-include ${header}` });
  await stepReached(directory, 40, run);
  writeFileSync(trigger, '');
  const began = performance.now();
  const { code, stdout, stderr } = await run.finished;
  expect(code, stderr).toBe(1);
  expect((performance.now() - began) / 1000).toBeLessThan(LIMIT + 2 + 10);
  const { step } = metricLines(directory).at(-1) as { step: number };
  expect(stderr).toContain(`The run hangs after step ${step}: `);
  expect(stderr).toContain('It is in: step.');
  const newest = Math.floor(step / 4) * 4;
  expect(stdout).toContain(
    `Not saved at step ${step}: the step after ${step} failed half-way, so the state is that of no step. ` +
      `The newest checkpoint is that of step ${newest}.`,
  );
}, 120_000);

test('a run whose input waits for a stopped process ends with its last step saved', async () => {
  const { directory, log, step, seconds, stdout, stderr } = await hungRun('worker');
  expect(seconds).toBeLessThan(LIMIT + 2);
  const first = log.split('\n')[0]!;
  expect(first).toMatch(
    new RegExp(
      `^The run hangs after step ${step}: nothing has finished for [\\d.]+ s ` +
        `\\(the limit is 2 median steps of [\\d.e-]+ s, at least 3 s\\)\\. It is in: input\\.$`,
    ),
  );
  expect(log).toContain('\nMain thread:\n');
  if (process.platform === 'linux') expect(log).toMatch(/Child processes:\n {4}\d+ cat: is stopped/);
  expect(stderr).toContain(`${first} Stacks of its threads are in ${join(directory, 'hang.txt')}.`);
  expect(stdout).toContain(`Saved at step ${step} of 100000; the same command goes on from there.`);
  expect(stateAt(directory, step).length).toBeGreaterThan(0);
  expect(readStatus(directory)).toMatchObject({ state: 'failed', reason: expect.stringContaining(first) });
}, 120_000);
