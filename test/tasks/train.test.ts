/** @file Train: fields that must fit one another. */
import { expect, test } from 'vitest';
import { build, type Config, type ConfigError } from '../../src/hparams/index.js';
import { AdamW, type BaseOptimizer, Learner, ScheduleFreeAdamW } from '../../src/learners/index.js';
import { Train } from '../../src/tasks/index.js';

test('an average of the parameters is evaluated and decoded only where one is kept', () => {
  const optimizer = AdamW.config({ learningRate: 1e-3 });
  const train = Train.config({ learner: Learner.config({ optimizer }), evalUseEmaStates: true });
  train.decodeUseEmaStates = true;
  let message = '';
  try {
    build(train);
  } catch (error) {
    ({ message } = error as ConfigError);
  }
  const problem = 'it needs an average of the parameters: set learner.optimizer.emaDecay, to 0.999 say';
  expect(message.replaceAll(/ \(at [^)]*\)/g, '')).toBe(
    'The config has 2 problems:\n' +
      `  evalUseEmaStates (Train): ${problem}; evalUseEmaStates is true\n` +
      `  decodeUseEmaStates (Train): ${problem}; decodeUseEmaStates is true`,
  );
  optimizer.emaDecay = 0.99;
  const { learner } = build(train).hp;
  const layout = learner.layout([{ path: 'w', shape: [2] }]);
  expect(Object.keys(learner.slotLayouts(layout))).toEqual(['m', 'v', 'ema']);
});

test('the average of a schedule-free optimizer is evaluated and decoded without being asked for', () => {
  const optimizer = ScheduleFreeAdamW.config({ learningRate: 1e-3 });
  const of = (config: Config<BaseOptimizer>) =>
    build(Train.config({ learner: Learner.config({ optimizer: config }) }));
  const asked = Train.config({ learner: Learner.config({ optimizer }), evalUseEmaStates: true });
  for (const program of ['eval', 'decode'] as const) {
    expect(of(optimizer).usesEmaStates(program)).toBe(true);
    expect(of(AdamW.config({ learningRate: 1e-3 })).usesEmaStates(program)).toBe(false);
    expect(build(asked).usesEmaStates(program)).toBe(true);
  }
});
