/** @file Configs as JSON: whole documents, what JSON lacks, and what is wrong with a document. */
import { deflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  Configurable,
  checkSerializable,
  configFromString,
  configToString,
  fromJSON,
  fromYAML,
  history,
  instance,
  isEqual,
  registerAlias,
  registerConstant,
  registerContainer,
  sub,
  toJSON,
  toYAML,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  left: instance(Leaf),
  right: instance(Leaf),
  list: z.array(z.union([instance(Leaf), z.string()])).default([]),
  table: z.record(z.string(), z.any()).default({}),
  when: z.date().optional(),
  make: z.any().optional(),
}) {}

test('toJSON lists configs, inner ones first, and refers to them by number', () => {
  const shared = Leaf.config({ size: 3 });
  const root = Root.config({ left: shared, right: shared, list: ['x', Leaf.config({ size: 1 })] });
  expect(toJSON(root)).toEqual({
    format: 'luthier-config',
    version: 1,
    root: { $config: 2 },
    configs: [
      { class: 'Leaf', values: { size: 3 } },
      { class: 'Leaf', values: { size: 1 } },
      { class: 'Root', values: { left: { $config: 0 }, right: { $config: 0 }, list: ['x', { $config: 1 }] } },
    ],
    modules: { './test/hparams/documents/json.test.ts': ['Leaf', 'Root'] },
  });
  expect(JSON.parse(JSON.stringify(root))).toEqual(toJSON(root));
});

test('what JSON lacks survives the round trip', () => {
  const table = {
    nan: Number.NaN,
    low: -Infinity,
    zero: -0,
    big: 12n,
    none: undefined,
    $config: 3,
    nested: [{ $x: null }],
  };
  const root = Root.config({ table, when: new Date(5), left: Leaf.config({ size: 2 }) });
  const back = fromJSON(JSON.stringify(root)) as typeof root;
  expect(isEqual(back, root)).toBe(true);
  expect(back.table).toEqual(table);
  expect(Object.is((back.table as { zero: number }).zero, -0)).toBe(true);
  const partial = fromJSON(JSON.stringify(toJSON([Leaf.partial({ size: 1 })])));
  expect(isEqual(partial, [Leaf.partial({ size: 1 })])).toBe(true);
  expect(isEqual(partial, [Leaf.config({ size: 1 })])).toBe(false);
});

test('values without a JSON form are errors with their path and where they were set, all at once', () => {
  const root = Root.config({ list: [], make: () => 1 });
  const place = history(root, 'make')[0]!.where;
  const problem = `has no JSON form. Describe it by a config or by plain values, or name it by registerConstant(). (at ${place})`;
  expect(messageOf(() => toJSON({ task: root }))).toBe(`['task'].make: function make ${problem}`);
  root.table = { at: [new Odd()], ok: 1, sym: Symbol('x') };
  const places = [history(root, 'table')[0]!.where, place];
  expect(messageOf(() => toJSON({ task: root })).replaceAll(`(at ${places[0]})`, '(at T)')).toBe(
    [
      'toJSON(): 3 problems:',
      `  ['task'].table['at'][0]: an Odd ${problem.replace(String(place), 'T')}`,
      `  ['task'].table['sym']: Symbol(x) ${problem.replace(String(place), 'T')}`,
      `  ['task'].make: function make ${problem}`,
    ].join('\n'),
  );
});

class Odd {}
const one = (): number => 1;
registerConstant('json.one', one);

/** What is wrong with a document of one Leaf after `change`, without where this test is. */
const load = (change: object): string =>
  messageOf(() => fromJSON({ ...toJSON(Leaf.config({ size: 1 })), ...change } as never)).replaceAll(
    / \(at .*\)$/gm,
    '',
  );

test("an unknown class of a run's record is told with the experiment that declares it", () => {
  const config = { ...toJSON(null), configs: [{ class: 'Leef', values: {} }] };
  expect(() => fromJSON(JSON.stringify({ name: 'mine.First', config }))).toThrow(
    "Entry 0, <root>: No class 'Leef' is known. Did you mean 'Leaf'? A document may use only classes that the program has imported and used, or that are listed in the option classes. Import the module of mine.First, the experiment that wrote it.",
  );
});

