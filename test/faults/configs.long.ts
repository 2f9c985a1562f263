/** @file Hostile configs: each value and name works right, or ends in an error that names its place. */
import { inspect, isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  Configurable,
  deepCopy,
  derive,
  fromJSON,
  fromYAML,
  getPath,
  isEqual,
  print,
  setPath,
  toJSON,
  toYAML,
} from '../../src/hparams/index.js';
import { draw, title, tries } from './campaign.js';
import {
  expectNoPollution,
  expectNoRejections,
  type Field,
  fields,
  forms,
  Hostile,
  inherited,
  Leaf,
  plain,
  refusal,
  wholes,
} from './hostileConfigs.js';

expectNoRejections();

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

test(title('values: stored as they are, or refused by name'), () => {
  const cases = draw(
    fc.tuple(hostile, fc.constantFrom(...fields), fc.constantFrom(...Object.keys(writes))),
    tries(2_000, 150),
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

test(title('names: fields may be called what objects have, and nothing else is written'), () => {
  const wanted = fc.uniqueArray(
    fc.oneof(fc.constantFrom(...inherited), fc.stringMatching(/^[a-z_$][a-z0-9_$]{0,6}$/)),
    { minLength: 1, maxLength: 4 },
  );
  for (const [names, other] of draw(
    fc.tuple(wanted, fc.oneof(fc.constantFrom(...inherited), fc.string())),
    tries(300, 30),
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
