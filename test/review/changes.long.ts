/** @file Kinds of change in a scratch clone, and all that a review tells of each: of what configs say, compute and read. */
import { cpSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { withCommandEnvironment, withSources } from '../loader.js';
import { kinds } from './kinds.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds();

withCommandEnvironment();
const library = fileURLToPath(new URL('../..', import.meta.url));

/** A model, an optimizer, a schedule, an initialiser and rows of the project's own. */
const parts = `import { z } from 'zod';
import { Configurable, instance, LanguageModel, SyntheticLmInput, tf } from 'luthier';
import { Gaussian } from 'luthier/layers';
import { BaseSchedule, Sgd } from 'luthier/learners';

const scale = 1 / Math.LN2;

export class Bits extends LanguageModel {
  override computeLoss(predictions: any, batch: any): any {
    const [metrics, perExample] = super.computeLoss(predictions, batch) as any;
    const [loss, weight] = metrics.total_loss;
    const shown = this.doEval ? tf.mul(loss, 100) : loss;
    return [{ ...metrics, total_loss: [tf.mul(loss, scale), weight], shown: [shown, weight] }, perExample];
  }
}
export class Half extends Sgd {
  protected override direction({ grad, ...rest }: any): any {
    return { ...super.direction({ grad, ...rest }), direction: tf.mul(grad, 0.5) };
  }
}
export class Steep extends BaseSchedule {
  valueAt(step: number): number {
    return 1 / (1 + step);
  }
}
export class Wide extends Gaussian {
  protected override factor(): number {
    return 2;
  }
}
export class Rows extends SyntheticLmInput {
  protected override fillRow(row: number, batch: any, b: number): void {
    super.fillRow(row + 1, batch, b);
  }
}
export class Head extends Configurable.with({ width: z.int().default(8), depth: z.int().default(1) }) {}
export class Frame extends LanguageModel.with({
  first: instance(Head).optional(),
  second: instance(Head).optional(),
  heads: z.array(instance(Head)).default([]),
  hook: z.any(),
  last: z.any(),
}) {}
`;

const own = experimentsFile(
  `import { Bits, Half, Rows, Steep, Wide } from './parts.js';
export class Computes extends Family {
  override task() {
    const task = super.task();
    task.model = Bits.config({ lmTpl: (task.model as any).lmTpl });
    return task;
  }
}
export class Updates extends Family {
  override task() {
    const task = super.task();
    task.train.learner.optimizer = Half.config({ learningRate: 1, lrSchedule: Steep.config() });
    return task;
  }
}
export class Starts extends Family {
  override task() {
    const task = super.task();
    (task.model as any).lmTpl.paramsInit = Wide.config();
    return task;
  }
}
export class Reads extends Family {
  override datasets() {
    return [Rows.config({ name: 'train', isTraining: true, vocabSize: 32, batchSize: 2, seqLen: 8 })] as any;
  }
}
`,
);

const framed = experimentsFile(`import { Frame, Head } from './parts.js';
export class Framed extends Family {
  override task() {
    const task = super.task();
    const { lmTpl } = task.model as any;
    const head = Head.config({ width: 3 });
    task.model = Frame.config({ lmTpl, first: head, second: head, heads: [1, 2, 3].map((width) => Head.config({ width })) });
    Object.assign(task.model, { hook: () => 1, last: Head.config() });
    return task;
  }
}
`);

const five = experimentsFile(
  'abstract class Five extends Family {\n  override numLayers = 1;\n}',
  ...['A', 'B', 'C', 'D', 'E'].map((name) => `export class ${name} extends Five {}`),
);

/** Attention over so many tokens that storing its weights would show. */
const long = experimentsFile(`import { gpt2Lm } from 'luthier';
export class Long extends Family {
  override numHeads = 4;

  override task() {
    const task = super.task();
    task.model.lmTpl = gpt2Lm({ vocabSize: 32, modelDims: 64, numLayers: 1, numHeads: this.numHeads, maxSeqLength: 256 });
    return task;
  }

  override datasets() {
    const [train] = super.datasets();
    train!.seqLen = 256;
    return [train!];
  }
}
`);

const loads = experimentsFile(`import { readFileSync } from 'node:fs';
const { steps } = JSON.parse(readFileSync(new URL('steps.json', import.meta.url), 'utf8'));
export class Loads extends Family {
  override steps = steps;
}
`);

const effects = experimentsFile(`import './first.js';
import './second.js';
export class Ordered extends Family {
  override numHeads = (globalThis as any).heads;
}
`);

const needs = `import { z } from 'zod';
import { Family } from './family.js';

export class Needs extends Family.with({ dataPath: z.string() }) {
  override task() {
    const task = super.task();
    task.name = this.dataPath.replace('.txt', '');
    return task;
  }
}
`;
const manifest = `${JSON.stringify({
  type: 'module',
  luthier: {
    review: { constants: { 'needs.*': { dataPath: 'small.txt' }, 'small.*': { dataPath: 'unused.txt' } } },
  },
})}\n`;

const files = {
  'experiments/family.ts': family,
  'experiments/parts.ts': parts,
  'experiments/own.ts': own,
  'experiments/framed.ts': framed,
  'experiments/five.ts': five,
  'experiments/long.ts': long,
  'experiments/loads.ts': loads,
  'experiments/steps.json': '{ "steps": 3 }\n',
  'experiments/effects.ts': effects,
  'experiments/first.ts': '(globalThis as any).heads = 2;\n',
  'experiments/second.ts': '(globalThis as any).heads = 4;\n',
  'experiments/small.ts': experimentsFile('export class Small extends Family {\n  override numHeads = 4;\n}'),
  'experiments/typed.ts': experimentsFile(
    "import type { Depth } from './types.js';\nconst depth: Depth = 3;\nexport class Typed extends Family {\n  override numLayers = depth;\n}",
  ),
  'experiments/types.ts': 'export type Depth = number;\n',
  'shared/linked.ts': experimentsFile('export class Linked extends Family {}'),
  'experiments/needs.ts': needs,
  'package.json': manifest,
};
const review = new ScratchReview(files);
const { repository } = review;
symlinkSync('../shared/linked.ts', join(repository.folder, 'experiments/linked.ts'));
repository.write({ 'shared/family.ts': "export { Family } from '../experiments/family.js';\n" });
review.commit();

test('a number in the forward pass', async () => {
  const edits = { 'experiments/parts.ts': instead('1 / Math.LN2', '3 / Math.LN2') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Computes
      config same, the training step computes different values (Multiply of the model or the loss), the evaluation computes different values (Multiply of the model or the loss): experiments/parts.ts

    Runs go on changed: own.Computes
      loss or gradients"
  `);
});

test('the update of an optimizer', async () => {
  const edits = { 'experiments/parts.ts': instead('tf.mul(grad, 0.5)', 'tf.mul(grad, 0.25)') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Updates
      config same, the optimizer update differs (Multiply of update/Half_decay): experiments/parts.ts

    Runs go on changed: own.Updates
      optimizer update"
  `);
});

test('a schedule', async () => {
  const edits = { 'experiments/parts.ts': instead('1 / (1 + step)', '1 / (2 + step)') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Updates
      config same, the optimizer update differs: experiments/parts.ts

    Runs go on changed: own.Updates
      optimizer update"
  `);
});

test('an initialiser', async () => {
  const edits = { 'experiments/parts.ts': instead('return 2;', 'return 3;') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Starts
      config same, the initial values differ: experiments/parts.ts

    Runs go on with the same bits: own.Starts"
  `);
});

test('rows of an input', async () => {
  const edits = { 'experiments/parts.ts': instead('row + 1', 'row + 2') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Reads
      config same, the input gives different rows (datasets[0] 'train' row 0: ids 21 22 24 19 2 6 29 4, labels 22 24 19 2 6 29 4 16, paddings 0 0 0 0 0 0 0 0, weights 1 1 1 1 1 1 1 1 → ids 12 11 1 22 13 13 16 29, labels 11 1 22 13 13 16 29 24, paddings 0 0 0 0 0 0 0 0, weights 1 1 1 1 1 1 1 1): experiments/parts.ts

    Runs go on changed: own.Reads
      rows of the data"
  `);
});

test('a metric of the evaluation alone', async () => {
  const edits = { 'experiments/parts.ts': instead('tf.mul(loss, 100)', 'tf.mul(loss, 1000)') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 computes something else, 4 the same, 12 that the change does not reach

    own.Computes
      config same, the evaluation computes different values (Multiply of the model or the loss): experiments/parts.ts

    Runs go on with the same bits: own.Computes"
  `);
});

test('four times as many heads take as much memory', async () => {
  const edits = { 'experiments/long.ts': instead('numHeads = 4', 'numHeads = 16') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 can't go on from its checkpoints, 16 that the change does not reach

    long.Long
      Constants
        numHeads : 4 → 16  (set by Long at experiments/long.ts:5)
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 4 → 16  (luthier/src/models/presets/layerNormStack.ts:N; forces a new run)

    Consequences                            before    after
    long.Long     Peak memory of training  6.52 MB  6.54 MB  +24.6 kB, +0.38%

    Runs cannot go on: long.Long
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 4 → 16
      a checkpoint: not compatible with this model, 4 differences
      initFromCheckpoint would load 7 of 11 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w, lm/transformer/x_layers_0/self_attention/post/w
      lm/transformer/x_layers_0/self_attention/key/w [64, 4, 16] float32 → [64, 16, 4] float32
      lm/transformer/x_layers_0/self_attention/query/w [64, 4, 16] float32 → [64, 16, 4] float32
      lm/transformer/x_layers_0/self_attention/value/w [64, 4, 16] float32 → [64, 16, 4] float32
      lm/transformer/x_layers_0/self_attention/post/w [64, 4, 16] float32 → [64, 16, 4] float32"
  `);
});

test('a base class of five experiments', async () => {
  const edits = {
    'experiments/five.ts': instead(
      'numLayers = 1;',
      'numLayers = 1;\n\n  override task() {\n    const task = super.task();\n    task.train.numTrainSteps = 9;\n    return task;\n  }',
    ),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "5 cost more, 12 that the change does not reach

    5 experiments: five.A, five.B, five.C, five.D, five.E
      Fields
        task.train.numTrainSteps : 5 → 9  (experiments/five.ts:8; was experiments/family.ts:16)

    Consequences                          before       after
    five.A        Tokens of training          80         144  +64, +80%
                  FLOPs of training   2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%
    five.B        Tokens of training          80         144  +64, +80%
                  FLOPs of training   2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%
    five.C        Tokens of training          80         144  +64, +80%
                  FLOPs of training   2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%
    five.D        Tokens of training          80         144  +64, +80%
                  FLOPs of training   2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%
    five.E        Tokens of training          80         144  +64, +80%
                  FLOPs of training   2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%

    Runs go on with the same bits: five.A, five.B, five.C, five.D, five.E"
  `);
});

test("a constant's default", async () => {
  const edits = {
    'experiments/family.ts': instead("default(2).describe('Heads", "default(4).describe('Heads"),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "14 can't go on from their checkpoints, 3 the same

    14 experiments: five.A, five.B, five.C, five.D, five.E, framed.Framed, linked.Linked, loads.Loads, needs.Needs, own.Computes, own.Reads, own.Starts, own.Updates, typed.Typed
      Constants
        numHeads : 2 → 4  (set by Family at experiments/family.ts:7)

    13 experiments: five.A, five.B, five.C, five.D, five.E, linked.Linked, loads.Loads, needs.Needs, own.Computes, own.Reads, own.Starts, own.Updates, typed.Typed
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 2 → 4  (luthier/src/models/presets/layerNormStack.ts:N; forces a new run)

    framed.Framed
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 2 → 4  (luthier/src/models/presets/layerNormStack.ts:N)

    Consequences                            before   after
    five.A         Peak memory of training  125 kB  125 kB  +128 B, +0.1%
    five.B         Peak memory of training  125 kB  125 kB  +128 B, +0.1%
    five.C         Peak memory of training  125 kB  125 kB  +128 B, +0.1%
    five.D         Peak memory of training  125 kB  125 kB  +128 B, +0.1%
    five.E         Peak memory of training  125 kB  125 kB  +128 B, +0.1%
    framed.Framed  Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    linked.Linked  Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    loads.Loads    Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    needs.Needs    Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    own.Computes   Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    own.Reads      Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    own.Starts     Peak memory of training  216 kB  216 kB  +256 B, +0.12%
    own.Updates    Peak memory of training  161 kB  161 kB  +256 B, +0.16%
    typed.Typed    Peak memory of training  307 kB  307 kB  +384 B, +0.13%

    Runs cannot go on: linked.Linked, loads.Loads, needs.Needs, own.Computes, own.Reads, own.Starts, own.Updates
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      a checkpoint: not compatible with this model, 8 differences
      initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)

    Runs cannot go on: five.A, five.B, five.C, five.D, five.E
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      a checkpoint: not compatible with this model, 4 differences
      initFromCheckpoint would load 7 of 11 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w, lm/transformer/x_layers_0/self_attention/post/w
      lm/transformer/x_layers_0/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32
      lm/transformer/x_layers_0/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32
      lm/transformer/x_layers_0/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32
      lm/transformer/x_layers_0/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32

    Runs cannot go on: framed.Framed
      a checkpoint: not compatible with this model, 8 differences
      initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)

    Runs cannot go on: typed.Typed
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      a checkpoint: not compatible with this model, 12 differences
      initFromCheckpoint would load 15 of 27 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 9 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (3 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (3 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (3 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (3 variables)

    not compared: framed.Framed
      training step: the configs of now cannot be written for the code before: ['task'].model.hook: function hook has no JSON form. Describe it by a config or by plain values, or name it by registerConstant().

    not compared: framed.Framed
      optimizer update: the configs of now cannot be written for the code before: ['task'].model.hook: function hook has no JSON form. Describe it by a config or by plain values, or name it by registerConstant().

    not compared: framed.Framed
      evaluation: the configs of now cannot be written for the code before: ['task'].model.hook: function hook has no JSON form. Describe it by a config or by plain values, or name it by registerConstant().

    not compared: framed.Framed
      initial values: the configs of now cannot be written for the code before: ['task'].model.hook: function hook has no JSON form. Describe it by a config or by plain values, or name it by registerConstant().

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('a file that is read at load', async () => {
  expect(
    withoutCounts(await review.told({ 'experiments/steps.json': '{ "steps": 4 }\n' })),
  ).toMatchInlineSnapshot(
    `
    "1 costs more, the others the same

    loads.Loads
      Constants
        steps : 3 → 4  (set by Loads at experiments/loads.ts:6)
      Fields
        task.train.numTrainSteps : 3 → 4  (experiments/family.ts:16)

    Consequences                          before       after
    loads.Loads   Tokens of training          48          64  +16, +33%
                  FLOPs of training   2.35 MFLOP  3.14 MFLOP  +784 kFLOP, +33%

    Runs go on with the same bits: loads.Loads

    Note: Where a config changed, both codes were compared by the config of now."
  `,
  );
});

test('an endless task()', async () => {
  const hangs = '\n  override task(): any {\n    for (;;);\n  }';
  const edits = { 'experiments/small.ts': instead('numHeads = 4;', `numHeads = 4;\n${hangs}`) };
  expect(await review.told(edits, { limits: { seconds: 20, gigabytes: 4 } })).toMatchInlineSnapshot(`
    "exit 1: Fails: 1 breaks, 16 that the change does not reach

    small.Small: broken
      It took longer than 20 s; luthier diff --timeout=SECONDS gives it more."
  `);
});

test('comments and form', async () => {
  const edits = {
    'experiments/family.ts': instead(
      'override task() {\n',
      'override task() {\n\n    // Says nothing new.\n',
    ),
    'experiments/parts.ts': instead(
      'const scale = 1 / Math.LN2;',
      '/** Bits a nat. */\nconst scale =\n  1 / Math.LN2',
    ),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`"17 the same"`);
});

test('packages', async () => {
  const edits = {
    'package.json': (text: string) => text.replace('{', '{ "dependencies": { "zod": "4.0.0" },'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "17 the same

    Note: package.json changed: both versions were evaluated with the packages installed now."
  `);
});

test('a default that is spelled out', async () => {
  const edits = {
    'experiments/small.ts': instead('numHeads = 4;', 'numHeads = 4;\n  override numLayers = 2;'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`"1 the same, 16 that the change does not reach"`);
});

test('a shared part that is shared no more', async () => {
  const edits = { 'experiments/framed.ts': instead('second: head', 'second: Head.config({ width: 3 })') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    framed.Framed
      Fields
        task.model.second : Head → a new Head  (experiments/framed.ts:9)
        task.model.second.width : + 3  (experiments/framed.ts:9)

    Parameters, FLOPs, tokens and memory as before: framed.Framed

    Runs go on with the same bits: framed.Framed

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('an item in the middle of a list', async () => {
  const edits = { 'experiments/framed.ts': instead('[1, 2, 3]', '[1, 9, 2, 3]') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    framed.Framed
      Fields
        task.model.heads : + a new Head before [1]  (experiments/framed.ts:9)
        task.model.heads[1].width : + 9  (experiments/framed.ts:9)

    Parameters, FLOPs, tokens and memory as before: framed.Framed

    Runs go on with the same bits: framed.Framed

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

/**
 * Without the counts of those that stay the same: whether a process had read the file before it came to an experiment is a
 * matter of how two processes shared the work.
 */
const withoutCounts = (told: string): string =>
  told.replace(/\d+ the same, \d+ that the change does not reach/, 'the others the same');

/** The experiment with a statement more in its task(). */
const edited = (statement: string) =>
  instead(
    'numHeads = 4;',
    `numHeads = 4;\n\n  override task() {\n    const task = super.task();\n    ${statement}\n    return task;\n  }`,
  );

test('a part that is built later, beside a value that documents cannot hold', async () => {
  const edits = { 'experiments/framed.ts': instead('last: Head.config()', 'last: Head.partial()') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    framed.Framed
      Fields
        task.model.last : config → partial

    Parameters, FLOPs, tokens and memory as before: framed.Framed

    Runs go on with the same bits: framed.Framed

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('the compiler', async () => {
  const own = new ScratchReview({
    'experiments/small.ts': family
      .replace("'luthier'", "'../src/index.js'")
      .replace('export abstract class Family', 'export class One'),
  });
  const { folder } = own.repository;
  for (const name of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(library, name), join(folder, name), { recursive: true });
  rmSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(join(library, 'node_modules'), join(folder, 'node_modules'));
  own.commit();
  const edits = { 'src/compiler/program/fingerprint.ts': (text: string) => `${text}// Says nothing new.\n` };
  expect(await own.told(edits)).toMatchInlineSnapshot(`
    "1 the same

    Note: The compiler changed: traced programs were compared, not their compiled form."
  `);
});

test('products in bfloat16', async () => {
  const edits = { 'experiments/small.ts': edited("task.model.fpropDtype = 'bfloat16';") };
  expect(await withSources(() => review.told(edits))).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    small.Small
      Fields
        task.model.fpropDtype : null (default) → 'bfloat16'  (experiments/small.ts:8; was default of LanguageModel at luthier/src/layers/core/layerFields.ts:N)

    Consequences                           before   after
    small.Small   Peak memory of training  216 kB  176 kB  −40.4 kB, −19%

    Runs go on changed: small.Small
      loss or gradients"
  `);
});

test('the batch size', async () => {
  const edits = { 'experiments/family.ts': instead('batchSize: 2', 'batchSize: 4') };
  expect(await review.told(edits, { name: 'small.Small' })).toMatchInlineSnapshot(`
    "1 costs more

    small.Small
      Fields
        datasets[0].batchSize : 2 → 4  (experiments/family.ts:21)

    Consequences                               before       after
    small.Small   Tokens per step                  16          32  +16, +100%
                  Tokens of training               80         160  +80, +100%
                  FLOPs of training        3.92 MFLOP  7.84 MFLOP  +3.92 MFLOP, +100%
                  Peak memory of training      216 kB      271 kB  +54.8 kB, +25%

    Runs go on changed: small.Small
      loss or gradients
      rows of the data"
  `);
});

test('variables that train no more', async () => {
  const edits = {
    'experiments/small.ts': edited("task.train.learner.bpropVariableExclusion = ['.*position_emb.*'];"),
  };
  expect(await withSources(() => review.told(edits))).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    small.Small
      Fields
        task.train.learner.bpropVariableExclusion : [] (default) → ['.*position_emb.*']  (experiments/small.ts:8; was default of Learner at luthier/src/learners/learner.ts:N)

    Consequences                           before   after
    small.Small   Peak memory of training  216 kB  214 kB  −1.54 kB, −0.71%

    Runs go on changed: small.Small
      loss or gradients
      optimizer update

    Variables: small.Small
      trained: 19 to 18 (no longer lm/position_emb/emb_var)
      decayed: 14 to 13 (no longer lm/position_emb/emb_var)"
  `);
});

test('the seed', async () => {
  const edits = { 'experiments/small.ts': edited('task.train.randomSeed = 1;') };
  expect(await withSources(() => review.told(edits))).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    small.Small
      Fields
        task.train.randomSeed : 1234 (default) → 1  (experiments/small.ts:8; was default of Train at luthier/src/tasks/train.ts:N)

    Parameters, FLOPs, tokens and memory as before: small.Small

    Runs go on with the same bits: small.Small"
  `);
});

test('which checkpoints are kept', async () => {
  const edits = { 'experiments/small.ts': edited('task.train.saveMaxToKeep = 2;') };
  expect(await withSources(() => review.told(edits))).toMatchInlineSnapshot(`
    "1 changes at the same cost, 16 that the change does not reach

    small.Small
      Fields
        task.train.saveMaxToKeep : 10 (default) → 2  (experiments/small.ts:8; was default of Train at luthier/src/tasks/train.ts:N)

    Parameters, FLOPs, tokens and memory as before: small.Small

    Runs go on with the same bits: small.Small"
  `);
});

test('types', async () => {
  const edits = {
    'experiments/types.ts': 'export type Depth = 1 | 2 | 3;\n',
    'experiments/typed.ts': instead('const depth: Depth', 'const depth: 3 & Depth'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`"1 the same, 16 that the change does not reach"`);
});

test('the order of imports with effects', async () => {
  const edits = {
    'experiments/effects.ts': instead(
      "import './first.js';\nimport './second.js';",
      "import './second.js';\nimport './first.js';",
    ),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 can't go on from its checkpoints, 16 that the change does not reach

    effects.Ordered
      Constants
        numHeads : 4 → 2  (set by Ordered at experiments/effects.ts:6)
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 4 → 2  (luthier/src/models/presets/layerNormStack.ts:N; forces a new run)

    Consequences                              before   after
    effects.Ordered  Peak memory of training  216 kB  216 kB  −256 B, −0.12%

    Runs cannot go on: effects.Ordered
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 4 → 2
      a checkpoint: not compatible with this model, 8 differences
      initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 4, 4] float32 → [16, 2, 8] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 4, 4] float32 → [16, 2, 8] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 4, 4] float32 → [16, 2, 8] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 4, 4] float32 → [16, 2, 8] float32 (2 variables)"
  `);
});

test('the file behind a link', async () => {
  const edits = { 'shared/linked.ts': instead('{}', '{\n  override steps = 9;\n}') };
  expect(withoutCounts(await review.told(edits))).toMatchInlineSnapshot(`
    "1 costs more, the others the same

    linked.Linked
      Constants
        steps : 5 → 9  (set by Linked at shared/linked.ts:4; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 9  (experiments/family.ts:16)

    Consequences                           before       after
    linked.Linked  Tokens of training          80         144  +64, +80%
                   FLOPs of training   3.92 MFLOP  7.06 MFLOP  +3.14 MFLOP, +80%

    Runs go on with the same bits: linked.Linked"
  `);
});

test('a constructor that throws', async () => {
  const throws = "constructor() {\n    super();\n    throw new Error('No data here.');\n  }";
  const edits = { 'experiments/small.ts': instead('numHeads = 4;', `numHeads = 4;\n\n  ${throws}`) };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "exit 1: Fails: 1 breaks, 16 that the change does not reach

    small.Small: broken
      No data here.
      at experiments/small.ts:8"
  `);
});

test('an experiment that is given a constant', async () => {
  const edits = {
    'experiments/needs.ts': instead("dataPath.replace('.txt', '')", "dataPath.replace('.txt', 's')"),
    // The base's settings count.
    'package.json': (text: string) => text.replace('small.txt', 'other.txt').replace('"small.*"', '"new.*"'),
    'experiments/new.ts': "import { Needs } from './needs.js';\n\nexport class New extends Needs {}\n",
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 1 added, 16 the same

    added: new.New

    needs.Needs
      Fields
        task.name : 'small' → 'smalls'  (experiments/needs.ts:7)

    Consequences                           before, or base       after
    new.New       Parameters                         6.86k       6.86k
                  Forward FLOPs per token       16.3 kFLOP  16.3 kFLOP
                  Tokens per step                       16          16
                  Tokens of training                    80          80
                  FLOPs of training             3.92 MFLOP  3.92 MFLOP
                  Peak memory of training           216 kB      216 kB

    Parameters, FLOPs, tokens and memory as before: needs.Needs

    Runs go on with the same bits: needs.Needs

    Note: package.json changed: both versions were evaluated with the packages installed now.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});