test('documents are checked: form, version, classes, values, references, keys', () => {
  expect(load({ format: 'x' })).toBe('This is not a config document: it has no "format": "luthier-config".');
  expect(load({ version: 2 })).toBe(
    'The config document has version 2; this program reads versions up to 1. A newer release of it wrote the document.',
  );
  expect(load({ version: 'x' })).toBe("The config document has version 'x'; versions are integers from 1.");
  expect(load({ configs: 3 })).toBe('A config document has "root", and a list "configs".');
  expect(load({ configs: [{ class: 'Leef', values: {} }] })).toBe(
    "Entry 0, <root>: No class 'Leef' is known. Did you mean 'Leaf'? A document may use only classes that the program has imported and used, or that are listed in the option classes.",
  );
  expect(load({ configs: [{ class: 'Leaf' }] })).toBe(
    'Entry 0, <root>: a config needs "class", "values" and perhaps "kind", got {class: \'Leaf\'}.',
  );
  expect(load({ configs: [{ class: 'Leaf', kind: 'x', values: {} }] })).toContain("got 'x'");
  for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'node:fs', './json.test.js'])
    expect(load({ configs: [{ class: name, values: {} }] })).toContain(`No class '${name}' is known.`);
  expect(load({ configs: [{ class: 'Leaf', values: { size: 'x', sise: 1, scale: { $what: 1 } } }] })).toBe(
    [
      'The config document: 3 problems:',
      ...[
        "<root>: Leaf.size: expected an integer, got 'x'",
        "<root>: Leaf has no hyperparameter 'sise'. Did you mean 'size'?",
        "scale: there is no mark '$what'. Write a record with such a key as $record.",
      ].map((line) => `  Entry 0, ${line}`),
    ].join('\n'),
  );
});

test('references lead back to entries that stand before, by whole numbers', () => {
  for (const number of [7, 1, -1, 0.5, '0', null, '__proto__', 'length']) {
    expect(load({ root: { $config: number } })).toMatch(/^<root>: there is no config .* before this\.$/);
  }
  const entry = { class: 'Root', values: { left: { $config: 0 } } };
  expect(load({ configs: [entry] })).toBe('Entry 0, left: there is no config 0 before this.');
});

test('marks with nonsense are errors with their path, not raw ones', () => {
  const marks: [object, string][] = [
    [{ $number: '3' }, "$number: expected 'NaN', 'Infinity', '-Infinity' or '-0', got '3'."],
    [{ $bigint: 'x' }, "$bigint: expected the digits of an integer, as a text, got 'x'."],
    [{ $bigint: 1.5 }, '$bigint: expected the digits of an integer, as a text, got 1.5.'],
    [{ $date: 'soon' }, "$date: expected a date such as 2020-01-31T12:00:00.000Z, got 'soon'."],
    [{ $bytes: ['Uint8Array', '%'] }, '$bytes: expected a type of array and its bytes'],
    [{ $bytes: ['constructor', ''] }, '$bytes: expected a type of array and its bytes'],
    [{ $bytes: ['Float64Array', 'AAE='] }, '2 bytes are no Float64Array.'],
    [{ $record: [['a']] }, 'expected a pair of a key and a value'],
    [
      {
        $record: [
          ['a', 1],
          ['a', 2],
        ],
      },
      "the key 'a' is given twice.",
    ],
    [{ $map: 3 }, '$map: expected a list of pairs, got 3.'],
    [{ $set: 3 }, '$set: expected a list, got 3.'],
    [{ $undefined: 3 }, '$undefined: expected true, got 3.'],
    [{ $constant: 'json.oen' }, "No constant 'json.oen' is known. Did you mean 'json.one'?"],
    [{ $container: ['Map', []] }, '$container: expected the name of a registered container'],
    [{ $date: 1, other: 2 }, "the mark '$date' stands alone, without other."],
    [{ $toString: 1 }, "there is no mark '$toString'."],
  ];
  for (const [mark, problem] of marks) {
    const values = { table: { key: mark } };
    expect(load({ configs: [{ class: 'Root', values }] })).toContain(problem);
    expect(load({ configs: [{ class: 'Root', values }] })).toContain("Entry 0, table['key']");
  }
});

