/** @file What an error says of itself: its message, the config path, and the place in the project. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { failureOf } from '../../src/analysis/failure.js';
import { temporaryDirectory } from '../command.js';

/** A file of the project, and one of a package. */
function files(): [own: string, packaged: string] {
  const folder = temporaryDirectory();
  const [own, packaged] = [join(folder, 'lm.ts'), join(folder, 'node_modules/tools/index.js')];
  mkdirSync(join(folder, 'node_modules/tools'), { recursive: true });
  for (const file of [own, packaged]) writeFileSync(file, '');
  return [own, packaged];
}

const thrown = (...frames: string[]): Error =>
  Object.assign(new Error('no such size'), { stack: `Error: no such size\n${frames.join('\n')}` });

test('the place is the innermost line of the project that is there', () => {
  const [own, packaged] = files();
  const url = `${pathToFileURL(own)}?at=3`;
  const outer = `    at main (${own}:90:1)`;
  const places = [
    [`    at build (${own}:41:7)`, outer],
    [`    at async ${own}:41:7`, outer],
    [`    at build (${url}:41:7)`, outer],
    ['    at node:internal/main:1:2', `    at tool (${packaged}:3:9)`, `    at build (${own}:41:7)`, outer],
    [`    at gone (${own}.map:7:7)`, `    at build (${own}:41:7)`],
  ].map((frames) => failureOf(thrown(...frames)));
  for (const { message, place } of places) expect([message, place]).toEqual(['no such size', `${own}:41`]);
  expect(failureOf(thrown(`    at tool (${packaged}:3:9)`))).toEqual({ message: 'no such size' });
});

test('a cause adds what it alone says; its place counts before that of its wrapper', () => {
  const [own] = files();
  const cause = thrown(`    at build (${own}:12:7)`);
  const wrapper = Object.assign(new Error('lm.Small: no such size'), {
    stack: `\n    at (${own}:1:1)`,
    cause,
  });
  expect(failureOf(wrapper)).toEqual({ message: 'lm.Small: no such size', place: `${own}:12` });
  expect(failureOf('a text')).toEqual({ message: 'a text' });
});
