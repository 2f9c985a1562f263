/** @file Constants that the settings of reviews give: to which experiments, by whose settings. */
import { expect, test } from 'vitest';
import { givenConstants } from '../../../src/review/changes/givenConstants.js';

const experiments = {
  old: new Set(['lm.Small', 'lm.Large', 'mt.Base']),
  all: ['lm.Small', 'lm.Large', 'mt.Base', 'lm.New'],
};

/** `path=text` of each experiment, in the order in which they are set. */
function given(
  base: Parameters<typeof givenConstants>[0]['base'],
  workingTree = {},
): Record<string, string[]> {
  const { of } = givenConstants({ base, workingTree }, experiments);
  return Object.fromEntries(
    Object.entries(of).map(([name, constants]) => [
      name,
      constants.map(({ path, text }) => `${path}=${text}`),
    ]),
  );
}

test('a name counts after a pattern, and texts are as --set takes them', () => {
  expect(
    given({
      'lm.Small': { dataPath: 'small.txt' },
      'lm.*': { dataPath: 'all.txt', rates: [1, 0.5] },
      gone: { a: 1 },
    }),
  ).toEqual({
    'lm.Small': ['dataPath=all.txt', 'rates=[1,0.5]', 'dataPath=small.txt'],
    'lm.Large': ['dataPath=all.txt', 'rates=[1,0.5]'],
    'lm.New': ['dataPath=all.txt', 'rates=[1,0.5]'],
  });
});

test('the working tree gives constants to its new experiments alone', () => {
  const workingTree = { 'lm.*': { dataPath: 'mine.txt' } };
  expect(given({ 'mt.*': { dataPath: 'all.txt' } }, workingTree)).toEqual({
    'lm.New': ['dataPath=mine.txt'],
    'mt.Base': ['dataPath=all.txt'],
  });
});

test('unknown names of the working tree, with what is near', () => {
  expect(() => given({}, { 'lm.Smal': { dataPath: 'a.txt' } })).toThrow(
    "luthier.review.constants['lm.Smal'] of package.json: no experiment has this name. Did you mean 'lm.Small'?",
  );
  expect(() => given({}, { 'vision.*': { dataPath: 'a.txt' } })).toThrow(
    "luthier.review.constants['vision.*'] of package.json: no experiment has this name.",
  );
});
