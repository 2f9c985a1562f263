/** @file Hostile configs: each value, name, document and flag works right, or ends in an error that names its place. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { parseFiddler, parseSet, parseSweep } from '../../src/cli/overrides.js';
import {
  build,
  ConfigError,
  Configurable,
  deepCopy,
  derive,
  describeSchema,
  fromJSON,
  fromYAML,
  getPath,
  instance,
  isEqual,
  loadConfigFile,
  parseLiteral,
  plainValue,
  print,
  setPath,
  sub,
  toJSON,
  toYAML,
} from '../../src/hparams/index.js';
import { UsageError } from '../../src/registry/index.js';
import { runCommand } from '../command.js';
import { draw, title, tries } from './campaign.js';

class Leaf extends Configurable.with({ size: z.int().default(1), note: z.string().optional() }) {}

/** Fields of all forms; those of `loose` take any value. */
const forms = {
  any: z.any().default(null),
  unknown: z.unknown().default(null),
  list: z.array(z.unknown()).default([]),
  table: z.record(z.string(), z.unknown()).default({}),
  shape: z.looseObject({ size: z.number().default(1) }).default({ size: 1 }),
  size: z.int().default(1),
  rate: z.number().default(1),
  flag: z.boolean().default(false),
  text: z.string().default(''),
  big: z.bigint().default(0n),
  choice: z.enum(['a', 'b']).default('a'),
  pair: z.tuple([z.number(), z.string()]).default([1, 'a']),
  either: z.union([z.number(), z.string()]).default(1),
  empty: z.number().nullable().default(null),
  leaf: sub(Leaf),
  part: instance(Leaf),
  parts: z.array(instance(Leaf)).default([]),
};
class Hostile extends Configurable.with(forms) {}
type Field = keyof typeof forms;
const fields = Object.keys(forms) as Field[];

/** Names that every object has, or that the language, promises and printers ask for. */
const inherited = [
  ...Object.getOwnPropertyNames(Object.prototype),
  ...[
    'then',
    'toJSON',
    'length',
    'size',
    'prototype',
    'name',
    'inspect',
    'nodeType',
    '$$typeof',
    '_x',
    '$class',
  ],
];

const prototypes = [Object.prototype, Array.prototype, Function.prototype, Map.prototype, Promise.prototype];
const shapeOf = (each: object) =>
  Reflect.ownKeys(each).map((key) => [key, Object.getOwnPropertyDescriptor(each, key)!.value]);
const before = prototypes.map(shapeOf);
const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => {
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

function expectNoPollution(): void {
  for (const [i, each] of prototypes.entries()) {
    const now = shapeOf(each);
    const isSame = now.every(([key, value], k) => key === before[i]![k]?.[0] && value === before[i]![k]?.[1]);
    expect([i, now.length, isSame]).toEqual([i, before[i]!.length, true]);
  }
}

const secret = new Error('hidden');
const throwing = (): never => {
  throw secret;
};
const deep = (levels: number, wrap: (value: unknown) => unknown): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < levels; i += 1) value = wrap(value);
  return value;
};
const cyclic = (): unknown[] => {
  const list: unknown[] = [1];
  list.push({ list });
  return list;
};
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const every = new Proxy({}, { get: () => throwing }) as ProxyHandler<object>;

/** Makes a value: fast-check would look into one that stood here itself. */
type Make = () => unknown;

const leaf: fc.Arbitrary<Make> = fc.oneof(
  fc
    .anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withNullPrototype: true,
      maxDepth: 3,
    })
    .map(
      (value): Make =>
        () =>
          value,
    ),
  fc.constantFrom<Make[]>(
    () => Number.NaN,
    () => -0,
    () => 10n ** 400n,
    () => new Date(Number.NaN),
    () => () => 1,
    () => Symbol('s'),
    () => Promise.resolve(1),
    () => new WeakMap(),
    () => /x/,
    () => new Error('x'),
    () => Leaf,
    () => Leaf.config(),
    () => Leaf.partial(),
    () => revoked(),
    () => new Proxy({}, every),
    () => new Proxy([1], { get: throwing }),
    () => new Proxy({ a: 1 }, { ownKeys: throwing }),
    () => new Proxy({ a: 1 }, {}),
    () => ({
      get a() {
        return throwing();
      },
    }),
    () => ({ [Symbol('s')]: 1 }),
    () => JSON.parse('{"__proto__": {"polluted": 1}}'),
    () => JSON.parse('{"constructor": {"prototype": {"polluted": 1}}}'),
    () => Object.defineProperty([], 'length', { value: 2 ** 20 }),
    () => cyclic(),
    () => deep(150, (value) => [value]),
    () => deep(5_000, (value) => [value]),
    () => deep(5_000, (value) => ({ a: value })),
    () => Array.from({ length: 130_000 }, (_, i) => i),
    () => Object.fromEntries(Array.from({ length: 130_000 }, (_, i) => [`k${i}`, i])),
    () => 'x'.repeat(1_000_000),
  ),
);
const keys = fc.oneof(fc.string(), fc.constantFrom(...inherited));
const hostile: fc.Arbitrary<Make> = fc.oneof(
  leaf,
  fc.array(leaf, { maxLength: 3 }).map(
    (parts): Make =>
      () =>
        parts.map((make) => make()),
  ),
  fc.array(fc.tuple(keys, leaf), { maxLength: 3 }).map(
    (entries): Make =>
      () =>
        Object.fromEntries(entries.map(([key, make]) => [key, make()])),
  ),
);

