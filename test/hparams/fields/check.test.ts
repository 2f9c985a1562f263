/** @file Async functions in the schemas of fields, refused by the field's name. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  ConfigError,
  Configurable,
  configurable,
  instance,
  setPath,
} from '../../../src/hparams/index.js';

const late = async (): Promise<any> => true;
const refined = z.string().refine(late);

class Fields extends Configurable.with({
  name: refined.optional(),
  same: refined.optional(),
  list: z.array(z.int().superRefine(late)).default([]),
  union: z.union([z.int(), z.custom<string>(late)]).default(1),
  made: z
    .int()
    .transform(late as () => never)
    .optional(),
  checked: z.string().check(late).optional(),
  lazy: z.lazy(() => refined).optional(),
}) {}

const refinement = 'a refinement or transform must not be async: its result counts when it returns';
const places = / \(at test\/hparams\/fields\/check\.test\.ts:\d+\)$/;

test.each([
  [{ name: 'a' }, `Fields.name: ${refinement}`],
  [{ same: 'a' }, `Fields.same: ${refinement}`],
  [{ list: [1] }, `Fields.list: ${refinement}`],
  [{ union: 'a' }, `Fields.union: ${refinement}`],
  [{ made: 1 }, `Fields.made: ${refinement}`],
  [{ checked: 'a' }, `Fields.checked: ${refinement}`],
  [{ lazy: 'a' }, `Fields.lazy: ${refinement}`],
])('%j', (values, message) => {
  let error: unknown;
  try {
    Fields.config(values as never);
  } catch (thrown) {
    error = thrown;
  }
  expect((error as Error).message).toMatch(places);
  expect((error as Error).message.replace(places, '')).toBe(message);
});

test('an async refinement or transform that rejects later does not end the process', async () => {
  const throwing = async (): Promise<boolean> => {
    throw new Error('too late');
  };
  class Refined extends Configurable.with({
    name: z.string().refine(throwing).optional(),
    list: z.array(z.int().refine(throwing)).optional(),
    either: z.union([z.int(), z.string().refine(throwing)]).optional(),
    made: z.string().transform(throwing).optional(),
    before: z.array(z.preprocess(throwing, z.int())).optional(),
  }) {}
  const unhandled: unknown[] = [];
  const note = (reason: unknown): unknown => unhandled.push(reason);
  process.on('unhandledRejection', note);
  for (const values of [{ name: 'a' }, { list: [1, 2] }, { either: 'a' }, { made: 'a' }, { before: [1, 2] }])
    expect(() => Refined.config(values as never)).toThrow(`${Object.keys(values)[0]}: ${refinement}`);
  await new Promise((done) => setTimeout(done, 10));
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

test('a flag, a default that is built, and the call of a factory', () => {
  expect(() => setPath(Fields.config(), 'name', 'a', '--set=name=a')).toThrow(
    new ConfigError(`name: ${refinement}.`, { path: 'name', place: '--set=name=a' }),
  );
  expect(() => setPath(Fields.config(), 'union', 'a', '--set=union=a')).toThrow(
    new ConfigError(`union: ${refinement}.`, { path: 'union', place: '--set=union=a' }),
  );
  class Part extends Configurable {}
  class Owner extends Configurable.with({ part: instance(Part).refine(late) }) {}
  expect(() => build(Owner.config())).toThrow(
    new ConfigError(`Owner.part: ${refinement}.\n  while building Owner`),
  );
  const call = configurable(({ name }) => name, { name: refined }, { name: 'call' });
  expect(() => build(call.partial())({ name: 'a' })).toThrow(new ConfigError(`call.name: ${refinement}`));
});
