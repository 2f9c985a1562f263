/** @file Hostile documents and flags: each means what it says, or ends in an error that names its line or flag. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { parseFiddler, parseSet, parseSweep } from '../../src/cli/overrides.js';
import { parseLiteral } from '../../src/hparams/fields/literals.js';
import {
  build,
  describeSchema,
  getPath,
  loadConfigFile,
  plainValue,
  setPath,
} from '../../src/hparams/index.js';
import { runCommand } from '../command.js';
import { draw, title, tries } from './campaign.js';
import {
  expectNoPollution,
  expectNoRejections,
  type Field,
  fields,
  forms,
  Hostile,
  inherited,
  plain,
  refusal,
  wholes,
} from './hostileConfigs.js';

expectNoRejections();

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
    ...draw(yamlText, tries(1_200, 100), 3).map((text) => ['a.yaml', text] as const),
    ...draw(jsonText, tries(600, 50), 4).map((text) => ['a.json', text] as const),
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
  for (const text of draw(flagText, tries(3_000, 200), 5)) {
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
