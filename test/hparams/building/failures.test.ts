/** @file What a build that fails throws: the error of the class that failed, with the config's path told once. */
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  ConfigError,
  Configurable,
  configurable,
  factory,
  instance,
  sub,
} from '../../../src/hparams/index.js';

let failure: () => unknown = () => undefined;

class Part extends Configurable.with({ size: z.int().default(1) }) {
  override setup(): void {
    throw failure();
  }
}
class Middle extends Configurable.with({ tpl: sub(Part) }) {
  override setup(): void {
    build(this.hp.tpl);
  }
}
class Root extends Configurable.with({ parts: z.array(instance(Middle)) }) {}

const told = 'Building Part failed: too large\n  while building Middle at parts[0]';

class OwnError extends Error {
  override readonly name = 'OwnError';
  readonly #secret = 'kept';
  constructor(
    message: string,
    readonly code = 7,
  ) {
    super(message);
  }
  get secret(): string {
    return this.#secret;
  }
}

/** What a build throws where a part of it throws what `make` gives. */
function thrownBy(
  make: () => unknown,
  action: () => unknown = () => build(Root.config({ parts: [Middle.config()] })),
): unknown {
  failure = make;
  try {
    action();
  } catch (error) {
    return error;
  }
  return expect.unreachable();
}

test('an error keeps its class, its fields and its identity; the message and the stack have the path', () => {
  const own = new OwnError('too large');
  const { stack } = own;
  const error = thrownBy(() => own) as OwnError;
  expect(error).toBe(own);
  expect([error.message, error.code, error.secret, error.cause]).toEqual([told, 7, 'kept', undefined]);
  expect(error.stack).toBe(stack!.replace('too large', told));
  expect(inspect(error)).toContain(told);
  expect(Object.keys(error)).toEqual(Object.keys(new OwnError('')));
});

test('an error that is thrown again has the path of the later build alone', () => {
  const own = new OwnError('too large');
  for (let i = 0; i < 3; i += 1) expect((thrownBy(() => own) as Error).message).toBe(told);
  expect(
    (
      thrownBy(
        () => own,
        () => build([Part.config()]),
      ) as Error
    ).message,
  ).toBe('Building Part at [0] failed: too large');
  own.message = 'something else';
  expect(
    (
      thrownBy(
        () => own,
        () => build(Part.config()),
      ) as Error
    ).message,
  ).toBe('Building Part failed: something else');
});

test('an error that cannot be changed becomes the cause of a ConfigError', () => {
  for (const lock of [Object.freeze, Object.seal]) {
    const own = lock(new OwnError('too large', 9));
    const error = thrownBy(() => own) as ConfigError;
    expect([error.constructor, error.message, (error.cause as ConfigError).cause === own]).toEqual([
      ConfigError,
      told,
      true,
    ]);
    expect(own.message).toBe('too large');
  }
});

test('a message that is a getter is covered', () => {
  class Computed extends Error {
    override get message(): string {
      return 'too large';
    }
  }
  const own = new Computed();
  const error = thrownBy(() => own) as Computed;
  expect(error).toBe(own);
  expect(error.message).toBe(told);
  const aborted = thrownBy(() => new DOMException('too large', 'AbortError')) as DOMException;
  expect([aborted.name, aborted.code, aborted.message]).toEqual(['AbortError', 20, told]);
});

test.each([
  ['a text', 'too large', 'too large'],
  ['undefined', undefined, 'undefined'],
  ['an object', { toString: () => 'too large' }, 'too large'],
  ['an object without a text', Object.create(null), 'the thrown value cannot be read'],
  ['a symbol', Symbol('x'), 'Symbol(x)'],
])('what is no error becomes the cause of a ConfigError: %s', (_, value, text) => {
  const error = thrownBy(() => value) as ConfigError;
  expect(error).toBeInstanceOf(ConfigError);
  expect(error.message).toBe(`Building Part failed: ${text}\n  while building Middle at parts[0]`);
  expect(error.path).toBe('parts[0]');
  expect((error.cause as ConfigError).cause).toBe(value);
});

test('an error whose message throws does not end the process', () => {
  class Broken extends Error {
    override get message(): string {
      throw new TypeError('hidden');
    }
  }
  const error = thrownBy(() => new Broken()) as Error;
  expect(error).toBeInstanceOf(Broken);
  expect(error.message).toBe(
    'Building Part failed: the thrown value cannot be read\n  while building Middle at parts[0]',
  );
});

test('a factory that fails, and one that fails in a build, tell the path once', () => {
  const failing = configurable(
    () => {
      throw failure();
    },
    {},
    { name: 'failing' },
  );
  const holder = configurable((hp) => hp, { a: instance(failing) }, { name: 'holder' });
  class Caller extends Configurable.with({ make: factory(holder) }) {
    override setup(): void {
      this.hp.make();
    }
  }
  const own = new OwnError('too large');
  const partial = holder.partial({ a: failing.argFactory() });
  expect(
    (
      thrownBy(
        () => own,
        () => build(partial)(),
      ) as Error
    ).message,
  ).toBe('Building failing at a failed: too large');
  expect(
    (
      thrownBy(
        () => own,
        () => build([Caller.config({ make: partial })]),
      ) as Error
    ).message,
  ).toMatch(/^Building failing at a failed: too large\n {2}while building Caller at \[0\]$/);
});

test('a setup that is async is refused by name, and what it throws ends nothing', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  class Late extends Configurable.with({}) {
    override async setup(): Promise<void> {
      await null;
      throw new Error('later');
    }
  }
  expect(() => build(Late.config())).toThrow(
    new ConfigError(
      'Late.setup() must not be async: the instance is used when it returns.\n  while building Late',
    ),
  );
  class Hooked extends Configurable.with({}, (schema) => schema.refine(async () => true)) {
    static override readonly validate = async () => {
      throw new Error('later');
    };
  }
  expect(() => build(Hooked.config())).toThrow(
    'The config has 2 problems:\n' +
      '  <root> (Hooked): a rule must not be async: its problems are collected when it returns\n' +
      '  <root> (Hooked): validate() must not be async: its problems are collected when it returns',
  );
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

test('an instance is made by build alone', () => {
  class Linear extends Configurable.with({ size: z.int() }) {}
  class Nothing extends Configurable {}
  const made = [
    // @ts-expect-error only build makes what constructors take
    () => new Linear({}),
    // @ts-expect-error only build makes what constructors take
    () => new Linear({ size: 1 }),
    // @ts-expect-error only build makes what constructors take
    () => new Linear(),
  ];
  for (const make of made) {
    expect(make).toThrow(
      /^new Linear\(…\) bypasses all checks: use build\(Linear\.config\(\{ … \}\)\)\. \(at test\/hparams\/building\/failures\.test\.ts:\d+\)$/,
    );
  }
  // @ts-expect-error a class without hyperparameters too
  expect(() => new Nothing({})).toThrow('new Nothing(…) bypasses all checks');
  expect(build(Linear.config({ size: 1 })).hp).toEqual({ size: 1 });
});
