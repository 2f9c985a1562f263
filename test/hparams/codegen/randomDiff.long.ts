/** @file Generated code of random diffs: it does what the diff does, and type-checks. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codegenDiff } from '../../../src/hparams/codegen/codegenDiff.js';

import type { Diff } from '../../../src/hparams/diff/changes.js';
import * as luthier from '../../../src/hparams/index.js';
import { applyDiff, buildDiff, isEqual } from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import * as graphs from '../randomGraphs.js';
import { makeGraph, type Recipe, recipes } from '../randomGraphs.js';
import { messageOf } from '../support.js';
import { evaluate, typeErrorsIn } from './program.js';

const modules = {
  '../../../test/hparams/randomGraphs.js': graphs,
  '../../../src/hparams/index.js': luthier,
};

/** Tagged values in containers are configs of their own only to those who ask: edits see through them. */
function withoutParts(recipe: Recipe): Recipe {
  return recipe.tags === 'part' ? { ...recipe, tags: 'mark' } : recipe;
}

/** Recipes, and the same with some of them left out, put in or changed. */
const pairs: fc.Arbitrary<[Recipe[], Recipe[]]> = fc
  .tuple(recipes, recipes, fc.array(fc.nat({ max: 14 }), { maxLength: 3 }), fc.boolean())
  .map(([first, second, changed, isUnrelated]) => {
    const [old, other] = [first.map(withoutParts), second.map(withoutParts)];
    if (isUnrelated) return [old, other];
    return [old, old.map((recipe, i) => (changed.includes(i) ? (other[i] ?? recipe) : recipe))];
  });

function changesKind({ changes }: Diff): boolean {
  return changes.some(({ kind }) => kind === 'kind');
}

describe('codegenDiff of random graphs', () => {
  it('makes functions that derive the new config with the same sharing', () => {
    fc.assert(
      fc.property(pairs, ([left, right]) => {
        const old = makeGraph(left);
        const now = makeGraph(right);
        const before = codegenDiff(buildDiff(makeGraph(left), old), { modules });
        expect(before).toContain('return root;');
        const diff = buildDiff(old, now);
        if (changesKind(diff)) {
          expect(messageOf(() => codegenDiff(diff, { modules }))).toContain('which derive() cannot do');
          return;
        }
        const text = codegenDiff(diff, { modules });
        const made = evaluate(text, modules).edit!(old);
        expect(isEqual(made, now)).toBe(true);
        expect(isEqual(made, applyDiff(diff, old), { tags: true })).toBe(true);
        expect(isEqual(old, makeGraph(left))).toBe(true);
      }),
      { numRuns: runs(1000, 100) },
    );
  });

  it('passes the type checker', () => {
    const samples = fc.sample(pairs, { numRuns: 80, seed: 11 });
    const diffs = samples.map(([left, right]) => buildDiff(makeGraph(left), makeGraph(right)));
    const texts = diffs.filter((diff) => !changesKind(diff)).map((diff) => codegenDiff(diff, { modules }));
    expect(texts.length).toBeGreaterThan(50);
    expect(typeErrorsIn('randomDiff', texts)).toEqual([]);
  });
});
