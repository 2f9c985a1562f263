/** @file Planted changes of what a run goes on with, and what becomes of a run of the code before. */
import type { CheckpointEffect } from '../../src/review/reports/diffReport.js';
import { type Edits, instead } from './scratchReview.js';

const words = ['the', 'ship', 'sails', 'over', 'a', 'calm', 'grey', 'sea', 'at', 'night'];
const corpus = Array.from({ length: 400 }, (_, i) => words[(i * 7 + (i >> 3)) % words.length]).join(' ');

/** Layers of the project's own. */
const parts = `import { TextInput } from 'luthier/inputs';
import { LanguageModel } from 'luthier/models';

export class OwnModel extends LanguageModel.with({}) {}

export class OwnText extends TextInput.with({}) {}
`;

const experiments = `import { z } from 'zod';
import { Experiment } from 'luthier';
import { ScheduledInput, TextInput } from 'luthier/inputs';
import { Adam, AdamW, Learner, Lion, Sgd } from 'luthier/learners';
import { gpt2Lm, LanguageModel } from 'luthier/models';
import { CheckpointLoadingRules, SingleTask, Train } from 'luthier/tasks';
import { OwnModel, OwnText } from './parts.js';

abstract class Text extends Experiment.with({
  numHeads: z.int().default(2).describe('Heads.'),
  dropout: z.number().default(0).describe('Rate.'),
}) {
  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: this.numHeads, maxSeqLength: 16, dropoutProb: this.dropout });
    const optimizer = AdamW.config({ learningRate: 1e-2 });
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps: 6, summaryIntervalSteps: 1, evalIntervalSteps: 3 }),
    });
  }
  override datasets() {
    return [
      TextInput.config({ name: 'train', isTraining: true, files: ['corpus.txt'], batchSize: 2, seqLen: 8, inputRandomSeed: 1 }),
      TextInput.config({ name: 'validation', files: ['corpus.txt'], split: 'validation', batchSize: 2, seqLen: 8 }),
    ];
  }
}

export class Plain extends Text {}

export class Averaged extends Text {
  override task() {
    const task = super.task();
    task.train.learner.optimizer = AdamW.config({ learningRate: 1e-2, emaDecay: 0.9 });
    return task;
  }
}

export class Drops extends Text {
  override dropout = 0.1;
}

export class Frozen extends Text {
  override task() {
    const task = super.task();
    task.train.learner.bpropVariableExclusion = ['.*position_emb.*'];
    return task;
  }
}

export class Own extends Text {
  override task() {
    const task = super.task();
    task.model = OwnModel.config({ lmTpl: task.model.lmTpl });
    return task;
  }
  override datasets() {
    const [train] = super.datasets();
    return [OwnText.config({ name: 'train', isTraining: true, files: [...train!.files], batchSize: 2, seqLen: 8 })];
  }
}

export class Scheduled extends Text {
  override datasets() {
    const [train] = super.datasets();
    const phases = [{ fromStep: 0, batchSize: 2 }, { fromStep: 4, batchSize: 4 }];
    return [ScheduledInput.config({ name: 'train', isTraining: true, input: train!, phases })];
  }
}
`;

const FILE = 'experiments/text.ts';
const inText = (old: string, now: string): Edits => ({ [FILE]: instead(old, now) });
/** An edit of the first of the classes that override `task`. */
const inTask = (line: string): Edits =>
  inText(
    'export class Plain extends Text {}',
    `export class Plain extends Text {
  override task() {
    const task = super.task();
    ${line}
    return task;
  }
}`,
  );
const inData = (line: string): Edits =>
  inText(
    'export class Plain extends Text {}',
    `export class Plain extends Text {
  override datasets() {
    const [train, validation] = super.datasets();
    ${line}
    return [train!, validation!];
  }
}`,
  );
const optimizer = (config: string) => inTask(`task.train.learner.optimizer = ${config};`);

interface Resumption {
  readonly change: string;
  readonly of?: string;
  readonly edits: Edits;
  readonly goesOn: CheckpointEffect['goesOn'];
  /** Part of what is told. */
  readonly told?: RegExp;
  /** The field that is to blame. */
  readonly forcedBy?: RegExp;
}

