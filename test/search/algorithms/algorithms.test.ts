/** @file Search algorithms: they find optima, follow from seed and results alone, and keep their published rules. */
import { describe, expect, test } from 'vitest';
import { problems } from '../../../bench/searchProblems.js';
import { build } from '../../../src/hparams/index.js';
import {
  choice,
  integer,
  Nsga2,
  PopulationBasedTraining,
  RandomSearch,
  RegularizedEvolution,
  real,
  SuccessiveHalving,
  Sweeping,
  Tpe,
  type Trial,
} from '../../../src/search/index.js';
import { dominates, paretoFronts } from '../../../src/search/pareto.js';
import { bestOf, searched } from '../tell.js';

const { mixed, conditional, branin } = problems as Record<string, NonNullable<(typeof problems)[string]>>;

describe('better than random search', () => {
  const medians = (algorithm: Parameters<typeof searched>[0], problem: typeof mixed, count: number) => {
    const bests = [0, 1, 2, 3, 4].map((seed) =>
      bestOf(searched(algorithm, problem!.space, (values) => -problem!.loss(values), { count, seed })),
    );
    return bests.sort((a, b) => a - b)[2]!;
  };

  test.each([
    ['TPE, mixed', Tpe.config(), mixed],
    ['TPE, conditional', Tpe.config(), conditional],
    ['evolution', RegularizedEvolution.config({ populationSize: 15, tournamentSize: 6 }), mixed],
    ['NSGA-II', Nsga2.config({ populationSize: 12 }), mixed],
  ])('%s', (_, algorithm, problem) => {
    expect(medians(algorithm, problem, 70)).toBeGreaterThan(
      medians(RandomSearch.config(), problem, 70) + 0.01,
    );
  });
});

test.each([
  ['random', RandomSearch.config()],
  ['TPE', Tpe.config()],
  ['evolution', RegularizedEvolution.config({ populationSize: 8, tournamentSize: 3 })],
  ['NSGA-II', Nsga2.config({ populationSize: 8 })],
  ['halving', SuccessiveHalving.config({ minSteps: 1, maxSteps: 16, sampler: Tpe.config() })],
  ['PBT', PopulationBasedTraining.config({ populationSize: 6, stepsPerRound: 10 })],
])('%s: a proposal follows from seed, number and results; infeasible trials are survived', (_, algorithm) => {
  const reward = (values: { readonly optimizer?: unknown }) =>
    values.optimizer === 'lion' ? Number.NaN : -conditional!.loss(values as never);
  const all = searched(algorithm, conditional!.space, reward, { count: 40 });
  expect(all.length).toBe(40);
  expect(searched(algorithm, conditional!.space, reward, { count: 40 })).toEqual(all);
  const again = build(algorithm).propose({
    space: conditional!.space,
    number: 33,
    trials: all.slice(0, 33),
    seed: 0,
  });
  expect(again).toEqual({
    values: all[33]!.values,
    ...(all[33]!.steps !== undefined && { steps: all[33]!.steps }),
    ...(all[33]!.from !== undefined && { from: all[33]!.from }),
  });
  expect(searched(algorithm, conditional!.space, reward, { count: 40, seed: 1 })).not.toEqual(all);
});

test('TPE stays out of what is infeasible', () => {
  const trials = searched(
    Tpe.config(),
    { x: real(0, 1) },
    ({ x }) => ((x as number) < 0.5 ? Number.NaN : 0),
    {
      count: 60,
    },
  );
  const infeasible = trials.slice(30).filter(({ state }) => state === 'infeasible');
  expect(infeasible.length).toBeLessThan(10);
});

describe('sweeping', () => {
  const sweep = (config: Parameters<typeof Sweeping.config>[0], space: Parameters<typeof searched>[1]) =>
    searched(Sweeping.config(config), space, () => 0).map(({ values }) => Object.values(values).join(' '));

  test('all combinations, the last parameter fastest, and those that are active', () => {
    const space = {
      kind: choice(['a', 'b']),
      size: integer(1, 5, { step: 2, when: { kind: 'b' } }),
      on: choice([true, false]),
    };
    expect(sweep({}, space)).toEqual(
      'a true,a false,b 1 true,b 1 false,b 3 true,b 3 false,b 5 true,b 5 false'.split(','),
    );
  });

  test('a grid of real numbers, on their scale', () => {
    expect(sweep({ numPoints: 3 }, { x: real(1e-4, 1, { log: true }) }).map(Number)).toEqual([
      expect.closeTo(1e-4, 10),
      expect.closeTo(1e-2, 10),
      1,
    ]);
    expect(() => sweep({}, { x: real(0, 1) })).toThrow(
      "Sweeping: 'x' has real numbers without a step: set numPoints, or give it a step.",
    );
  });

  test('rows of values, and the errors of a header or a row that does not fit', () => {
    const rows = {
      combinations: [
        ['lr', 'dims'],
        [0.1, 32],
        [0.01, 64],
      ],
    };
    expect(sweep(rows, {})).toEqual(['0.1 32', '0.01 64']);
    expect(() => build(Sweeping.config({ combinations: [['lr'], [1, 2]] }))).toThrow(
      'all rows must have the same length',
    );
    expect(() => build(Sweeping.config({ combinations: [[1], [2]] }))).toThrow(
      'the first row has the names of the parameters',
    );
    expect(() => Sweeping.config({ combinations: [['lr']] })).toThrow('combinations');
  });
});

