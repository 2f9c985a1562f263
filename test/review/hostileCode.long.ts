/** @file Experiments whose code attacks the process that evaluates them, and data that they read: each told by itself. */
import { expect } from 'vitest';
import { kinds } from './kinds.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds();

const rows = (label: number) =>
  JSON.stringify(Array.from({ length: 200 }, (_, i) => [i, i === 77 ? label : 0]));
const reading = `import { readFileSync } from 'node:fs';
${experimentsFile(`export class Reading extends Family {
  override task() {
    const points = JSON.parse(readFileSync(new URL('../lib/points.json', import.meta.url), 'utf8'));
    const task = super.task();
    task.train.numTrainSteps = points.length;
    return task;
  }
}`)}`;
const review = new ScratchReview({
  'experiments/family.ts': family,
  'experiments/fine.ts': experimentsFile('export class Fine extends Family {}'),
  'experiments/last.ts': experimentsFile('export class Zuletzt extends Family {}'),
  'experiments/reading.ts': reading,
  'experiments/settings.ts': `try {\n  process.loadEnvFile();\n} catch {}\n${experimentsFile('export class Env extends Family {}')}`,
  'lib/points.json': rows(0),
  '.env': 'A=1\n',
});

const hostile = (name: string, before: string, task: string) =>
  `${before}\n${experimentsFile(`export class ${name} extends Family {\n  override task() {\n    ${task}\n    return super.task();\n  }\n}`)}`;

test('each breaks alone: replaced functions, forged answers, proxies that are thrown, and long messages', async () => {
  const told = await review.told({
    'experiments/family.ts': (text: string) => `${text}// A word more.\n`,
    'experiments/hostile1.ts': hostile(
      'Stringify',
      "JSON.stringify = () => { throw new Error('mine'); };",
      '',
    ),
    'experiments/hostile2.ts': hostile(
      'Proxied',
      '',
      "throw new Proxy(new Error('no'), { get() { throw 1; }, getPrototypeOf() { throw 2; } });",
    ),
    'experiments/hostile3.ts': hostile('Long', '', "throw new Error('long '.repeat(30_000));"),
    'experiments/hostile4.ts': hostile(
      'Forged',
      "process.send({ answer: { name: 'last.Zuletzt', error: { message: 'forged' } }, reads: [] });\nprocess.send(7);",
      '',
    ),
    'experiments/hostile5.ts': hostile(
      'Malformed',
      'const { send } = process;\nprocess.send = (message) => send.call(process, { ...message, answer: [] });\nArray.prototype.flatMap = () => [{}];',
      '',
    ),
  });
  expect(told).toMatch(/^exit 1: Fails: \d break/);
  for (const name of ['hostile2.Proxied', 'hostile3.Long', 'hostile4.Forged']) expect(told).toContain(name);
  expect(told).toContain('4 the same');
  expect(told).toContain('It throws a value that throws when it is read.');
  expect(told).toContain('Its code sent another message than the answer.');
  expect(told.length).toBeLessThan(60_000);
  for (const name of ['fine.Fine', 'last.Zuletzt', 'reading.Reading', 'settings.Env'])
    expect(told).not.toContain(name);
});

test('a label of row 77 in a file that was read whole', async () => {
  const told = await review.told({ 'lib/points.json': rows(1) });
  // Whoever shares its process may have read the file as well.
  expect(told).toMatch(/^1 changes at the same cost, .* that the change does not reach\n/);
  expect(told).toContain('reading.Reading\n  config same, lib/points.json differs');
});

test('a file that process.loadEnvFile reads', async () => {
  const told = await review.told({ '.env': 'A=2\n' });
  expect(told).toContain('settings.Env\n  config same, .env differs');
});

test('a file beside it that nothing reads', async () => {
  expect(await review.told({ 'lib/other.json': '1' })).toBe('4 that the change does not reach');
  expect(await review.told({ 'experiments/fine.ts': instead('Fine', 'Fine') })).toMatch(/reach$/);
});

test('a filter of git-lfs that is not installed does not stop a review', async () => {
  const { git } = review.repository;
  git('config', 'filter.lfs.smudge', 'no-such-lfs smudge');
  git('config', 'filter.lfs.process', 'no-such-lfs process');
  git('config', 'filter.lfs.required', 'true');
  git('reset', '--quiet', '--hard', 'main');
  review.repository.write({ '.gitattributes': 'large.bin filter=lfs\n' });
  git('-c', 'filter.lfs.required=false', '-c', 'filter.lfs.process=', '-c', 'filter.lfs.clean=', 'add', '.');
  git('commit', '--quiet', '--message=lfs');
  git('branch', '--force', 'main');
  expect(await review.told({})).toMatch(/the change does not reach$/);
});
