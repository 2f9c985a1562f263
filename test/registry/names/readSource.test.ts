/** @file Views of source files that are kept: one of this text and this version alone, whatever became of the cache. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { readSourceFile } from '../../../src/registry/names/readSource.js';
import { temporaryDirectory } from '../../command.js';

const text = `import * as lm from './lm.js';
export { Other as Another } from './other.js';
export * from './rest.js';
const fields = { width: positive.default(4).describe('Of a layer.') };
/** The small one. */
export class Small extends lm.Base.with({ ...fields, depth: 2 }) {
  override rate = 0.1;
}
`;

let [folder, file] = ['', ''];
const views = (): string => join(folder, 'cache/luthier/typescript/sources');
const kept = (): string[] => readdirSync(views());

beforeEach(() => {
  folder = temporaryDirectory();
  file = join(folder, 'small.ts');
  writeFileSync(file, text);
  vi.stubEnv('XDG_CACHE_HOME', join(folder, 'cache'));
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** The function as another process has it. */
async function anew(): Promise<typeof readSourceFile> {
  vi.resetModules();
  return (await import('../../../src/registry/names/readSource.js')).readSourceFile;
}

test('a kept view is that of the compiler', async () => {
  const parsed = (await anew())(file);
  expect(parsed.classes.get('Small')).toMatchObject({ base: ['lm', 'Base'], line: 6, lastLine: 8 });
  expect(kept()).toHaveLength(1);
  const written = () => statSync(join(views(), kept()[0]!)).ino;
  const first = written();
  expect((await anew())(file)).toEqual(parsed);
  // What is parsed again is written again, to another file.
  expect([kept().length, written()]).toEqual([1, first]);
});

test('a changed file has another view, and an equal one elsewhere the same', async () => {
  const first = (await anew())(file);
  writeFileSync(file, text.replace('Small', 'Large'));
  expect([...(await anew())(file).classes.keys()]).toEqual(['Large']);
  expect(kept()).toHaveLength(2);
  writeFileSync(file, text);
  expect((await anew())(file)).toEqual(first);
  const [one, two] = ['one.ts', 'two.ts'].map((name) => join(folder, name));
  for (const broken of [one!, two!]) {
    writeFileSync(broken, 'export class {{{');
    expect((await anew())(broken).problem).toMatchObject({ file: broken, line: 1 });
  }
  expect(kept()).toHaveLength(3);
});

test.each(['', '{"classes":[["Wrong"', '[]', 'null'])('a damaged view is made again: %j', async (damaged) => {
  const parsed = (await anew())(file);
  const [name] = kept();
  const whole = readFileSync(join(views(), name!));
  writeFileSync(join(views(), name!), damaged);
  expect((await anew())(file)).toEqual(parsed);
  expect(readFileSync(join(views(), name!))).toEqual(whole);
});

test('where others may write, and where nothing can be kept, files are parsed', async () => {
  const parsed = (await anew())(file);
  const [name] = kept();
  chmodSync(join(folder, 'cache/luthier/typescript'), 0o777);
  writeFileSync(join(views(), name!), JSON.stringify({ ...parsed, classes: [['Planted', {}]] }));
  expect((await anew())(file)).toEqual(parsed);
  const blocked = join(folder, 'blocked');
  mkdirSync(blocked);
  writeFileSync(join(blocked, 'luthier'), '');
  vi.stubEnv('XDG_CACHE_HOME', blocked);
  expect((await anew())(file)).toEqual(parsed);
});

test('too many views begin anew', async () => {
  const parsed = (await anew())(file);
  for (let i = 0; i < 4000; i++) writeFileSync(join(views(), `${i}.json`), '');
  expect((await anew())(file)).toEqual(parsed);
  expect(kept()).toHaveLength(1);
});
