/** @file Metrics of tasks are of each example of a split once, however hosts and batches share them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build, type ConfigValues, configurable } from '../../../../src/hparams/index.js';
import {
  AppendEos,
  type Batch,
  ExactMatch,
  type Example,
  FlatMap,
  InputError,
  LanguageModelFeatures,
  MeanScore,
  Mixture,
  type PostprocessContext,
  RebatchedInput,
  type SeqioInput,
  type Task,
  Tokenize,
} from '../../../../src/inputs/index.js';
import { runs } from '../../../faults/campaign.js';
import { batchesOf, numbersTask, seqio } from '../corpora.js';

/** The number n becomes n mod 4 examples, so that rows have no numbers of records. */
const copies = configurable(
  () => (example: Example) => {
    const number = Number((example.targets as string).split(' ')[0]);
    return Array.from({ length: number % 4 }, () => example);
  },
  {},
  { name: 'copies' },
);

/** Refuses every fifth number. */
const picky = configurable(
  () => (example: Example) => {
    const number = Number((example.targets as string).split(' ')[0]);
    if (number % 5 === 3) throw new InputError(`${number} is refused`);
    return example;
  },
  {},
  { name: 'picky' },
);

/** Texts as numbers; those that are targets, negative. */
const signed = configurable(
  () =>
    (text: string, { isTarget, example }: PostprocessContext) =>
      (isTarget ? -1 : 1) * Number(text.split(' ')[0]) + 0 * (example.targets as Int32Array).length,
  {},
  { name: 'signed' },
);

const largestSum = configurable(
  () => (targets: readonly unknown[], predictions: readonly unknown[]) =>
    Math.max(...targets.map((target, i) => (target as number) + (predictions[i] as number))),
  {},
  { name: 'largestSum' },
);

const shape = fc.record({
  count: fc.integer({ min: 4, max: 30 }),
  others: fc.integer({ min: 4, max: 30 }),
  isSplit: fc.boolean(),
  isMixed: fc.boolean(),
  batchSize: fc.integer({ min: 1, max: 5 }),
  evalAutoPad: fc.boolean(),
  packingRows: fc.integer({ min: 1, max: 8 }),
  hosts: fc.integer({ min: 1, max: 4 }),
  onError: fc.constantFrom('fail', 'skip'),
});

function task(
  count: number,
  from: number,
  isSplit: boolean,
  values: Partial<ConfigValues<Task>> = {},
  isPicky = false,
) {
  const split = isSplit ? [FlatMap.config({ make: copies.config({}) })] : [];
  const before = [...(isPicky ? [picky.config({})] : []), ...split];
  const made = numbersTask({ count, from }, [...before, Tokenize.config(), AppendEos.config()]);
  const scoreMetrics = { mean: MeanScore.config() };
  const predictMetrics = { exact: ExactMatch.config() };
  return Object.assign(made, { scoreMetrics, predictMetrics, ...values });
}

/** The numbers of a batch's rows, with the numbers of the examples. */
function rowsOf(batch: Batch): { readonly id: number; readonly number: number }[] {
  const { labels, exampleIds } = batch as Record<string, { data: Int32Array } | Batch> as Record<
    string,
    { data: Int32Array }
  >;
  const length = labels!.data.length / exampleIds!.data.length;
  return [...exampleIds!.data].map((id, row) => ({ id, number: labels!.data[row * length]! - 2 }));
}

/** As decoded: every third number right, the others without a digit too many. */
const decoded = (number: number): number[] => [2 + (number % 3 === 0 ? number : number + 1), 1, 77];

test('hosts, batches, mixtures, split and broken examples: one result, that of the examples that batches hold', async () => {
  const property = fc.asyncProperty(shape, async ({ count, others, isSplit, isMixed, hosts, ...values }) => {
    const isPicky = values.onError === 'skip';
    const [a, b] = [task(count, 0, isSplit, {}, isPicky), task(others, 100, false)];
    const mixtureOrTask = isMixed ? Mixture.config({ parts: { a, b }, rates: { a: 2, b: 1 } }) : a;
    const inputs = Array.from({ length: hosts }, (_, infeedHostIndex) =>
      build(seqio({ ...values, mixtureOrTask, numInfeedHosts: hosts, infeedHostIndex })),
    );
    const [scores, predictions] = [inputs[0]!.scoreMetrics()!, inputs[0]!.predictMetrics()!];
    const seen: number[] = [];
    // The last host's examples come first, and in part twice.
    for (const input of inputs.toReversed()) {
      const [ownScores, ownPredictions] = [input.scoreMetrics()!, input.predictMetrics()!];
      for (const rows of (await batchesOf(input)).map(rowsOf)) {
        const ids = rows.map(({ id }) => id);
        ownScores.add(
          ids,
          rows.map(({ number }) => -number / 8),
        );
        ownPredictions.add(
          ids,
          rows.map(({ number }) => decoded(number)),
        );
        seen.push(...rows.filter(({ id }) => id >= 0).map(({ number }) => number));
      }
      for (let times = 0; times < 2; times++) {
        const sent = JSON.parse(JSON.stringify(ownScores.outputs)) as [number, number][];
        scores.add(
          sent.map(([id]) => id),
          sent.map(([, score]) => score),
        );
        predictions.add(
          ownPredictions.outputs.map(([id]) => id),
          ownPredictions.outputs.map(([, ids]) => ids),
        );
      }
    }
    const wanted = { scores: {} as Record<string, object>, predictions: {} as Record<string, object> };
    for (const name of ['a', 'b']) {
      const own = seen.filter((number) => number >= 100 === (name === 'b'));
      if (own.length === 0) continue;
      const prefix = isMixed ? `${name}/` : '';
      const weight = own.length;
      const mean = own.reduce((sum, number) => sum - number / 8, 0) / weight;
      wanted.scores[`${prefix}mean`] = { value: expect.closeTo(mean, 9), weight };
      const right = own.filter((number) => number % 3 === 0).length;
      wanted.predictions[`${prefix}exact`] = { value: right / weight, weight };
    }
    expect(scores.result().metrics).toEqual(wanted.scores);
    expect(predictions.result().metrics).toEqual(wanted.predictions);
  });
  await fc.assert(property, { numRuns: runs(40, 8) });
});

