/** @file Learning rates of an experiment over its training, and the chart of those that changed. */
import { expect, test } from 'vitest';
import { type LearningRates, learningRatesOf } from '../../src/analysis/learningRates.js';
import { AdamW, LanguageModel, Learner, SingleTask, Train } from '../../src/index.js';
import { Cosine } from '../../src/learners/index.js';
import { compareExperiment } from '../../src/review/changes/compare.js';
import { learningRateChart } from '../../src/review/reports/learningRateChart.js';
import type { MadeExperiment } from '../../src/review/versions/protocol.js';

function ratesOf(totalSteps: number, numTrainSteps: number): LearningRates | undefined {
  const optimizer = AdamW.config({ learningRate: 0.5, lrSchedule: Cosine.config({ totalSteps }) });
  const train = Train.config({ learner: Learner.config({ optimizer }), numTrainSteps });
  return learningRatesOf(SingleTask.config({ model: LanguageModel.config(), train }));
}

test('a curve has the learning rates from the first step to the last', () => {
  const { steps, rates } = ratesOf(1000, 1000)!;
  expect([steps, rates.length, rates[0], rates[32], rates[64]]).toEqual([1000, 65, 0.5, 0.25, 0]);
  expect(ratesOf(1000, 500)!.rates.at(-1)).toBe(0.25);
  const train = Train.config({ learner: Learner.config({ bpropVariableExclusion: ['('] }) });
  expect(learningRatesOf(SingleTask.config({ model: LanguageModel.config(), train }))).toBeUndefined();
});

test('a report has both curves where they differ in more than the length of a constant rate', () => {
  const changeOf = (old: LearningRates | undefined, now: LearningRates | undefined) => {
    const version = (learningRates: LearningRates | undefined) => {
      const made: MadeExperiment = {
        name: 'lm.Small',
        constants: [],
        formerConstants: {},
        config: { root: null, configs: [], classes: {} },
        ...(learningRates && { learningRates }),
      };
      return { document: made };
    };
    return compareExperiment('lm.Small', version(old), version(now), []).learningRates;
  };
  const flat = { steps: 10, rates: [1, 1, 1] };
  const falling = { steps: 10, rates: [1, 0.5, 0] };
  const longer = { steps: 20, rates: [1, 0.5, 0] };
  expect(changeOf(flat, falling)).toEqual({ old: flat, new: falling });
  expect(changeOf(falling, longer)).toEqual({ old: falling, new: longer });
  expect(changeOf(flat, { ...flat, steps: 20 })).toBeUndefined();
  expect(changeOf(falling, { ...falling })).toBeUndefined();
  expect(changeOf(undefined, falling)).toBeUndefined();
});

test('the chart draws both curves over the steps of the longer one, in numbers that Mermaid reads', () => {
  const old = { steps: 100, rates: [0, 1e-3, 5e-4] };
  expect(learningRateChart({ old, new: { steps: 200, rates: [0, 2e-7, -3e-4, 1e-3, 0] } })).toBe(`\
Grey: before, which ends at step 100. Blue: after, which ends at step 200.

\`\`\`mermaid
%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#8b949e, #1f6feb"}}}}%%
xychart-beta
  x-axis "step" 0 --> 200
  y-axis "learning rate, in 1e-3" -0.3 --> 1
  line [0, 0.5, 0.5]
  line [0, 0, -0.3, 1, 0]
\`\`\``);
  const zero = { steps: 7, rates: [0, 0] };
  expect(learningRateChart({ old: zero, new: zero })).toContain('Grey: before. Blue: after.\n');
  expect(learningRateChart({ old: zero, new: zero })).toContain(
    '"learning rate, in 1e0" 0 --> 1\n  line [0, 0]\n',
  );
});