test('evolution mutates one parameter of the best of a tournament, among those alive', () => {
  const trials = searched(
    RegularizedEvolution.config({ populationSize: 5, tournamentSize: 5 }),
    { x: real(0, 1), y: real(0, 1) },
    ({ x }) => x as number,
    { count: 60 },
  );
  for (const [i, { values }] of trials.entries()) {
    if (i < 5) continue;
    const alive = trials.slice(i - 5, i);
    const parent = alive.reduce((a, b) => (b.rewards![0]! > a.rewards![0]! ? b : a)).values;
    expect([values.x === parent.x, values.y === parent.y].sort()).toEqual([false, true]);
  }
});

test('NSGA-II covers the front of two objectives', () => {
  // Schaffer's problem: the front is x from 0 to 2.
  const trials = searched(
    Nsga2.config({ populationSize: 20 }),
    { x: real(-100, 100) },
    ({ x }) => [-((x as number) ** 2), -(((x as number) - 2) ** 2)],
    { count: 300 },
  );
  const [front] = paretoFronts(trials as never);
  const found = front!.map(({ values }) => values.x as number).sort((a, b) => a - b);
  expect(found.length).toBeGreaterThan(20);
  expect(found[0]).toBeGreaterThan(-0.1);
  expect(found.at(-1)).toBeLessThan(2.1);
  expect(found.at(-1)! - found[0]!).toBeGreaterThan(1.5);
  expect(front!.some((a) => front!.some((b) => dominates(a.rewards, b.rewards)))).toBe(false);
});

test('successive halving promotes the best part of a rung, with its values and state', () => {
  const trials = searched(
    SuccessiveHalving.config({ minSteps: 10, maxSteps: 90, reductionFactor: 3 }),
    { x: real(0, 1) },
    ({ x }) => x as number,
    { count: 200 },
  );
  const rung = (steps: number) => trials.filter((trial) => trial.steps === steps);
  expect(rung(10).length + rung(30).length + rung(90).length).toBe(200);
  expect(rung(30).length).toBeGreaterThanOrEqual(Math.floor(rung(10).length / 3) - 1);
  expect(rung(90).length).toBeGreaterThanOrEqual(Math.floor(rung(30).length / 3) - 1);
  for (const { steps, from, values } of [...rung(30), ...rung(90)]) {
    expect(trials[from!]!.values).toEqual(values);
    expect(trials[from!]!.steps).toBe(steps! / 3);
  }
  expect(new Set(trials.flatMap(({ from }) => from ?? [])).size).toBe(rung(30).length + rung(90).length);
  expect(Math.min(...rung(90).map(({ values }) => values.x as number))).toBeGreaterThan(0.7);
});

describe('population-based training', () => {
  const config = PopulationBasedTraining.config({ populationSize: 8, stepsPerRound: 5 });
  const space = { rate: real(1e-4, 1, { log: true }), kind: choice(['a', 'b']) };

  test('the worst of a round go on from the best, near to their values; the others with their own', () => {
    const trials = searched(config, space, ({ rate }) => rate as number, { count: 16 });
    const ranked = trials.slice(0, 8).toSorted((a, b) => b.rewards![0]! - a.rewards![0]!);
    const [best, worst] = [ranked.slice(0, 2), ranked.slice(-2)].map((some) =>
      some.map((each) => each.number),
    );
    for (const trial of trials.slice(8)) {
      const own = trial.number - 8;
      expect(trial.steps).toBe(10);
      if (worst!.includes(own)) expect(best).toContain(trial.from);
      else expect(trial).toMatchObject({ from: own, values: trials[own]!.values });
    }
  });

  test('waits for the round before', () => {
    const trials: Trial[] = searched(config, space, () => 0, { count: 8 });
    trials[3] = { number: 3, values: trials[3]!.values, steps: 5, state: 'running' };
    expect(build(config).propose({ space, number: 8, trials, seed: 0 })).toBe('wait');
  });
});

test('TPE of several objectives prefers the front', () => {
  const trials = searched(
    Tpe.config(),
    branin!.space,
    ({ x0, x1 }) => [-Math.abs((x0 as number) - 1), -Math.abs((x1 as number) - 3)],
    { count: 60 },
  );
  const near = trials.slice(20).filter(({ rewards }) => rewards![0]! + rewards![1]! > -4);
  // Of random ones, 6.
  expect(near.length).toBeGreaterThan(15);
});