test.each(['__proto__', 'constructor', 'prototype'])('%s is refused wherever it would be a key', (key) => {
  const problem = `'${key}' is not allowed as a key.`;
  const record = `{"${key}": {"polluted": 1}}`;
  expect(load({ root: JSON.parse(record) })).toContain(problem);
  expect(load({ root: { $record: [[key, 1]] } })).toContain(problem);
  expect(load({ configs: [{ class: 'Root', values: JSON.parse(`{"table": ${record}}`) }] })).toContain(
    problem,
  );
  expect(load({ configs: [{ class: 'Leaf', values: JSON.parse(record) }] })).toContain(
    `Leaf has no hyperparameter '${key}'`,
  );
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test('names that objects have by themselves are plain keys, and toJSON is never called', () => {
  const table = { toJSON: 'x', hasOwnProperty: 2, valueOf: 3, length: 4, toString: 5 };
  const root = Root.config({ table });
  expect((fromJSON(JSON.stringify(root)) as typeof root).table).toEqual(table);
});

test('text that is not JSON, and wrong documents, are told by line and column', () => {
  const text = JSON.stringify(toJSON(Root.config({ left: Leaf.config({ size: 1 }) })), null, 1);
  const fails = (from: string, to: string): string =>
    messageOf(() => fromJSON(text.replace(from, () => to))).replace(/ \(at .*test.ts.*\)$/, '');
  expect(fails('"size": 1', '"size": "x"')).toBe(
    "Entry 0, left: Leaf.size: expected an integer, got 'x' (at line 11, column 5)",
  );
  expect(fails('"size": 1', '"size" 1')).toBe(
    "This is not JSON: expected ':' after property name in JSON. (at line 11, column 12)",
  );
  expect(fails('"size": 1', '"size": 1,')).toBe(
    'This is not JSON: expected double-quoted property name in JSON. (at line 12, column 4)',
  );
  expect(messageOf(() => fromJSON(`${text} x`))).toContain(
    'This is not JSON: unexpected non-whitespace character after JSON.',
  );
  expect(messageOf(() => fromJSON('\uFEFF'))).toContain('The config document is empty.');
  expect(isEqual(fromJSON(`\uFEFF${text}`), fromJSON(text))).toBe(true);
  expect(messageOf(() => fromJSON(text, { maxBytes: 10 }))).toContain('at most 10 are read');
});

test('Map, Set, own containers, bytes and constants survive', () => {
  registerConstant('json.one', one);
  registerContainer(Ring, {
    flatten: (ring) => ring.items,
    unflatten: (items) => new Ring(items),
    fromParts: (items) => new Ring(items),
  });
  const leaf = Leaf.config({ size: 1 });
  const table = {
    map: new Map<unknown, unknown>([
      ['a', leaf],
      [2, new Set([1, 'x'])],
    ]),
    bytes: new Uint8Array([0, 1, 255]),
    buffer: Buffer.from('hi'),
    floats: new Float32Array([1.5, Number.NaN]).subarray(0, 2),
    bigs: new BigInt64Array([-1n]),
    one,
    invalid: new Date(Number.NaN),
  };
  const root = Root.config({ table, left: leaf });
  for (const back of [fromJSON(JSON.stringify(root)), fromYAML(toYAML(root))] as (typeof root)[]) {
    expect(isEqual(back, root)).toBe(true);
    expect((back.table.map as Map<string, unknown>).get('a')).toBe(back.left);
    expect(back.table.one).toBe(one);
    expect(Buffer.isBuffer(back.table.buffer)).toBe(true);
  }
  const ring = Root.config({ make: new Ring([leaf]), left: leaf });
  const back = fromJSON(JSON.stringify(ring)) as typeof ring;
  expect((back.make as Ring).items[0]).toBe(back.left);
});

class Ring {
  constructor(readonly items: readonly unknown[]) {}
}

test('a constant has one name, and a name one constant', () => {
  const value = (): number => 2;
  registerConstant('json.two', value);
  const fails = (name: string, other: unknown): string =>
    messageOf(() => registerConstant(name, other)).replace(/ \(at .*\)$/, '');
  expect(fails('json.two', () => 3)).toBe(
    "registerConstant('json.two'): the name belongs to another constant already.",
  );
  expect(fails('json.dos', value)).toBe(
    "registerConstant('json.dos'): the value is called 'json.two' already.",
  );
  expect(fails('json.three', 3)).toBe(
    "registerConstant('json.three'): 3 has a JSON form, and needs no name.",
  );
  expect(fails('json.leaf', Leaf.config())).toContain('configs are kept as configs');
  expect(fails('', value)).toContain('a constant needs a name.');
});

test('documents find a class by the name that it had, and say so', () => {
  class Renamed extends Configurable.with({ size: z.int().default(1) }) {}
  registerAlias('OldName', Renamed);
  const notices: string[] = [];
  const document = JSON.stringify(toJSON([Renamed.config({ size: 2 }), Renamed.config()])).replaceAll(
    'Renamed',
    'OldName',
  );
  const notify = (notice: string) => notices.push(notice);
  expect(isEqual(fromJSON(document, { notify }), [Renamed.config({ size: 2 }), Renamed.config()])).toBe(true);
  expect(notices).toEqual(["The config document uses the old name 'OldName' of Renamed."]);
  expect(messageOf(() => registerAlias('OldName', Leaf))).toContain(
    "registerAlias('OldName', Leaf): the name belongs to Renamed.",
  );
  expect(messageOf(() => registerAlias('Leaf', Renamed))).toContain('the name belongs to Leaf.');
});

test('what would not survive is told beforehand, all at once', () => {
  const make = () => class Copied extends Configurable.with({ size: z.int().default(1) }) {};
  const [first, second] = [make(), make()];
  second.config();
  const root = Root.config({ make: () => 1, table: { x: first.config() }, left: Leaf.config() });
  expect(messageOf(() => checkSerializable(root))).toContain('make: function make has no JSON form.');
  delete root.make;
  expect(messageOf(() => checkSerializable(root))).toContain(
    "Entry 1, table['x']: There are 2 classes called 'test/hparams/documents/json.test.Copied': choose one by the option { classes: [Copied] }.",
  );
  expect(messageOf(() => checkSerializable(root, { classes: [second] }))).toBe(
    'The config does not survive a round trip: a class has the name of another.',
  );
  checkSerializable(Root.config({ left: Leaf.config() }));
  class Fickle extends Configurable.with({
    value: z
      .any()
      .refine(() => !fickle, 'changed its mind')
      .optional(),
  }) {}
  let fickle = false;
  const config = Fickle.config({ value: 1 });
  fickle = true;
  expect(messageOf(() => checkSerializable(config))).toMatch(
    /^Entry 0, <root>: Fickle\.value: changed its mind, got 1/,
  );
});

test('a packed config that was cut off, changed or blown up is refused', () => {
  const packed = configToString(Leaf.config({ size: 1 }));
  expect(packed).toMatch(/^luthier-config:1:[\w-]+$/);
  expect(messageOf(() => configFromString(packed.slice(0, -9)))).toBe(
    'The packed config is cut off or was changed.',
  );
  expect(messageOf(() => configFromString('x'))).toBe(
    "A packed config begins with 'luthier-config:1:', got 'x'.",
  );
  expect(messageOf(() => configFromString(`${packed}%`))).toContain(
    'The packed config holds invalid characters.',
  );
  const bomb = `luthier-config:1:${deflateRawSync(Buffer.alloc(1e7, 32)).toString('base64url')}`;
  expect(messageOf(() => configFromString(bomb, { maxBytes: 1e6 }))).toContain(
    'unpacks to more than 1000000 bytes',
  );
});

test('classes of one name must be told apart', () => {
  const make = () => class Twin extends Configurable.with({ size: z.int().default(1) }) {};
  const first = make();
  const second = make();
  const document = toJSON(first.config({ size: 2 }));
  second.config();
  expect(messageOf(() => fromJSON(document))).toContain(
    "Entry 0, <root>: There are 2 classes called 'Twin': choose one by the option { classes: [Twin] }.",
  );
  expect(isEqual(fromJSON(document, { classes: [second] }), second.config({ size: 2 }))).toBe(true);
});

test('a template that is a default is not written out unless it was edited', () => {
  class Owner extends Configurable.with({ tpl: sub(Leaf) }) {}
  const owner = Owner.config();
  expect(owner.tpl.scale).toBe(1);
  expect(toJSON(owner).configs).toEqual([{ class: 'Owner', values: {} }]);
  owner.tpl.size = 2;
  expect(toJSON(owner).configs.length).toBe(2);
  expect(isEqual(fromJSON(toJSON(owner)), owner)).toBe(true);
});
