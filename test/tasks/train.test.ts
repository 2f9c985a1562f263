/** @file Train: fields that must fit one another. */
import { expect, test } from 'vitest';
import { build, type ConfigError } from '../../src/hparams/index.js';
import { AdamW, Learner } from '../../src/learners/index.js';
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
