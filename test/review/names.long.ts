/** @file Kinds of change in a scratch clone, and all that a review tells of each: of experiments' and classes' names. */
import { expect } from 'vitest';
import { withCommandEnvironment, withSources } from '../loader.js';
import { kinds } from './kinds.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds();

withCommandEnvironment();

const small = experimentsFile(`/** The smallest of them. */
export class Small extends Family {
  override numHeads = 4;
}
/** As long again. */
export class Longer extends Small {
  override steps = 10;
}
`);

/** A part of models, of which there is another one by the same name. */
const head = (fields: string) => `import { z } from 'zod';
import { Configurable } from 'luthier';

export class Head extends Configurable.with({
  ${fields}
}) {}
`;

const framed = (
  name: string,
  heads: string,
  file = './family.js',
) => `import { instance, LanguageModel } from 'luthier';
import { Family } from '${file}';
import { Head } from '${heads}';

class ${name}Model extends LanguageModel.with({ head: instance(Head) }) {}
export class ${name} extends Family {
  override task() {
    const task = super.task();
    task.model = ${name}Model.config({ lmTpl: (task.model as any).lmTpl, head: Head.config() });
    return task;
  }
}
`;

const failing = experimentsFile('export class Failing extends Family {\n  override steps = 0;\n}');

const files = {
  'experiments/family.ts': family,
  'experiments/small.ts': small,
  'experiments/left.ts': head('width: z.int().default(8),\n  depth: z.int().default(1),'),
  'experiments/right.ts': head('width: z.int().default(8),\n  depth: z.int().default(1),'),
  'experiments/one.ts': framed('One', './left.js'),
  'experiments/failing.ts': failing,
};
const review = new ScratchReview(files);
const { git } = review.repository;
const move = (from: string, to: string) => () => git('mv', `experiments/${from}`, `experiments/${to}`);

