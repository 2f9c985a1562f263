/** @file Files of a new project, by their paths in it. */
import { workflow } from './workflow.js';

const experiment = `/** @file The first experiment of this project. \`npx luthier list\` shows all. */
import {
  AdamW,
  type ConfigValues,
  Decode,
  Experiment,
  gpt2Lm,
  LanguageModel,
  Learner,
  SampleDecoder,
  SingleTask,
  TextInput,
  Train,
} from 'luthier';
import { z } from 'zod';

/** A byte-level language model of one file of TypeScript declarations, trained in seconds. */
export class Tiny extends Experiment.with({
  modelDims: z.int().positive().default(32).describe('Width of the model.'),
  learningRate: z.number().positive().default(3e-3).describe('Learning rate.'),
  numTrainSteps: z.int().positive().default(100).describe('Training steps.'),
}) {
  override task() {
    const { modelDims, learningRate, numTrainSteps } = this;
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims, numLayers: 1, numHeads: 2, maxSeqLength: 64 });
    const optimizer = AdamW.config({ learningRate, clipGradientNormToValue: 1 });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps, summaryIntervalSteps: 25 }),
      decode: Decode.config({
        decoder: SampleDecoder.config({ seqlen: 64, temperature: 0.5, eosId: [] }),
        prefixLength: 24,
      }),
    });
  }

  override datasets() {
    return [
      this.text({ name: 'train', split: 'train', isTraining: true, batchSize: 16 }),
      this.text({ name: 'held_out', split: 'validation', batchSize: 32, evalLoopNumBatches: 4 }),
    ];
  }

  override decodeDatasets() {
    return [this.text({ name: 'held_out', split: 'validation', batchSize: 2 })];
  }

  protected text(values: Partial<ConfigValues<TextInput>>) {
    return TextInput.config({ files: ['pkg:typescript/lib/lib.es5.d.ts'], seqLen: 64, ...values });
  }
}
`;

const test = `/** @file What experiments/first.ts promises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { build, getPath, SingleTask } from 'luthier';
import { Tiny } from '../experiments/first.js';

test('constants reach the configs', () => {
  class Wide extends Tiny.preset({ modelDims: 64 }) {}
  assert.equal(getPath(new Wide().task(), 'model.lmTpl.modelDims'), 64);
});

test('the task builds', () => {
  assert.ok(build(new Tiny().task()) instanceof SingleTask);
});
`;

const tsconfig = {
  compilerOptions: {
    target: 'ES2023',
    lib: ['ES2023'],
    types: ['node'],
    module: 'NodeNext',
    strict: true,
    noImplicitOverride: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    verbatimModuleSyntax: true,
    // Declarations of @tensorflow/tfjs-core name types of browsers, and one of a package that it does not install.
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['experiments', 'test'],
};

/** A document of two spaces a level, as npm writes package.json. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The files, but for package.json. */
export const files: Readonly<Record<string, string>> = {
  'experiments/first.ts': experiment,
  'test/first.test.ts': test,
  'tsconfig.json': jsonText(tsconfig),
  '.gitignore': 'node_modules/\nout/\n',
  '.github/workflows/config-review.yml': workflow,
};

/** Scripts of package.json. */
export const scripts: Readonly<Record<string, string>> = {
  types: 'tsc',
  test: 'node --import luthier/typescript --test test/*.test.ts',
  review: 'luthier diff --base=main',
};
