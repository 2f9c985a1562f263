/** @file Round trips of random graphs through JSON, YAML and one line; and of documents that were damaged. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  ConfigError,
  Configurable,
  configFromString,
  configToString,
  defineTag,
  fromJSON,
  fromYAML,
  history,
  isEqual,
  iterate,
  removeTag,
  tagged,
  toJSON,
  toYAML,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { type AnyNode, chain, diamond, makeGraph, recipes } from '../randomGraphs.js';

const Warm = defineTag('DocumentWarm', 'Fields that tests of documents tag.');
const Cold = defineTag('DocumentCold', 'The same.');

class TaggedLeaf extends Configurable.with({ size: tagged(z.int().default(1), Cold) }) {}
class Anything extends Configurable.with({ value: z.any().optional() }) {}

/** The graph with tags on some of its configs. */
function withTags(graph: AnyNode, every: number): AnyNode {
  for (const [i, { config }] of iterate(graph).entries()) {
    if (i % every === 0) addTag(config as AnyNode, 'value', ...(i % 2 === 0 ? [Warm] : [Warm, Cold]));
  }
  return graph;
}

const graphs = fc
  .tuple(recipes, fc.integer({ min: 1, max: 4 }))
  .map(([recipe, every]) => withTags(makeGraph(recipe), every));

test('JSON, YAML and one line give equal graphs with the same sharing and tags', () => {
  const same = (back: unknown, graph: AnyNode): void => {
    expect(isEqual(back, graph, { tags: true })).toBe(true);
  };
  fc.assert(
    fc.property(graphs, (graph) => {
      same(fromJSON(JSON.stringify(toJSON(graph, { paths: true }))), graph);
      same(fromYAML(toYAML(graph)), graph);
      same(configFromString(configToString(graph)), graph);
    }),
    { numRuns: runs(1000, 100) },
  );
});

test('tags that were added and removed are kept; the history begins where the document was read', () => {
  const leaf = TaggedLeaf.config({ size: 3 });
  removeTag(leaf, 'size', Cold);
  addTag(leaf, 'size', Warm);
  expect(toJSON([leaf, leaf])).toEqual({
    format: 'luthier-config',
    version: 1,
    root: [{ $config: 0 }, { $config: 0 }],
    configs: [
      { class: 'TaggedLeaf', tags: { size: ['DocumentWarm', '-DocumentCold'] }, values: { size: 3 } },
    ],
    modules: {
      './test/hparams/documents/roundTrip.test.ts': ['#DocumentCold', '#DocumentWarm', 'TaggedLeaf'],
    },
  });
  expect(toYAML([leaf, leaf])).toBe(
    [
      'format: luthier-config',
      'version: 1',
      'root:',
      '  - &TaggedLeaf0',
      '    $class: TaggedLeaf',
      '    $tags: {size: [DocumentWarm, -DocumentCold]}',
      '    size: 3',
      '  - *TaggedLeaf0',
      'modules:',
      '  ./test/hparams/documents/roundTrip.test.ts: ["#DocumentCold", "#DocumentWarm", TaggedLeaf]',
      '',
    ].join('\n'),
  );
  const [first, second] = fromJSON(toJSON([leaf, leaf])) as [typeof leaf, typeof leaf];
  expect(first).toBe(second);
  expect(history(first).map(({ field, kind, where }) => [field, kind, where?.split(':')[0]])).toEqual([
    ['size', 'set', 'test/hparams/documents/roundTrip.test.ts'],
    ['size', 'tags', 'test/hparams/documents/roundTrip.test.ts'],
  ]);
});

test('values with tags of their own keep them inside containers', () => {
  class Listed extends Configurable.with({ sizes: z.array(z.int()).default([]) }) {}
  const config = Listed.config({ sizes: [1, Warm.new(2), Cold.new(3)] });
  for (const back of [fromJSON(JSON.stringify(toJSON(config))), fromYAML(toYAML(config))]) {
    expect(isEqual(back, config, { tags: true })).toBe(true);
    expect(toJSON(back)).toEqual(toJSON(config));
    expect(JSON.stringify(toJSON(back))).toContain('DocumentWarm');
  }
});

