/** @file Check of one experiment in this process, level by level. */
import { expect, test } from 'vitest';
import { parseSet } from '../../../src/cli/index.js';
import { Check } from '../../../src/tools/validate/experimentCheck.js';
import { type Level, levels } from '../../../src/tools/validate/levels.js';

async function checked(level: Level, ...sets: string[]) {
  const reached: Level[] = [];
  const changes = sets.map((text) => parseSet(text, '--set'));
  const question = { name: 'lm.Small', level, changes, lenient: true, directory: 'nowhere' };
  return { reached, findings: await new Check(question, (one) => reached.push(one)).run() };
}

test.each(levels.slice(0, 3))('up to level %s, those below it first', async (level) => {
  const { reached, findings } = await checked(level);
  expect(reached).toEqual(levels.slice(0, levels.indexOf(level) + 1));
  const parameters = level === 'resolve' ? {} : { parameters: expect.any(Number) };
  expect(findings).toEqual({ problems: [], warnings: [], unread: [], ignored: [], ...parameters });
});

test('a level that fails is not reached, nor are those above; settings that do not fit are ignored where they may', async () => {
  const { reached, findings } = await checked('datasets', 'numLayers=0', 'nothing=1');
  expect(reached).toEqual(['resolve']);
  expect(findings).toEqual({
    problems: [
      {
        ...{ level: 'task', path: 'numLayers', place: '--set numLayers=0' },
        message: "Small.numLayers: expected a positive integer, got '0'",
      },
    ],
    ...{ warnings: [], unread: [] },
    ignored: ['--set nothing=1'],
  });
});
