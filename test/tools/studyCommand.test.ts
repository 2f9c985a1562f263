/** @file `luthier study`: table, importance and picture of a study. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { choice, RandomSearch, real } from '../../src/search/index.js';
import { Study } from '../../src/search/studies/index.js';
import { parseArguments } from '../../src/tools/command.js';
import { studyCommand } from '../../src/tools/studyCommand.js';
import { temporaryDirectory } from '../command.js';

async function report(...argv: string[]) {
  const args = await parseArguments('study', studyCommand, argv, () => {});
  if (args === 'help') throw new Error('asked for help');
  return studyCommand.run(args);
}

async function studied(): Promise<string> {
  const directory = temporaryDirectory();
  const space = { rate: real(1e-4, 1, { log: true }), kind: choice(['a', 'b']) };
  const algorithm = build(RandomSearch.config());
  const study = await Study.open({ directory, name: 'x.X', space, algorithm, seed: 0, maxNumTrials: 40 });
  for (let i = 0; i < 40; i++) {
    const trial = await study.ask();
    if (typeof trial === 'string') throw new Error(trial);
    const reward = -((Math.log10(trial.values.rate as number) + 2) ** 2);
    study.tell(trial, i === 7 ? { state: 'failed', reason: 'lost' } : { state: 'done', rewards: [reward] });
  }
  study.close();
  return directory;
}

test('the best trials, the importance of parameters, and a picture with a line for each trial', async () => {
  const directory = await studied();
  const picture = join(directory, 'trials.svg');
  const { text, json } = await report(directory, '--most=3', `--picture=${picture}`);
  const lines = text((_, part) => part).split('\n');
  expect(lines[0]!.split(/ +/)).toEqual(['trial', 'state', 'reward', 'rate', 'kind']);
  expect(lines).toHaveLength(6);
  expect(lines.at(-1)).toMatch(/^40 trials: 39 done, 1 failed\. Importance: rate \d+ %, kind \d+ %\.$/);
  const { trials, importance } = json() as {
    trials: { rewards?: number[]; reason?: string }[];
    importance: Record<string, number>;
  };
  const rewards = trials.flatMap((trial) => trial.rewards ?? []);
  expect(rewards).toEqual(rewards.toSorted((a, b) => b - a));
  expect(trials.at(-1)).toMatchObject({ state: 'failed', reason: 'lost' });
  expect(importance.rate).toBeGreaterThan(0.8);
  const svg = readFileSync(picture, 'utf8');
  expect(svg.match(/<polyline /g)).toHaveLength(39);
  expect(svg.match(/font-weight="bold">[^<]*/g)!.map((each) => each.split('>')[1])).toEqual([
    'rate',
    'kind',
    'reward',
  ]);
});

test('errors', async () => {
  const directory = await studied();
  await expect(report(directory, '--diff=1,90')).rejects.toThrow(`${directory} has no trial 90.`);
  await expect(report(directory, '--diff=1')).rejects.toThrow(
    "--diff: expected the numbers of two trials, such as 3,7; got '1'.",
  );
  await expect(report(directory, '--picture=a.png')).rejects.toThrow(
    "--picture: expected the name of an SVG file, such as study.svg; got 'a.png'.",
  );
  await expect(report(temporaryDirectory())).rejects.toThrow('expected the directory of a study:');
});