test('any text, key and number survives YAML', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('~', '- a', 'a: b', 'a #b', '\ud800', '1e3'),
  );
  const keys = text.filter((key) => !['__proto__', 'constructor', 'prototype'].includes(key));
  const leaves = fc.oneof(
    text,
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.bigInt(),
    fc.constant(undefined),
  );
  const values = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      leaves,
      fc.array(tie('value')),
      fc.dictionary(keys, tie('value')),
    ),
  })).value;
  fc.assert(
    fc.property(values, (value) => {
      const config = Anything.config({ value });
      expect(isEqual(fromYAML(toYAML(config)), config)).toBe(true);
    }),
    { numRuns: runs(1000, 100) },
  );
  for (const length of [80, 81]) {
    const item = 'x'.repeat(length - 4);
    expect(toYAML(Anything.config({ value: [item] })).includes(`value: [${item}]`)).toBe(length === 80);
  }
  const long = Anything.config({ value: { ['k'.repeat(2000)]: 'v'.repeat(5000) } });
  expect(isEqual(fromYAML(toYAML(long)), long)).toBe(true);
});

test('a chain of 10,000 and a diamond of 60 levels pass through YAML and one line', () => {
  for (const graph of [chain(10_000), diamond(60)]) {
    expect(isEqual(fromYAML(toYAML(graph)), graph)).toBe(true);
    expect(isEqual(configFromString(configToString(graph)), graph)).toBe(true);
    expect(toJSON(graph, { paths: true }).configs.every(({ path }) => path!.length < 1000)).toBe(true);
  }
});

const replacements = [
  '"__proto__"',
  '"constructor"',
  '"$config"',
  '"$class"',
  '-1',
  '1e9',
  'null',
  '{',
  '[',
  '"$record"',
  '{"$date": 1}',
  '{"$bigint": "x"}',
  '*a',
  '&a',
  '! ',
  '\n',
];

/** `text` with a byte flipped, a token put in another's place, two tokens swapped, or the end cut off. */
function damage(text: string, how: number, at: number, other: number): string {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[\w$.-]+|\s+|[^\w\s"]/g)!;
  const i = at % tokens.length;
  const j = other % tokens.length;
  if (how === 0) {
    const bytes = Buffer.from(text);
    bytes[at % bytes.length]! ^= 1 << (other % 8);
    return bytes.toString();
  }
  if (how === 1) tokens[i] = replacements[other % replacements.length]!;
  else if (how === 2) [tokens[i], tokens[j]] = [tokens[j]!, tokens[i]!];
  else tokens.length = i;
  return tokens.join('');
}

test.each([
  ['JSON', (graph: AnyNode) => JSON.stringify(toJSON(graph)), (text: string) => fromJSON(text)],
  ['YAML', toYAML, (text: string) => fromYAML(text)],
  ['one line', configToString, (text: string) => configFromString(text)],
])('damaged %s gives a config or a ConfigError, and pollutes nothing', (_, write, read) => {
  const members = Object.getOwnPropertyNames(Object.prototype).length;
  const numbers = [fc.nat({ max: 3 }), fc.nat(), fc.nat()] as const;
  fc.assert(
    fc.property(graphs, ...numbers, (graph, how, at, other) => {
      let back: unknown;
      try {
        back = read(damage(write(graph), how, at, other));
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        return;
      }
      // What was read is whole: it can be written and read again.
      expect(isEqual(fromJSON(toJSON(back)), back)).toBe(true);
    }),
    { numRuns: runs(1000, 100) },
  );
  expect(Object.getOwnPropertyNames(Object.prototype).length).toBe(members);
});
