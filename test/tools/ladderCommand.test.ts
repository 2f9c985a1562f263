/** @file `luthier ladder`: the law of a study, its prediction and its picture; studies that have none. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Small } from '../../experiments/lm.js';
import { build, toJSON } from '../../src/hparams/index.js';
import { ladder, type Search } from '../../src/search/index.js';
import { Study, trialName } from '../../src/search/studies/index.js';
import { parseArguments } from '../../src/tools/command.js';
import { ladderCommand } from '../../src/tools/ladderCommand.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

async function report(...argv: string[]) {
  const args = await parseArguments('ladder', ladderCommand, argv, () => {});
  if (args === 'help') throw new Error('asked for help');
  return ladderCommand.run(args);
}

const TOKENS_PER_STEP = 8;
const parametersOf = (dims: number): number => (256 + 4) * dims + 12 * dims ** 2 + 3 * dims;
const law = (parameters: number, tokens: number): number => 1.5 + 40 / parameters ** 0.4 + 30 / tokens ** 0.5;

/** A study of a ladder whose losses follow a law; its runs have records alone. */
async function studied(sizes: readonly number[], loss = law): Promise<string> {
  const directory = temporaryDirectory();
  const search: Search = build(
    ladder({
      sizes: sizes.map((modelDims) => ({ modelDims })),
      lengths: [{ numTrainSteps: 100 }, { numTrainSteps: 400 }, { numTrainSteps: 1600 }],
      metric: 'train/loss',
    }),
  );
  const { searchAlgorithm: algorithm, space, maxNumTrials } = search.hp;
  const study = await Study.open({ directory, name: 'x.X', space, algorithm, seed: 0, maxNumTrials });
  for (let trial = await study.ask(); typeof trial !== 'string'; trial = await study.ask()) {
    const values = trial.values as { modelDims: number; numTrainSteps: number };
    const shape = { numLayers: 1, numHeads: 1, seqLen: 4, batchSize: 2 };
    const experiment = new (Small.preset({ ...shape, ...values }))();
    const config = toJSON({ task: experiment.task(), datasets: experiment.datasets(), decodeDatasets: [] });
    const run = join(directory, 'trials', trialName(trial.number, trial.values));
    mkdirSync(run, { recursive: true });
    writeFileSync(join(run, 'experiment.json'), JSON.stringify({ name: 'lm.Small', config }));
    const own = loss(parametersOf(values.modelDims), TOKENS_PER_STEP * values.numTrainSteps);
    study.tell(trial, { state: 'done', rewards: [-own] });
  }
  study.close();
  return directory;
}

longTest('a law, the next size, a size that is asked for, and a picture', async () => {
  const directory = await studied([8, 16, 32, 64]);
  const picture = join(directory, 'ladder.svg');
  const { text, json } = await report(directory, `--picture=${picture}`);
  const { predicted, trials, largestOff } = json() as {
    predicted: { parameters: number; tokens: number; loss: number }[];
    trials: { parameters: number; tokens: number; flops: number }[];
    largestOff: number[];
  };
  expect(trials.map(({ parameters }) => parameters)).toEqual(
    [8, 16, 32, 64].flatMap((dims) => Array(3).fill(parametersOf(dims))),
  );
  expect(trials.slice(0, 3).map(({ tokens }) => tokens)).toEqual([800, 3200, 12800]);
  expect(trials[1]!.flops / trials[0]!.flops).toBeCloseTo(4, 6);
  const [{ parameters, tokens, loss }] = predicted as [(typeof predicted)[number]];
  const ratio = parametersOf(64) / parametersOf(32);
  for (const grown of [parameters / parametersOf(64), tokens / 12800])
    expect(grown / ratio).toBeCloseTo(1, 9);
  expect(loss / law(parameters, tokens)).toBeCloseTo(1, 3);
  expect(largestOff).toHaveLength(3);
  for (const off of largestOff) expect(Math.abs(off)).toBeLessThan(0.002);
  const lines = text((_, part) => part).split('\n');
  expect(lines[0]!.split(/ {2,}/)).toEqual(['trial', 'parameters', 'tokens', 'FLOPs', 'loss', 'law']);
  expect(lines[1]!.trim().split(/ {2,}/).slice(0, 3)).toEqual(['0', '2.87k', '800']);
  expect(lines.slice(13).join('\n')).toMatch(
    /^\nloss = 1\.\d+ \+ [\d.]+ \/ parameters\^0\.\d+ \+ [\d.]+ \/ tokens\^0\.\d+\nFor the least loss of a number of FLOPs, parameters grow by its power of 0\.\d+, tokens by 0\.\d+\.\nThe law of the smaller sizes is off by .* for the largest\.\nPredicted: /,
  );
  const svg = readFileSync(picture, 'utf8');
  expect([svg.match(/<polyline /g)!.length, svg.match(/<circle /g)!.length]).toEqual([4, 13]);
  const asked = (await report(directory, '--at=50k,1M', '--at=2872,800')).json() as {
    predicted: { loss: number }[];
  };
  expect(asked.predicted.map(({ loss }) => loss / law(5e4, 1e6))[0]).toBeCloseTo(1, 2);
  expect(asked.predicted[1]!.loss / law(2872, 800)).toBeCloseTo(1, 3);
});

test('errors', async () => {
  const two = await studied([8, 16]);
  await expect(report(two)).rejects.toThrow(
    `${two}: expected trials of at least 3 sizes and 3 numbers of tokens; found 2 and 3 in 6 trials that have ended.`,
  );
  const gains = await studied([8], () => -1);
  await expect(report(gains)).rejects.toThrow(
    `${gains}: trial 0: expected a loss, got the reward 1. The search must minimize one metric that is above 0, as those of ladder() do.`,
  );
  for (const at of ['1M', '0,5', '1M,2Q'])
    await expect(report(two, `--at=${at}`)).rejects.toThrow(
      `--at: expected parameters and tokens, such as 1.2M,300M; got '${at}'.`,
    );
  await expect(report(temporaryDirectory())).rejects.toThrow('expected the directory of a study:');
  expect(() => ladder({ sizes: [], lengths: [{ n: 1 }], metric: 'loss' })).toThrow(
    'ladder: expected at least one size with one length.',
  );
  expect(() => ladder({ sizes: [{ a: 1 }, { a: 1, b: 2 }], lengths: [{ n: 1 }], metric: 'loss' })).toThrow(
    'ladder: all sizes and lengths need the same settings; one has a, b, n, and the first a, n.',
  );
  const search = build(
    ladder({ sizes: [{ a: 2 }, { a: 5 }], lengths: ({ a }) => [{ n: 10 * (a as number) }], metric: 'loss' }),
  );
  expect(search.hp.searchAlgorithm.propose({ space: {}, number: 1, trials: [], seed: 0 })).toEqual({
    values: { a: 5, n: 50 },
  });
});