export const plantedResumptions: readonly Resumption[] = [
  { change: 'evaluation interval', edits: inTask('task.train.evalIntervalSteps = 2;'), goesOn: 'same' },
  { change: 'saves and retention', edits: inTask('task.train.saveMaxToKeep = 3;'), goesOn: 'same' },
  { change: 'number of steps', edits: inText('numTrainSteps: 6', 'numTrainSteps: 60'), goesOn: 'same' },
  {
    change: 'a rule of initFromCheckpoint',
    edits: inTask(
      "task.train.initFromCheckpoint = [CheckpointLoadingRules.config({ checkpoint: 'elsewhere' })];",
    ),
    goesOn: 'same',
  },
  { change: 'batches read ahead', edits: inData('train!.prefetchBatches = 2;'), goesOn: 'same' },
  { change: 'a batch of the evaluation', edits: inData('validation!.batchSize = 4;'), goesOn: 'same' },
  { change: 'the seed, without dropout', edits: inTask('task.train.randomSeed = 7;'), goesOn: 'same' },
  {
    change: 'the seed, with dropout',
    of: 'Drops',
    edits: inText(
      'override dropout = 0.1;',
      `override dropout = 0.1;
  override task() {
    const task = super.task();
    task.train.randomSeed = 7;
    return task;
  }`,
    ),
    goesOn: 'changed',
    told: /random draws/,
  },
  {
    change: 'learning rate',
    edits: inText(
      'learningRate: 1e-2 });\n    return SingleTask',
      'learningRate: 2e-2 });\n    return SingleTask',
    ),
    goesOn: 'changed',
    told: /optimizer update/,
  },
  {
    change: 'dropout',
    edits: inText('default(0).describe', 'default(0.2).describe'),
    goesOn: 'changed',
    told: /loss or gradients/,
  },
  {
    change: 'EMA on',
    edits: optimizer('AdamW.config({ learningRate: 1e-2, emaDecay: 0.9 })'),
    goesOn: 'changed',
    told: /moving average of the parameters begins/,
  },
  {
    change: 'EMA off',
    of: 'Averaged',
    edits: inText(', emaDecay: 0.9', ''),
    goesOn: 'changed',
    told: /moving average of the parameters ends/,
  },
  {
    change: 'AdamW to Adam',
    edits: optimizer('Adam.config({ learningRate: 1e-2 })'),
    goesOn: 'changed',
    told: /optimizer update/,
  },
  {
    change: 'AdamW to Lion',
    edits: optimizer('Lion.config({ learningRate: 1e-3 })'),
    goesOn: 'never',
    told: /optimizer slot/,
    forcedBy: /learner\.optimizer: AdamW → Lion/,
  },
  {
    change: 'AdamW to SGD',
    edits: optimizer('Sgd.config({ learningRate: 1e-2 })'),
    goesOn: 'never',
    told: /optimizer slot/,
    forcedBy: /learner\.optimizer: AdamW → Sgd/,
  },
  {
    change: "a slot's type",
    edits: optimizer("AdamW.config({ learningRate: 1e-2, muDtype: 'bfloat16' })"),
    goesOn: 'never',
    forcedBy: /muDtype/,
  },
  {
    change: 'another seed of the data',
    edits: inData('train!.inputRandomSeed = 5;'),
    goesOn: 'never',
    told: /seed is 5, was 1/,
    forcedBy: /inputRandomSeed: 1 → 5/,
  },
  {
    change: 'another split',
    edits: inData('train!.validationFraction = 0.3;'),
    goesOn: 'never',
    forcedBy: /validationFraction/,
  },
  {
    change: 'sequence length',
    edits: inData('train!.seqLen = 16;'),
    goesOn: 'never',
    forcedBy: /seqLen: 8 → 16/,
  },
  { change: 'sampling', edits: inData("train!.sampling = 'random';"), goesOn: 'never', forcedBy: /sampling/ },
  { change: 'an edited corpus', edits: { 'corpus.txt': corpus.replace('calm', 'wild') }, goesOn: 'never' },
  {
    change: 'batch size',
    edits: inText('batchSize: 2, seqLen: 8, inputRandomSeed', 'batchSize: 4, seqLen: 8, inputRandomSeed'),
    goesOn: 'changed',
    told: /rows of the data/,
  },
  {
    change: 'a later phase of batch sizes',
    of: 'Scheduled',
    edits: inText('fromStep: 4, batchSize: 4', 'fromStep: 4, batchSize: 6'),
    goesOn: 'changed',
    told: /phases/,
  },
  {
    change: 'own classes renamed, without aliases',
    of: 'Own',
    edits: {
      [FILE]: (text) => text.replaceAll('OwnModel', 'OurModel').replaceAll('OwnText', 'OurText'),
      'experiments/parts.ts': parts.replace('OwnModel', 'OurModel').replace('OwnText', 'OurText'),
    },
    goesOn: 'same',
  },
  {
    change: 'an own class renamed, with an alias',
    of: 'Own',
    edits: {
      [FILE]: (text) => text.replaceAll('OwnModel', 'OurModel'),
      'experiments/parts.ts': `import { registerAlias } from 'luthier';\n${parts.replace('OwnModel', 'OurModel')}registerAlias('OwnModel', OurModel);\n`,
    },
    goesOn: 'same',
  },
  {
    change: 'heads',
    edits: inText('z.int().default(2)', 'z.int().default(4)'),
    goesOn: 'never',
    told: /initFromCheckpoint would load/,
    forcedBy: /numHeads: 2 → 4/,
  },
  {
    change: 'a layer more',
    edits: inText('numLayers: 1', 'numLayers: 2'),
    goesOn: 'never',
    told: /is only in the model/,
    forcedBy: /numLayers: 1 → 2/,
  },
  {
    change: 'variables frozen',
    edits: inTask("task.train.learner.bpropVariableExclusion = ['.*position_emb.*'];"),
    goesOn: 'changed',
    told: /optimizer update/,
  },
  {
    change: 'variables no longer frozen',
    of: 'Frozen',
    edits: inText("bpropVariableExclusion = ['.*position_emb.*']", 'bpropVariableExclusion = []'),
    goesOn: 'changed',
    told: /No longer frozen/,
  },
  {
    change: 'precision of products',
    edits: inTask("task.model.fpropDtype = 'bfloat16';"),
    goesOn: 'changed',
    told: /loss or gradients/,
  },
  {
    change: 'sub-batches',
    edits: inTask('task.train.numSubBatches = 2;'),
    goesOn: 'changed',
    told: /loss or gradients/,
  },
  {
    change: 'a bound on gradients by earlier ones',
    edits: inTask('task.train.learner.skipStepGradientNormSigma = 6;'),
    goesOn: 'changed',
  },
];

/** The files of the base. */
export const resumedFiles: Readonly<Record<string, string>> = {
  [FILE]: experiments,
  'experiments/parts.ts': parts,
  'corpus.txt': corpus,
};
