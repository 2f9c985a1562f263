/** @file The processes of `luthier validate`: what they leave behind, and experiments that harm their process. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runLuthier, startCommand, temporaryDirectory } from '../../command.js';
import { byName, family, project } from '../experiments.js';

/** What luthier has in a directory for temporary files; others have theirs there, too. */
function made(temporary: string): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith('luthier'));
}

test('a step is taken in a directory that does not stay; what is too large for the machine is not tried', async () => {
  const temporary = temporaryDirectory();
  const own = project({
    'experiments/base.ts': family,
    'experiments/step.ts': `import { Family } from './base.js';
export class Small extends Family {}
export class Infinite extends Family {
  override rate = 1e300;
}
export class Huge extends Family {
  override modelDims = 200_000;
}
`,
  });
  const { stdout, code } = await runLuthier(['validate', '--level=4', '--format=json'], own, {
    TMPDIR: temporary,
  });
  const found = byName(stdout);
  expect(found['step.Small']).toMatchObject({ state: 'passed', reached: 'step', problems: [] });
  expect(found['step.Infinite']).toMatchObject({
    state: 'failed',
    reached: 'trace',
    problems: [
      'train: learning/var_norm',
      'eval_train: Metrics/total_loss',
      'eval_test_test: Metrics/total_loss',
    ].map((path) => ({ level: 'step', path, message: 'is NaN after one step.' })),
  });
  expect(found['step.Huge']).toMatchObject({
    state: 'incomplete',
    reached: 'trace',
    problems: [{ level: 'step', needs: expect.stringMatching(/^a machine with \d+\.\d+ TB of memory$/) }],
  });
  expect(code).toBe(1);
  expect(made(temporary)).toEqual([]);
  expect(readdirSync(own).sort()).toEqual(['experiments', 'node_modules', 'package.json']);
});

test('what an experiment leaves running, and running out of memory, harms none of the others', async () => {
  const own = project({
    'experiments/base.ts': family,
    'experiments/late.ts': `import { Family } from './base.js';
export class AnExit extends Family {
  override task() {
    setTimeout(() => process.exit(5), 200);
    return super.task();
  }
}
export class Before extends Family {}
export class Memory extends Family {
  override task() {
    for (const held: unknown[] = []; ; ) held.push(new Array(1_000_000).fill(held.length + 0.5));
    return super.task();
  }
}
export class Next extends Family {}
`,
  });
  const { stdout } = await runLuthier(['validate', '--format=json'], own, {
    NODE_OPTIONS: '--max-old-space-size=400',
  });
  const found = byName(stdout);
  expect(found['late.Before']).toMatchObject({ state: 'passed' });
  expect(found['late.Memory']).toMatchObject({
    state: 'failed',
    reached: 'resolve',
    problems: [{ level: 'task', message: 'The process ran out of memory.' }],
  });
  expect(found['late.Next']).toMatchObject({ state: 'passed' });
});

test('a signal ends the processes, and nothing is left behind', async () => {
  const temporary = temporaryDirectory();
  const own = project({
    'experiments/base.ts': family,
    'experiments/bad.ts': `import { Family } from './base.js';
export class Hangs extends Family {
  override task() {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return super.task();
  }
}
`,
  });
  const { child, finished } = startCommand(['validate', 'Hangs'], own, 'src/tools/commandLine.ts', {
    TMPDIR: temporary,
  });
  while (made(temporary).length === 0) await new Promise((done) => setTimeout(done, 50));
  child.kill('SIGTERM');
  expect((await finished).signal).toBe('SIGTERM');
  expect(made(temporary)).toEqual([]);
});
