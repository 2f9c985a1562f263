/** @file Generated code of random graphs: it makes equal configs and type-checks. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CodegenOptions, codegen } from '../../../src/hparams/codegen/codegen.js';
import * as luthier from '../../../src/hparams/index.js';
import { isEqual, iterate } from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import * as graphs from '../randomGraphs.js';
import { makeGraph, recipes } from '../randomGraphs.js';
import { evaluate, typeErrorsIn } from './program.js';

const modules = {
  '../../../test/hparams/randomGraphs.js': graphs,
  '../../../src/hparams/index.js': luthier,
};
const options: fc.Arbitrary<CodegenOptions> = fc.record({
  modules: fc.constant(modules),
  style: fc.constantFrom('nested', 'statements'),
  maxComplexity: fc.constantFrom(5, 20, Number.POSITIVE_INFINITY),
  history: fc.boolean(),
});

describe('codegen of random graphs', () => {
  it('makes equal configs with the same sharing', () => {
    fc.assert(
      fc.property(recipes, options, (recipe, given) => {
        const root = makeGraph(recipe);
        const made = evaluate(codegen(root, given), modules).config!();
        expect(isEqual(made, root, { tags: true })).toBe(true);
        expect(iterate(made)).toHaveLength(iterate(root).length);
      }),
      { numRuns: runs(1000, 100) },
    );
  });

  it('passes the type checker', () => {
    const samples = fc.sample(fc.tuple(recipes, options), { numRuns: 80, seed: 7 });
    const texts = samples.map(([recipe, given]) => codegen(makeGraph(recipe), given));
    expect(typeErrorsIn('random', texts)).toEqual([]);
  });
});