test('metrics and postprocessors of one’s own', () => {
  const own = task(4, 5, false, {
    predictMetrics: { largestSum: largestSum.config({}) },
    postprocessor: signed.config({}),
  });
  const metrics = build(seqio({ mixtureOrTask: own })).predictMetrics()!;
  metrics.add([0, 1, 2, 3, -1], [[2 + 5], [2 + 9], [2 + 7, 1], [2 + 6], [2 + 500]]);
  const { metrics: values, compared } = metrics.result();
  expect(values).toEqual({ largestSum: { value: 3, weight: 4 } });
  expect(compared.get(1)).toEqual({ target: -6, output: 9 });
});

test('an example without an output is an error that names it', () => {
  const input = build(seqio({ mixtureOrTask: task(5, 0, false), name: 'held_out' }));
  const metrics = input.scoreMetrics()!;
  metrics.add([0, 1, 3, 4], [1, 1, 1, 1]);
  expect(() => metrics.result()).toThrow(
    "Input 'held_out': example 2 (record 2) has no score. Metrics of tasks are of all examples, on all hosts: " +
      'leave evalLoopNumBatches and resetForEval unset. evalNumExamples limits the examples.',
  );
});

test('no metrics where rows have no numbers of examples, or no end', () => {
  const mixtureOrTask = task(5, 0, false);
  const has = (values: Partial<ConfigValues<SeqioInput>>) => {
    const input = build(seqio({ mixtureOrTask, ...values }));
    return [input.scoreMetrics() !== null, input.predictMetrics() !== null];
  };
  expect(has({})).toEqual([true, true]);
  expect(has({ isTraining: true })).toEqual([false, false]);
  expect(has({ repeat: true, evalLoopNumBatches: 2 })).toEqual([false, false]);
  expect(has({ featureConverter: LanguageModelFeatures.config({ pack: true }) })).toEqual([false, false]);
  expect(has({ mixtureOrTask: numbersTask({ count: 5 }) })).toEqual([false, false]);
});

test('scores are of targets alone', () => {
  const mixtureOrTask = task(5, 0, false);
  mixtureOrTask.features = { ...mixtureOrTask.features, inputs: mixtureOrTask.features.targets! };
  const taskFeatureLengths = { inputs: 4, targets: 4 };
  expect(() => build(seqio({ mixtureOrTask, taskFeatureLengths })).scoreMetrics()).toThrow(
    "Input 'input': score metrics are of the targets' likelihood, and the converter gives inputs a weight, too: set " +
      'weightsOnTargetsOnly to true.',
  );
});

test('metrics say nothing about rows: states are the same without them', () => {
  const stateOf = (values: Partial<ConfigValues<Task>>) =>
    build(seqio({ mixtureOrTask: task(5, 0, true, values) })).getState();
  const other = { scoreMetrics: {}, predictMetrics: {}, postprocessor: signed.config({}) };
  expect(stateOf(other)).toEqual(stateOf({}));
});

test('rows in batches of another size keep their numbers, and padding has none', async () => {
  const input = seqio({ mixtureOrTask: task(5, 0, false), batchSize: 3 });
  const rebatched = build(RebatchedInput.config({ input, batchSize: 4, batchPaddingSize: 1 }));
  const ids: number[] = [];
  for (const batch of await batchesOf(rebatched)) ids.push(...rowsOf(batch).map(({ id }) => id));
  expect(ids).toEqual([0, 1, 2, 3, -1, 4, -1, -1, -1, -1]);
  const metrics = rebatched.scoreMetrics()!;
  metrics.add(ids, ids);
  expect(metrics.result().metrics).toEqual({ mean: { value: 2, weight: 5 } });
});
