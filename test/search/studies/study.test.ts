/** @file Studies: claims, resumption, merged records, importance, tables. */
import { appendFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { problems } from '../../../bench/searchProblems.js';
import { build } from '../../../src/hparams/index.js';
import { choice, PopulationBasedTraining, RandomSearch, real, Tpe } from '../../../src/search/index.js';
import {
  type ClaimedTrial,
  importanceOf,
  readTrials,
  Study,
  type StudyOptions,
  studyText,
  trialName,
} from '../../../src/search/studies/index.js';
import { temporaryDirectory } from '../../command.js';
import { bestOf, searched } from '../tell.js';

const { mixed } = problems as Record<string, NonNullable<(typeof problems)[string]>>;

const options = (directory: string, more: Partial<StudyOptions> = {}): StudyOptions => ({
  ...{ directory, name: 'mixed', space: mixed!.space, seed: 0, maxNumTrials: 20 },
  algorithm: build(Tpe.config()),
  ...more,
});
const rewardOf = ({ values }: Pick<ClaimedTrial, 'values'>) => [-mixed!.loss(values)];

/** Asks and tells, until there is no trial or `count` have been told. */
async function work(study: Study, count = Number.POSITIVE_INFINITY): Promise<void> {
  for (let i = 0; i < count; i++) {
    const trial = await study.ask();
    if (typeof trial === 'string') break;
    study.tell(trial, { state: 'done', rewards: rewardOf(trial) });
  }
}

/** Leaves a study as a kill does: its lock goes, and its claims stay. */
const kill = (study: Study) => study.close();

test('a study that is resumed after each of its trials is the same study', async () => {
  const whole = temporaryDirectory();
  const study = await Study.open(options(whole));
  await work(study);
  expect(await study.ask()).toBe('exhausted');
  study.close();
  const pieces = temporaryDirectory();
  for (let i = 0; i < 20; i++) {
    const part = await Study.open(options(pieces));
    await work(part, 1);
    // Claimed, proposed, and never told.
    if (i < 19) await part.ask();
    kill(part);
  }
  const values = (directory: string) =>
    readTrials(directory).map((trial) => [trial.number, trial.values, trial.rewards]);
  expect(values(pieces)).toEqual(values(whole));
  expect(values(whole)).toEqual(
    searched(Tpe.config(), mixed!.space, (each) => -mixed!.loss(each), { count: 20 }).map((trial) => [
      trial.number,
      trial.values,
      trial.rewards,
    ]),
  );
});

test('several processes take different trials; what one leaves, another ends, with the same values', async () => {
  const directory = temporaryDirectory();
  const [a, b] = [await Study.open(options(directory)), await Study.open(options(directory))];
  const [first, second] = [(await a.ask()) as ClaimedTrial, (await b.ask()) as ClaimedTrial];
  expect([first.number, second.number]).toEqual([0, 1]);
  kill(a);
  const third = (await b.ask()) as ClaimedTrial;
  expect(third).toEqual({ ...first, attempt: 2 });
  b.tell(third, { state: 'done', rewards: [1] });
  b.tell(second, { state: 'infeasible', rewards: [Number.NaN] });
  expect(b.trials()).toMatchObject([
    { number: 0, state: 'done', rewards: [1] },
    { number: 1, state: 'infeasible', reason: 'rewards NaN' },
  ]);
  b.close();
});

test('lines that a kill has cut off, and empty claims, lose nothing', async () => {
  const directory = temporaryDirectory();
  const study = await Study.open(options(directory, { maxNumTrials: 3 }));
  await work(study, 1);
  kill(study);
  const [records] = readdirSync(join(directory, 'processes')).filter((name) => name.endsWith('.jsonl'));
  appendFileSync(join(directory, 'processes', records!), '{"event":"told","trial":1,"atte');
  const claim = join(directory, 'claims/1.1');
  writeFileSync(claim, '');
  utimesSync(claim, 1, 1);
  const next = await Study.open(options(directory, { maxNumTrials: 3 }));
  await work(next);
  expect(next.trials().map(({ number, state }) => `${number} ${state}`)).toEqual([
    '0 done',
    '1 done',
    '2 done',
  ]);
  next.close();
});

test('an algorithm that waits for a round has its trials from another process', async () => {
  const directory = temporaryDirectory();
  const algorithm = build(PopulationBasedTraining.config({ populationSize: 2, stepsPerRound: 5 }));
  const study = await Study.open(options(directory, { algorithm, maxNumTrials: 4 }));
  const [first, second] = [(await study.ask()) as ClaimedTrial, (await study.ask()) as ClaimedTrial];
  expect(await study.ask()).toBe('wait');
  study.tell(first, { state: 'done', rewards: [1] });
  expect(await study.ask()).toBe('wait');
  study.tell(second, { state: 'done', rewards: [0] });
  expect(await study.ask()).toMatchObject({ number: 2, steps: 10, from: 0 });
  study.close();
});

test('a study learns from prior ones, and refuses the directory of another search', async () => {
  const prior = temporaryDirectory();
  const first = await Study.open(
    options(prior, { algorithm: build(RandomSearch.config()), maxNumTrials: 30 }),
  );
  await work(first);
  first.close();
  const [alone, after] = [temporaryDirectory(), temporaryDirectory()];
  for (const [directory, priorStudies] of [
    [alone, []],
    [after, [prior]],
  ] as const) {
    const study = await Study.open(options(directory, { maxNumTrials: 5, priorStudies }));
    await work(study);
    study.close();
  }
  expect(bestOf(readTrials(after))).toBeGreaterThan(bestOf(readTrials(alone)));
  await expect(Study.open(options(prior, { seed: 1 }))).rejects.toThrow(
    `${prior} is a study of mixed with another space, seed or name: take another directory, or the search that it began with.`,
  );
});

test('trials of earlier studies are the first of a study that adds them, told once through kills', async () => {
  const [prior, directory] = [temporaryDirectory(), temporaryDirectory()];
  const first = await Study.open(
    options(prior, { maxNumTrials: 4, algorithm: build(RandomSearch.config()) }),
  );
  await work(first, 2);
  first.tell((await first.ask()) as ClaimedTrial, { state: 'infeasible', reason: 'not finite' });
  // One that has not ended is none.
  await first.ask();
  kill(first);
  const adding = options(directory, { maxNumTrials: 6, priorStudies: [prior], addPriorTrials: true });
  // A kill between a claim and what is recorded of it.
  const before = await Study.open(adding);
  before.claims.take(0, 1);
  kill(before);
  for (let i = 0; i < 3; i++) {
    const part = await Study.open(adding);
    await part.ask();
    kill(part);
  }
  const last = await Study.open(adding);
  await work(last);
  expect(await last.ask()).toBe('exhausted');
  kill(last);
  const known = readTrials(prior).slice(0, 3);
  const trials = readTrials(directory);
  expect(trials.slice(0, 3)).toEqual(
    known.map((trial) => ({
      ...trial,
      directory: join(prior, 'trials', trialName(trial.number, trial.values)),
    })),
  );
  expect(trials.map(({ number, state }) => `${number} ${state}`)).toEqual(
    ['done', 'done', 'infeasible', 'done', 'done', 'done'].map((state, i) => `${i} ${state}`),
  );
  expect(trials.slice(3).every((trial) => trial.directory === undefined)).toBe(true);
  expect(readTrials(prior).length).toBe(4);
});

test('importance finds the parameter that matters', () => {
  const space = { big: real(0, 1), small: real(0, 1), kind: choice(['a', 'b', 'c']) };
  const trials = searched(
    RandomSearch.config(),
    space,
    ({ big, small }) => -(((big as number) - 0.3) ** 2) - 0.001 * (small as number),
    { count: 200 },
  );
  const importance = importanceOf(space, trials);
  expect([...importance.keys()][0]).toBe('big');
  expect(importance.get('big')).toBeGreaterThan(0.7);
  expect([...importance.values()].reduce((sum, each) => sum + each)).toBeCloseTo(1);
  expect(importanceOf(space, trials.slice(0, 5)).size).toBe(0);
});

test('a table of trials, and names of their directories', () => {
  expect(
    studyText([
      { number: 0, values: { x: 0.123456789 }, state: 'done', rewards: [1] },
      { number: 1, values: { x: 2, y: 'a' }, state: 'done', rewards: [3] },
      { number: 2, values: { x: 3 }, state: 'infeasible' },
    ]),
  ).toBe(
    [
      'trial  state       reward        x  y',
      '    1  done             3        2  a',
      '    0  done             1  0.12346',
      '    2  infeasible                3',
      '',
      '3 trials: 2 done, 1 infeasible.',
    ].join('\n'),
  );
  expect(trialName(1, { x: 1, y: 'a' })).toBe('1/x=1,y=a');
  expect(trialName(2, { 'task.rate': 0.0025114 })).toBe('2/rate=2.511e-03');
  expect(trialName(3, { [`a${'b'.repeat(64)}`]: true, c: 'd/e' })).toBe('3/true,d_e');
});
