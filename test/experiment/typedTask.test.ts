/** @file The parts of a task that an experiment reaches with their types. */
import { expect, test } from 'vitest';
import { Experiment, gpt2Lm, LanguageModel, narrow, SingleTask } from '../../src/index.js';
import { ClassificationMLPModel } from '../../src/models/index.js';

class Base extends Experiment {
  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 16, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 8 });
    return SingleTask.config({ model: LanguageModel.config({ lmTpl }) });
  }
}

test('the result of super.task() has the type of the base class’s model', () => {
  class Deeper extends Base {
    override task() {
      const task = super.task();
      task.model.lmTpl.stackedTransformerTpl.numLayers = 3;
      // @ts-expect-error no such field
      expect(() => (task.model.lmTpl.stackedTransformerTpl.numLayerz = 3)).toThrow(
        /Did you mean 'numLayers'\?/,
      );
      return task;
    }
  }
  expect(new Deeper().task().model.lmTpl.stackedTransformerTpl.numLayers).toBe(3);
});

test('narrow gives a config its class’s type, or reports its class', () => {
  const task = new (class Small extends Base {})().task() as ReturnType<Experiment['task']>;
  // @ts-expect-error the type of a task's model is that of all models
  expect(task.model.lmTpl).toBeDefined();
  const model = narrow(task.model, LanguageModel, 'task.model');
  expect(model).toBe(task.model);
  expect(model.lmTpl.modelDims).toBe(8);
  expect(() => narrow(task.model, ClassificationMLPModel, 'task.model')).toThrow(
    /^task\.model: expected a ClassificationMLPModel config, got a LanguageModel config \(at test\/experiment\/typedTask\.test\.ts:\d+\)$/,
  );
  expect(() => narrow(LanguageModel.partial(), LanguageModel)).toThrow(
    /^narrow\(\): expected a LanguageModel config, got a LanguageModel partial \(at/,
  );
  expect(() => narrow(undefined, LanguageModel)).toThrow(
    /^narrow\(\): expected a LanguageModel config, got undefined \(at/,
  );
});
