/** @file Metrics of texts against sacrebleu, rouge_score and T5's functions: test/fixtures/metrics/textMetrics.json. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import {
  Bleu,
  ExactMatch,
  MeanScore,
  RankClassification,
  Rouge,
  SquadExactMatch,
  SquadF1,
} from '../../../../src/inputs/index.js';

const fixture = new URL('../../../fixtures/metrics/textMetrics.json', import.meta.url);
const { references, predictions, smoothed, values } = JSON.parse(readFileSync(fixture, 'utf8')) as {
  readonly references: readonly (readonly string[])[];
  readonly predictions: readonly string[];
  readonly smoothed: { readonly references: readonly string[]; readonly predictions: readonly string[] };
  readonly values: Readonly<Record<string, number>>;
};
const first = references.map(([text]) => text!);

test('BLEU is that of sacrebleu', () => {
  expect(build(Bleu.config()).compute(first, predictions)).toBeCloseTo(values.Bleu!, 9);
  const intl = build(Bleu.config({ tokenize: 'intl' }));
  expect(intl.compute(first, predictions)).toBeCloseTo(values['Bleu intl']!, 9);
  const lowercase = build(Bleu.config({ lowercase: true }));
  expect(lowercase.compute(first, predictions)).toBeCloseTo(values['Bleu lowercase']!, 9);
  const two = build(Bleu.config()).compute(references, predictions);
  expect(two).toBeCloseTo(values['Bleu of two references']!, 9);
  const few = build(Bleu.config()).compute(smoothed.references, smoothed.predictions);
  expect(few).toBeCloseTo(values['Bleu smoothed']!, 9);
  expect(build(Bleu.config()).compute(['a b c d'], [''])).toBe(0);
});

test('ROUGE is that of rouge_score', () => {
  for (const type of ['rouge1', 'rouge2', 'rougeL'] as const) {
    const rouge = build(Rouge.config({ type }));
    expect(rouge.compute(first, predictions)).toBeCloseTo(values[type]!, 12);
    expect(rouge.compute(references, predictions)).toBeCloseTo(values[`${type} of two references`]!, 12);
  }
});

test("SQuAD's metrics are those of T5, as shares", () => {
  const [exact, f1] = [build(SquadExactMatch.config()), build(SquadF1.config())];
  expect(exact.compute(references, predictions)).toBeCloseTo(values.SquadExactMatch!, 12);
  expect(f1.compute(references, predictions)).toBeCloseTo(values.SquadF1!, 12);
  expect(exact.compute([['a cat', 'Dogs']], ['the dogs!'])).toBe(1);
});

test('exact matches compare values of any kind', () => {
  const metric = build(ExactMatch.config());
  expect(metric.compute(['a', { x: [1] }, 3, 'b'], ['a', { x: [1] }, 4, 'B'])).toBe(0.5);
});

test('scores: the mean, and the share of questions whose best choice is correct', () => {
  expect(build(MeanScore.config()).compute([0, 0], [-1, -4])).toBe(-2.5);
  const targets = [
    { question: 1, isCorrect: true },
    { question: 2, isCorrect: true },
    { question: 1, isCorrect: false },
    { question: 2, isCorrect: false },
    { question: 'tied', isCorrect: true },
    { question: 'tied', isCorrect: false },
  ];
  const metric = build(RankClassification.config());
  expect(metric.compute(targets, [-1, -3, -2, -2, -5, -5])).toBe(2 / 3);
  expect(() => metric.compute(['yes'], [0])).toThrow(
    'RankClassification: expected a target { question, isCorrect }, got "yes". Let the task\'s postprocessor give it.',
  );
});
