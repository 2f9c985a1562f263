/** @file Patterns of paths: the fields that they mean, in graphs whose configs stand in several places. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { placesIn } from '../../../src/hparams/editing/listPaths.js';
import { pathsLike } from '../../../src/hparams/index.js';
import { formatLink, formatPath, segmentsOf } from '../../../src/hparams/walking/paths.js';
import { runs } from '../../faults/campaign.js';
import { diamond, makeGraph, recipes } from '../randomGraphs.js';

const levels = fc.array(
  fc.constantFrom(
    '**',
    '**',
    '*',
    'left',
    'right',
    'l*',
    '[0]',
    '[*]',
    'tpl',
    'v*lue',
    'byName',
    "['key 1']",
  ),
  { minLength: 1, maxLength: 6 },
);

/** A pattern of a path whose steps are each ended by a line feed, which no field's name has. */
function expression(all: readonly string[]): RegExp {
  const sources = all.map((level) => {
    if (level === '**') return '(?:[^\n]*\n)*';
    const name = level.replace(/^\['(.*)'\]$|^\[(.*)\]$/, '$1$2');
    return `${name.replaceAll('*', '[^\n]*')}\n`;
  });
  return new RegExp(`^${sources.join('')}$`);
}

test('a pattern means what it matches of all paths there are, each field by the first', () => {
  fc.assert(
    fc.property(recipes, levels, (graph, all) => {
      const root = makeGraph(graph);
      const wanted = expression(all);
      const expected = new Map<string, string>();
      const ids = new Map<object, number>();
      for (const { node, field, link } of placesIn(root, false)) {
        const steps = segmentsOf(link).map((each) => (typeof each === 'object' ? each.key : each));
        if (!ids.has(node)) ids.set(node, ids.size);
        const id = `${ids.get(node)} ${field.name}`;
        if (!expected.has(id) && wanted.test(steps.map((each) => `${each}\n`).join('')))
          expected.set(id, formatLink(link));
      }
      const pattern = all.join('.').replaceAll('.[', '[');
      const found = expected.size === 0 ? [] : pathsLike(root, pattern).map(formatPath);
      expect(found).toEqual([...expected.values()]);
      if (expected.size === 0)
        expect(() => pathsLike(root, pattern)).toThrow('no field of the configs matches');
    }),
    { numRuns: runs(1000, 60) },
  );
});

test('patterns of a config that stands in 2^59 places are soon found', () => {
  const root = diamond(60);
  expect(pathsLike(root, '**.value').length).toBe(60);
  expect(pathsLike(root, 'right.**.left.left.value').length).toBe(57);
  // As an automaton of sets of positions, this one has 2^20 states.
  expect(pathsLike(root, `**.left${'.*'.repeat(20)}.value`).length).toBe(39);
  expect(() => pathsLike(root, '**.valeu')).toThrow("no field of the configs matches. Did you mean 'value'?");
});