test('a field by another name, with an alias', async () => {
  const edits = {
    'experiments/left.ts': head(
      "breadth: renamed(z.int().default(8), 'width'),\n  depth: z.int().default(1),",
    ).replace('Configurable }', 'Configurable, renamed }'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 with new names only, 3 that the change does not reach

    with new names only: one.One

    Names
      field width of Head is renamed to breadth (one.One)

    Runs go on with the same bits: one.One"
  `);
});

test('a field by another name, without an alias', async () => {
  const edits = { 'experiments/left.ts': head('breadth: z.int().default(8),\n  depth: z.int().default(1),') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 with added or removed fields and the same values, 3 that the change does not reach

    with added or removed fields and the same values: one.One

    Names
      field width of Head removed and breadth added, perhaps renamed: without renamed(…, 'width') documents and runs that were saved with width will not load (one.One)"
  `);
});

test('a class by another name, with an alias', async () => {
  const edits = {
    'experiments/left.ts': `${head('width: z.int().default(8),\n  depth: z.int().default(1),')
      .replace('class Head', 'class Top')
      .replace('Configurable }', 'Configurable, registerAlias }')}registerAlias('Head', Top);\n`,
    'experiments/one.ts': framed('One', './left.js').replaceAll(/\bHead\b/g, 'Top'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 with new names only, 3 that the change does not reach

    with new names only: one.One

    Names
      class Head is renamed to Top (one.One)

    Runs go on with the same bits: one.One"
  `);
});

test('a class by another name, without an alias', async () => {
  const edits = {
    'experiments/left.ts': instead('class Head', 'class Top'),
    'experiments/one.ts': (text: string) => text.replaceAll(/\bHead\b/g, 'Top'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 3 that the change does not reach

    Names
      class Head removed and Top added, perhaps renamed: without registerAlias('Head', Top) documents and runs that were saved with Head will not load (one.One)

    one.One
      Fields
        task.model.head : Head → a new Top  (experiments/one.ts:9)

    Parameters, FLOPs, tokens and memory as before: one.One

    Runs go on with the same bits: one.One

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('an experiment by another name', async () => {
  const edits = { 'experiments/small.ts': (text: string) => text.replaceAll('Small', 'Tiny') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 under another name, 1 the same, 2 that the change does not reach

    small.Small is renamed to small.Tiny (configs and constants are equal)
      --exp=small.Small leads nowhere now: use --exp=small.Tiny, with another job_log_dir
      runs of small.Small do not resume, and their checkpoints do not load: both check the experiment's name. export { Tiny as Small }; in experiments/small.ts keeps that name"
  `);
});

test('an experiment by another name that keeps its old one', async () => {
  const edits = {
    'experiments/small.ts': (text: string) =>
      `${text.replaceAll('Small', 'Tiny')}export { Tiny as Small };\n`,
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 under another name, 2 the same, 2 that the change does not reach

    small.Small is renamed to small.Tiny (one class has both names)
      --exp takes either name. A job_log_dir belongs to one name: runs of small.Small resume with --exp=small.Small, not with --exp=small.Tiny"
  `);
});

test('an old name that is kept by a class without anything of its own', async () => {
  const edits = {
    'experiments/small.ts': (text: string) =>
      `${text.replaceAll('Small', 'Tiny')}export class Small extends Tiny {}\n`,
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 under another name, 2 the same, 2 that the change does not reach

    small.Small is renamed to small.Tiny (configs and constants are equal)
      --exp takes either name. A job_log_dir belongs to one name: runs of small.Small resume with --exp=small.Small, not with --exp=small.Tiny"
  `);
});

test('a file that was moved and edited', async () => {
  const edits = { 'experiments/sized.ts': small.replace('steps = 10', 'steps = 12') };
  expect(
    await review.told(edits, {}, () => git('rm', '--quiet', 'experiments/small.ts')),
  ).toMatchInlineSnapshot(`
    "1 can't go on from its checkpoints (and costs more), 1 under another name, 2 that the change does not reach

    small.Longer is renamed to sized.Longer, in experiments/sized.ts instead of experiments/small.ts (git detects the moved file, with a class of the same name)
      --exp=small.Longer leads nowhere now: use --exp=sized.Longer, with another job_log_dir
      runs of small.Longer do not resume, and their checkpoints do not load: both check the experiment's name. export { Longer } from './sized.js'; in experiments/small.ts keeps that name

    small.Small is renamed to sized.Small, in experiments/sized.ts instead of experiments/small.ts (git detects the moved file, with a class of the same name; configs and constants are equal)
      --exp=small.Small leads nowhere now: use --exp=sized.Small, with another job_log_dir
      runs of small.Small do not resume, and their checkpoints do not load: both check the experiment's name. export { Small } from './sized.js'; in experiments/small.ts keeps that name

    sized.Longer
      Constants
        steps : 10 → 12  (set by Longer at experiments/sized.ts:9; was set by Longer at experiments/small.ts:9)
      Fields
        task.train.numTrainSteps : 10 → 12  (experiments/family.ts:16)

    Consequences                          before       after
    sized.Longer  Tokens of training         160         192  +32, +20%
                  FLOPs of training   7.84 MFLOP  9.41 MFLOP  +1.57 MFLOP, +20%

    Runs cannot go on: sized.Longer
      a checkpoint: written by experiment 'small.Longer', not by 'sized.Longer'; use another --job_log_dir for this one, or, if it was renamed, keep the old name: export { Longer } where it was, and --exp=small.Longer
      initFromCheckpoint would load all 19 variables"
  `);
});

test('a file that was moved, and hands on what it had', async () => {
  const edits = {
    'experiments/sized.ts': small,
    'experiments/small.ts': "export { Longer, Small } from './sized.js';\n",
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "2 under another name, 2 the same, 2 that the change does not reach

    small.Longer is renamed to sized.Longer, in experiments/sized.ts instead of experiments/small.ts (one class has both names)
      --exp takes either name. A job_log_dir belongs to one name: runs of small.Longer resume with --exp=small.Longer, not with --exp=sized.Longer

    small.Small is renamed to sized.Small, in experiments/sized.ts instead of experiments/small.ts (one class has both names)
      --exp takes either name. A job_log_dir belongs to one name: runs of small.Small resume with --exp=small.Small, not with --exp=sized.Small"
  `);
});

test('a file that was moved into a folder, with an experiment by another name', async () => {
  const edits = {
    'experiments/new/small.ts': small.replace('./family', '../family').replaceAll('Longer', 'Long'),
  };
  expect(
    await review.told(edits, {}, () => git('rm', '--quiet', 'experiments/small.ts')),
  ).toMatchInlineSnapshot(`
    "2 under another name, 2 that the change does not reach

    small.Longer is renamed to new.small.Long, in experiments/new/small.ts instead of experiments/small.ts (configs and constants are equal)
      --exp=small.Longer leads nowhere now: use --exp=new.small.Long, with another job_log_dir
      runs of small.Longer do not resume, and their checkpoints do not load: both check the experiment's name. export { Long as Longer } from './new/small.js'; in experiments/small.ts keeps that name

    small.Small is renamed to new.small.Small, in experiments/new/small.ts instead of experiments/small.ts (git detects the moved file, with a class of the same name; configs and constants are equal)
      --exp=small.Small leads to new.small.Small now: use --exp=new.small.Small, with another job_log_dir
      runs of small.Small do not resume, and their checkpoints do not load: both check the experiment's name. export { Small } from './new/small.js'; in experiments/small.ts keeps that name"
  `);
  expect(
    await review.told(edits, { name: 'new.small.Long' }, move('small.ts', 'other.ts')),
  ).toMatchInlineSnapshot(`
    "1 added

    added: new.small.Long

    new.small.Long (added against new.small.Small)
      Constants
        steps : 5 → 10  (set by Long at experiments/new/small.ts:9; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 10  (experiments/family.ts:16)

    Consequences                             before, or base       after
    new.small.Long  Parameters                         6.86k       6.86k
                    Forward FLOPs per token       16.3 kFLOP  16.3 kFLOP
                    Tokens per step                       16          16
                    Tokens of training                    80         160  +80, +100%
                    FLOPs of training             3.92 MFLOP  7.84 MFLOP  +3.92 MFLOP, +100%
                    Peak memory of training           216 kB      216 kB"
  `);
});

test('an added experiment with edits in task()', async () => {
  const edits = {
    'experiments/added.ts': `import { Small } from './small.js';

export abstract class Incomplete extends Small {
  override task(): any {
    throw new Error('A subclass says this.');
  }
}
export class Added extends Incomplete {
  override modelDims = 32;

  override task() {
    const task = Small.prototype.task.call(this);
    task.train.learner.optimizer.clipGradientNormToValue = 0.5;
    return task;
  }
}
export class Alone extends Small {
  override steps = 0;
}
`,
  };
  expect(await withSources(() => review.told(edits))).toMatchInlineSnapshot(`
    "exit 1: Fails: 1 breaks, 1 added, 4 that the change does not reach

    added: added.Added

    added.Alone: broken
      Alone.steps: expected a positive integer, got 0
      at experiments/added.ts:18

    added.Added (added against small.Small)
      Constants
        modelDims : 16 → 32  (set by Added at experiments/added.ts:9; was set by Family at experiments/family.ts:6)
      Fields
        task.model.lmTpl.modelDims : 16 → 32  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.hiddenDims : 64 → 128  (luthier/src/models/presets/layerNormStack.ts:N)
        task.train.learner.optimizer.clipGradientNormToValue : 0 (default) → 0.5  (experiments/added.ts:13; was default of AdamW at luthier/src/learners/optimizers/optimizer.ts:N)

    Consequences                           before, or base       after
    added.Added   Parameters                         6.86k       26.0k  +19.2k, +279%
                  Forward FLOPs per token       16.3 kFLOP  57.1 kFLOP  +40.7 kFLOP, +249%
                  Tokens per step                       16          16
                  Tokens of training                    80          80
                  FLOPs of training             3.92 MFLOP  13.7 MFLOP  +9.77 MFLOP, +249%
                  Peak memory of training           216 kB      715 kB  +499 kB, +231%"
  `);
});

test('added experiments that cannot be traced, and that have no base class', async () => {
  const edits = {
    'experiments/added.ts': `import { Small } from './small.js';
export class Odd extends Small {
  override numHeads = 3;
}
`,
    'experiments/whole.ts': family.replace('abstract class Family', 'class Whole'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "exit 1: Fails: 1 breaks, 1 added, 4 that the change does not reach

    added: whole.Whole

    added.Odd: broken
      Building DotProductAttention failed: lm/transformer/x_layers_0/self_attention (DotProductAttention): hiddenDim 16 is not a multiple of numHeads 3; set dimPerHead.
        inputDim: 16 (set at luthier/src/layers/transformer/transformers.ts:N)
        hiddenDim: 16 (set at luthier/src/layers/transformer/transformers.ts:N)
        numHeads: 3 (set at luthier/src/layers/transformer/transformers.ts:N)
        dimPerHead: null (set at luthier/src/layers/transformer/transformers.ts:N)
        useBias: false (set at luthier/src/models/presets/layerNormStack.ts:N)
        outputProjInit: a Gaussian config (set at luthier/src/models/presets/gpt2.ts:N)
        attenDropoutProb: 0 (set at luthier/src/layers/transformer/transformers.ts:N)
        internalEnablePerDimScale: false (set at luthier/src/models/presets/layerNormStack.ts:N)
        scaleQueryByDimPerHead: true (set at luthier/src/models/presets/layerNormStack.ts:N)
        while building Transformer
        while building StackedTransformer
        while building TransformerLm
        while building LanguageModel
        while building SingleTask

    added.Odd (broken against small.Small)
      Constants
        numHeads : 4 → 3  (set by Odd at experiments/added.ts:3; was set by Small at experiments/small.ts:5)
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 4 → 3  (luthier/src/models/presets/layerNormStack.ts:N)

    whole.Whole (added whole: none of its base classes has configs)
      Constants
        modelDims : + 16  (set by Whole at experiments/whole.ts:6)
        numHeads : + 2  (set by Whole at experiments/whole.ts:7)
        numLayers : + 2  (set by Whole at experiments/whole.ts:8)
        steps : + 5  (set by Whole at experiments/whole.ts:9)
      Fields
        task : + a new SingleTask  (Whole.task())
        task.model : + a new LanguageModel  (experiments/whole.ts:14)
        task.train : + a new Train  (experiments/whole.ts:14)
        task.model.lmTpl : + a new TransformerLm  (experiments/whole.ts:15)
        task.train.learner : + a new Learner  (experiments/whole.ts:16)
        task.train.numTrainSteps : + 5  (experiments/whole.ts:16)
        task.model.lmTpl.paramsInit : + a new Gaussian  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.vocabSize : + 32  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.modelDims : + 16  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.positionEmbTpl : + a new TrainablePositionalEmbedding  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl : + a new StackedTransformer  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.softmaxTpl : + a new NClassMajorSharedEmbeddingSoftmax  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.finalLnTpl : + a new LayerNorm  (luthier/src/models/presets/gpt2.ts:N)
        task.train.learner.optimizer : + a new AdamW  (experiments/whole.ts:16)
        task.model.lmTpl.paramsInit.scale : + 0.02  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.positionEmbTpl.maxSeqLength : + 8  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.numLayers : + 2  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.hiddenDims : + 64  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.numHeads : + 2  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : + 0  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.reluDropoutProb : + 0  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.inputDropoutProb : + 0  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl : + a new Transformer
        task.model.lmTpl.softmaxTpl.hasBias : + false  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.finalLnTpl.epsilon : + 0.00001  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.finalLnTpl.directScale : + true  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.finalLnTpl.useBias : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        task.train.learner.optimizer.learningRate : + 0.001  (experiments/whole.ts:16)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.lnTpl : + a new LayerNorm  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl : + a new DotProductAttention
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl : + a new TransformerFeedForward
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.lnTpl.epsilon : + 0.00001  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.lnTpl.directScale : + true  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.lnTpl.useBias : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.useBias : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.outputProjInit : + a new Gaussian  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.internalEnablePerDimScale : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.scaleQueryByDimPerHead : + true  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.hasBias : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.activationTpl : + a new GELU  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.outputProjInit : + the new Gaussian of task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.outputProjInit  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.lnTpl : + a new LayerNorm  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.outputProjInit.scale : + 0.01  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.activationTpl.approximate : + false  (luthier/src/models/presets/gpt2.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.lnTpl.epsilon : + 0.00001  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.lnTpl.directScale : + true  (luthier/src/models/presets/layerNormStack.ts:N)
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.lnTpl.useBias : + false  (luthier/src/models/presets/layerNormStack.ts:N)
        datasets : + [a new SyntheticLmInput]  (Whole.datasets())
        datasets[0].name : + 'train'  (experiments/whole.ts:21)
        datasets[0].batchSize : + 2  (experiments/whole.ts:21)
        datasets[0].isTraining : + true  (experiments/whole.ts:21)
        datasets[0].seqLen : + 8  (experiments/whole.ts:21)
        datasets[0].vocabSize : + 32  (experiments/whole.ts:21)
        decodeDatasets : + []  (Whole.decodeDatasets())

    Consequences                           before, or base       after
    added.Odd     Parameters                         6.86k           -
                  Forward FLOPs per token       16.3 kFLOP           -
                  Tokens per step                       16           -
                  Tokens of training                    80           -
                  FLOPs of training             3.92 MFLOP           -
                  Peak memory of training           216 kB           -
    whole.Whole   Parameters                             -       6.86k
                  Forward FLOPs per token                -  16.3 kFLOP
                  Tokens per step                        -          16
                  Tokens of training                     -          80
                  FLOPs of training                      -  3.92 MFLOP
                  Peak memory of training                -      216 kB"
  `);
});

test('a removed experiment', async () => {
  const edits = { 'experiments/small.ts': (text: string) => text.slice(0, text.indexOf('/** As')) };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 removed, 1 the same, 2 that the change does not reach

    removed: small.Longer

    small.Longer extended Small at experiments/small.ts:8: As long again.
      steps = 10
      6.86k parameters
      last changed by abc1234 of DATE: base
      --exp=small.Longer leads nowhere now"
  `);
});

test('two classes of one name', async () => {
  const edits = {
    'experiments/two.ts': framed('Two', './right.js'),
    'experiments/one.ts': instead(
      "import { Head } from './left.js';",
      "import './two.js';\nimport { Head } from './left.js';",
    ),
    'experiments/right.ts': head('width: z.int().default(8),\n  depth: z.int().default(9),'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 added, 1 the same, 3 that the change does not reach

    added: two.Two

    two.Two (added against Family of experiments/family.ts)
      Fields
        task.model : class LanguageModel → class TwoModel
        task.model.head : + a new experiments/right.Head  (experiments/two.ts:9)

    Consequences                           before, or base       after
    two.Two       Parameters                         6.86k       6.86k
                  Forward FLOPs per token       16.3 kFLOP  16.3 kFLOP
                  Tokens per step                       16          16
                  Tokens of training                    80          80
                  FLOPs of training             3.92 MFLOP  3.92 MFLOP
                  Peak memory of training           216 kB      216 kB"
  `);
});

test('one class instead of another of the same name', async () => {
  const edits = { 'experiments/one.ts': instead('./left.js', './right.js') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`"1 the same, 3 that the change does not reach"`);
});

test('errors as before, and other ones', async () => {
  const edits = { 'experiments/failing.ts': `// A comment.\n${failing}` };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 still fails, 3 that the change does not reach

    failing.Failing: failing as before
      Failing.steps: expected a positive integer, got 0
      at experiments/failing.ts:5"
  `);
  const others = { 'experiments/failing.ts': instead('steps = 0', 'numHeads = 0') };
  expect(await review.told(others)).toMatchInlineSnapshot(`
    "1 still fails, 3 that the change does not reach

    failing.Failing: failing with another error
      Failing.numHeads: expected a positive integer, got 0
      at experiments/failing.ts:4
      before: Failing.steps: expected a positive integer, got 0"
  `);
});