const writes: Record<string, (config: any, field: Field, value: unknown) => any> = {
  config: (_, field, value) => Hostile.config({ [field]: value } as never),
  property: (config, field, value) => {
    config[field] = value;
    return config;
  },
  path: (config, field, value) => {
    setPath(config, [field], value === undefined || typeof value === 'string' ? [value] : value, '--set');
    return config;
  },
  assign: (config, field, value) => Object.assign(config, { [field]: value }),
  derive: (config, field, value) => derive(config, (draft: any) => void (draft[field] = value)),
  inside: (config, _, value) => {
    config.list.push(value);
    return config;
  },
};

/** The error that `action` ends with, which names `place`; undefined where it ends well. */
function refusal(action: () => void, place: RegExp): Error | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    expect(error).toSatisfy(
      (each: unknown) => each instanceof ConfigError || each instanceof UsageError,
      `a ConfigError or UsageError, got ${(error as Error)?.stack}`,
    );
    const { message } = error as Error;
    expect(message).toMatch(place);
    expect(message.length).toBeLessThan(20_000);
    return error as Error;
  }
}

const wholes = new RegExp(`Hostile|Leaf|\\b(${fields.join('|')})\\b`);

test(title('values: stored as they are, or refused by name'), () => {
  const cases = draw(
    fc.tuple(hostile, fc.constantFrom(...fields), fc.constantFrom(...Object.keys(writes))),
    tries(2_000, 300),
    1,
  );
  for (const [make, field, way] of cases) {
    const value = make();
    const config = Hostile.config();
    let written: any;
    const name = way === 'inside' ? 'list' : field;
    const error = refusal(() => (written = writes[way]!(config, field, value)), new RegExp(`\\b${name}\\b`));
    expectNoPollution();
    if (error !== undefined) {
      expect(isEqual(config, Hostile.config())).toBe(true);
      continue;
    }
    const read = way === 'inside' ? written.list[0] : written[name];
    const given = way === 'path' && (value === undefined || typeof value === 'string') ? [value] : value;
    const isContained =
      typeof given !== 'object' || given === null || isDeepStrictEqual(plain(read), plain(given));
    const told = isContained || read === given ? [] : [inspect(read), inspect(given)];
    expect([way, name, ...told]).toEqual([way, name]);
    if (typeof given !== 'object' && typeof given !== 'function') expect(Object.is(read, given)).toBe(true);
    const accepted = forms[name as Field].safeParse(written[name]);
    expect([name, accepted.success]).toEqual([name, true]);
    for (const use of [
      () => deepCopy(written),
      () => print(written),
      () => build(written),
      () => JSON.parse(JSON.stringify(toJSON(written))),
    ]) {
      refusal(use, wholes);
    }
    expectNoPollution();
  }
});

/** A value with its containers copied, so that views and null prototypes compare as what they hold. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, plain);
  if (typeof value !== 'object' || value === null) return value;
  // A Map or a Set is read as a copy whose methods refuse edits.
  if (value instanceof Map || value instanceof Set) return [...value].map(plain);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.entries(value).map(([key, part]) => [key, plain(part)]);
}

test(title('names: fields may be called what objects have, and nothing else is written'), () => {
  const wanted = fc.uniqueArray(
    fc.oneof(fc.constantFrom(...inherited), fc.stringMatching(/^[a-z_$][a-z0-9_$]{0,6}$/)),
    { minLength: 1, maxLength: 4 },
  );
  for (const [names, other] of draw(
    fc.tuple(wanted, fc.oneof(fc.constantFrom(...inherited), fc.string())),
    tries(300, 60),
    2,
  )) {
    let made: any;
    const schemas = Object.fromEntries(names.map((name) => [name, z.int().default(1)]));
    const error = refusal(() => {
      made = class Named extends Configurable.with(Object.fromEntries(Object.entries(schemas))) {};
    }, /the hyperparameter '/);
    if (error !== undefined || names.includes('__proto__')) continue;
    const values = Object.fromEntries(names.map((name, i) => [name, i + 2]));
    const config = made.config(values);
    for (const name of names)
      expect([name, config[name], getPath(config, [name])]).toEqual([name, values[name], values[name]]);
    expect(Object.entries((build(config) as { hp: object }).hp)).toEqual(Object.entries(values));
    const options = { classes: [made] };
    expect(isEqual(fromJSON(JSON.parse(JSON.stringify(toJSON(config))), options), config)).toBe(true);
    if (!names.includes('$class')) expect(isEqual(fromYAML(toYAML(config), options), config)).toBe(true);
    else expect(refusal(() => toYAML(config), /Named\.\$class: the name is taken in YAML/)).toBeDefined();
    expect(isEqual(deepCopy(config), config)).toBe(true);
    if (!names.includes(other)) {
      expect(refusal(() => (config[other] = 5), /has no hyperparameter/)).toBeDefined();
      expect(refusal(() => setPath(config, [other], '5'), /has no/)).toBeDefined();
    }
    expectNoPollution();
  }
});

const folder = mkdtempSync(join(tmpdir(), 'hostile-configs-'));
const scalar = fc.oneof(
  fc.constantFrom(
    '1',
    '-0',
    '.nan',
    '.inf',
    '0x1F',
    '1e3',
    '1e400',
    'null',
    '~',
    'true',
    'no',
    "''",
    '"a\\0"',
    '!!str 1',
    '!!js/function x',
    '*a',
    '&a 1',
    '2020-01-31',
    '|\n  x',
    '[',
    '{',
    '}',
    ': :',
    '- -',
    '? x',
    '%YAML 1.2',
    '\u0000',
    '\ud800',
    '{$class: Leaf}',
    '{$class: Nothing}',
    '{$config: 0}',
    '{$number: x}',
    '{$date: null}',
    '{$record: [[a, 1]]}',
    '{$map: 3}',
    '{$bytes: [x, y]}',
    '{$class: Leaf, $kind: x}',
    '{$class: [Leaf]}',
  ),
  fc.json({ maxDepth: 2 }),
  fc.string({ maxLength: 8 }),
);
const documentKey = fc.oneof(
  fc.constantFrom(
    ...fields,
    'any.k',
    'any[0]',
    'list[0]',
    'list[-1]',
    'list[9]',
    "table['a b']",
    'table.x',
    'leaf.size',
    'part.note',
    'parts[0].size',
    'shape.size',
    '<<',
  ),
  fc.constantFrom(...inherited, "any['__proto__']", 'any.__proto__.x', 'table.constructor.prototype.x'),
  fc.string({ maxLength: 6 }),
);
const yamlText = fc
  .tuple(
    fc.array(fc.tuple(documentKey, scalar), { maxLength: 4 }),
    fc.constantFrom('', '---\n', '\ufeff', '--- 1\n--- 2\n', 'a: &a [*a]\n', '\t'),
  )
  .map(([entries, head]) => head + entries.map(([key, value]) => `${key}: ${value}`).join('\n'));
const jsonText = fc.oneof(
  fc.json(),
  fc
    .array(fc.tuple(documentKey, fc.json({ maxDepth: 2 })), { maxLength: 4 })
    .map((entries) => `{${entries.map(([key, value]) => `${JSON.stringify(key)}: ${value}`).join(',\n')}}`),
  fc.constantFrom(
    '{"format": "luthier-config", "version": 1, "root": {"$config": 0}, "configs": [{"class": "Leaf", "values": {"size": {"$config": 0}}}]}',
    '['.repeat(100_000),
    '{"any":'.repeat(10_000),
    `{"any": ${'['.repeat(400)}${']'.repeat(400)}}`,
    '{"any": 1e999}',
    '{"size": 1, "size": 2}',
  ),
);
const large = [
  Array.from({ length: 120_000 }, (_, i) => `k${i}: 1`).join('\n'),
  `any: ${'['.repeat(5_000)}`,
  `any:\n${Array.from({ length: 900 }, (_, i) => `${' '.repeat(i + 1)}a:`).join('\n')}`,
  `${Array.from({ length: 30 }, (_, i) => `k${i}: &k${i} [${i === 0 ? '1' : `*k${i - 1}, *k${i - 1}`}]`).join('\n')}\nany: *k29`,
  `text: "${'x'.repeat(500_000)}`,
];

test(title('documents: what a file sets is what its text means, or an error names the line'), () => {
  const texts = [
    ...draw(yamlText, tries(1_200, 200), 3).map((text) => ['a.yaml', text] as const),
    ...draw(jsonText, tries(600, 100), 4).map((text) => ['a.json', text] as const),
    ...large.map((text) => ['a.yaml', text] as const),
  ];
  for (const [name, text] of texts) {
    const file = join(folder, name);
    writeFileSync(file, text);
    let loaded: any;
    const error = refusal(() => {
      loaded = loadConfigFile(file, { root: Hostile.config() as never, notify: () => {} });
    }, /a\.(yaml|json)/);
    expectNoPollution();
    if (error !== undefined) continue;
    for (const field of fields) {
      const accepted = forms[field].safeParse(loaded[field]);
      expect([text, field, accepted.success]).toEqual([text, field, true]);
    }
    const said = parseDocument(text.replace(/^\ufeff/, ''), { uniqueKeys: false }).toJS({
      maxAliasCount: -1,
    }) as Record<string, unknown> | null;
    for (const [key, value] of Object.entries(said ?? {})) {
      const isPlain = typeof value !== 'object' || value === null;
      if (isPlain && fields.includes(key as Field)) expect([text, loaded[key]]).toEqual([text, value]);
    }
    refusal(() => build(loaded), wholes);
  }
});

const flagText = fc.oneof(
  fc.tuple(documentKey, scalar).map(([key, value]) => `${key}=${value}`),
  fc.tuple(documentKey, fc.string({ maxLength: 12 })).map(([key, value]) => `${key}=${value}`),
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    `any=${'['.repeat(100_000)}`,
    `list=${'[1,'.repeat(50_000)}`,
    `any=${'1,'.repeat(130_000)}`,
    `big=${'9'.repeat(100_000)}`,
    `${'a.'.repeat(50_000)}a=1`,
    `any${'[0]'.repeat(50_000)}=1`,
  ),
);

test(title('flags: a text means what the schema says, or the error names the flag'), () => {
  for (const text of draw(flagText, tries(3_000, 400), 5)) {
    const config = Hostile.config({ any: { k: 1, 0: 2 }, list: [1, 2] });
    const error = refusal(() => {
      const { path, text: value, origin } = parseSet(text);
      setPath(config, path, value, origin);
    }, /--set|path|'|\b(any|list)\b/);
    for (const parse of [parseFiddler, parseSweep]) refusal(() => parse(text), /^--/);
    expectNoPollution();
    if (error !== undefined) continue;
    const { path, text: value } = parseSet(text);
    for (const field of fields)
      expect([text, field, forms[field].safeParse(config[field]).success]).toEqual([text, field, true]);
    if (/^(any|list)[.[]/.test(path))
      expect([text, plain(getPath(config, path))]).toEqual([text, plain(plainValue(parseLiteral(value)))]);
    if (path === 'rate' || path === 'size')
      expect([text, config[path]]).toEqual([text, Number(value.replaceAll('_', '').trim())]);
  }
  expect(describeSchema(forms.any)).toBe('anything');
});

test(title('the command: a hostile flag or file ends it with one message and the code 2'), async () => {
  const file = join(folder, 'command.yaml');
  writeFileSync(file, 'task.__proto__.polluted: 1\nmodelDims: [1\n');
  const twice = join(folder, 'twice.yaml');
  writeFileSync(twice, 'task.name: a\ntask: {name: b}\n');
  const cases: [string[], RegExp][] = [
    [['--config_file', file], /^--config_file .*command\.yaml: This is not YAML.*command\.yaml:\d+:\d+\)/s],
    [['--config_file', twice], /task\.name: set twice, first at .*twice\.yaml:1 \(at .*twice\.yaml:2\)\n$/],
    [
      ['--set', 'task.__proto__.polluted=1'],
      /has no '__proto__'.*\(at --set task\.__proto__\.polluted=1\)\n$/,
    ],
    [['--set', 'task.model=BaseModel'], /BaseModel is abstract: use a class that extends it/],
  ];
  for (const [flags, message] of cases) {
    const { code, stderr } = await runCommand(['--exp=tiny.Tiny', '--dump', ...flags]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n {4}at /);
    expect(code).toBe(2);
  }
});
