/** @file luthier diff --base where configs are the same and code is not: what the code computes and reads is compared. */
import { expect } from 'vitest';
import { compareVersions } from '../../../src/review/compareVersions.js';
import { markdownOf } from '../../../src/review/reports/markdownReport.js';
import { textOf } from '../../../src/review/reports/textReport.js';
import { plain } from '../../../src/system/text/terminalOutput.js';
import { withCommandEnvironment } from '../../loader.js';
import { kinds } from '../kinds.js';
import { family, repositoryOf } from '../repository.js';

const test = kinds(3);

withCommandEnvironment();

/** A model, an optimizer, a schedule, an initialiser and inputs of the project's own. */
const parts = `import { z } from 'zod';
import { LanguageModel, SyntheticLmInput, TextInput, tf } from 'luthier';
import { Gaussian } from 'luthier/layers';
import { BaseSchedule, Sgd } from 'luthier/learners';

/** Bits a nat. */
const scale = 1 / Math.LN2;

export class Model extends LanguageModel {
  override fprop(batch: any): any {
    const [metrics, ...rest] = super.fprop(batch) as any;
    const [loss, weight] = metrics.total_loss;
    return [{ ...metrics, total_loss: [tf.mul(loss, scale), weight] }, ...rest];
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
export class Absent extends TextInput {
  override get batchSize(): number {
    return super.batchSize;
  }
}
`;

const experiments = `import { Family } from './family.js';
import { Absent, Half, Model, Rows, Steep, Wide } from './parts.js';
import { ByteTokenizer } from 'luthier';

class Own extends Family {
  override task() {
    const task = super.task();
    task.model = Model.config({ lmTpl: (task.model as any).lmTpl });
    return task;
  }
}
export class Computes extends Own {}
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
export class Waits extends Family {
  override task() {
    const task = super.task();
    (task.model as any).lmTpl.vocabSize = 256;
    return task;
  }
  override datasets() {
    return [Absent.config({ files: ['data/*.txt'], split: 'all', tokenizer: ByteTokenizer.config(), isTraining: true, batchSize: 2, seqLen: 8 })] as any;
  }
}
`;

const files = {
  'experiments/family.ts': family,
  'experiments/parts.ts': parts,
  'experiments/own.ts': experiments,
};

const repository = repositoryOf(files);

async function report(text: string, more: Readonly<Record<string, string>> = {}) {
  repository.write({ ...files, 'experiments/parts.ts': text, ...more });
  const { folder: project } = repository;
  return compareVersions({
    project,
    base: 'main',
    exact: false,
    name: undefined,
    changes: [],
    limits: { seconds: 120, gigabytes: 4 },
  });
}

/** Without what differs from run to run. */
function settled(shown: string): string {
  return shown.replace(/\([0-9a-f]{7}\)/, '(abc1234)').replaceAll(repository.folder, '/project');
}

async function text(changed: string): Promise<string> {
  return settled(textOf(await report(changed), plain));
}

test('a number in the forward pass', async () => {
  const found = await report(parts.replace('1 / Math.LN2', '3 / Math.LN2'));
  expect(settled(textOf(found, plain))).toMatchInlineSnapshot(`
    "1 computes something else, 1 not compared in full, 3 the same
    main (abc1234) → working tree

    own.Computes
      config same, the training step computes different values (Multiply of the model or the loss), the evaluation computes different values (Multiply of the model or the loss): experiments/parts.ts

    Runs go on changed: own.Computes
      loss or gradients

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
  expect(settled(markdownOf(found))).toMatchInlineSnapshot(`
    "### 1 computes something else, 1 not compared in full, 3 the same

    \`main (abc1234)\` → \`working tree\`

    | Experiment     | Verdict                | Numerics                           | Checkpoints                | Parameters | FLOPs/token | Tokens/step | Peak memory |
    |----------------|------------------------|------------------------------------|----------------------------|------------|-------------|-------------|-------------|
    | \`own.Computes\` | ✏️ changed             | differs: training step, evaluation | changed: loss or gradients | –          | –           | –           | –           |
    | \`own.Waits\`    | ❔ not compared in full | not compared: input                | –                          | –          | –           | –           | –           |

    > For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    <details>
    <summary>Computes something else: <code>own.Computes</code></summary>

    - \`config same, the training step computes different values (Multiply of the model or the loss), the evaluation computes different values (Multiply of the model or the loss): experiments/parts.ts\`

    </details>

    <details>
    <summary>Runs go on changed: 1 experiment</summary>

    - \`own.Computes\`
      - \`loss or gradients\`

    </details>

    <details>
    <summary>Not compared</summary>

    - \`own.Waits\`: \`input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.\`

    </details>"
  `);
});

test('an update, a schedule, initial values, rows; sources of an input whose data is not here', async () => {
  const changed = parts
    .replace('tf.mul(grad, 0.5)', 'tf.mul(grad, 0.25)')
    .replace('return 2;', 'return 3;')
    .replace('row + 1', 'row + 2')
    .replace('return super.batchSize', 'return 1 * super.batchSize');
  expect(await text(changed)).toMatchInlineSnapshot(`
    "3 compute something else, 1 not compared in full, 1 the same
    main (abc1234) → working tree

    own.Reads
      config same, the input gives different rows (datasets[0] 'train' row 0: ids 21 22 24 19 2 6 29 4, labels 22 24 19 2 6 29 4 16, paddings 0 0 0 0 0 0 0 0, weights 1 1 1 1 1 1 1 1 → ids 12 11 1 22 13 13 16 29, labels 11 1 22 13 13 16 29 24, paddings 0 0 0 0 0 0 0 0, weights 1 1 1 1 1 1 1 1): experiments/parts.ts

    own.Starts
      config same, the initial values differ: experiments/parts.ts

    own.Updates
      config same, the optimizer update differs (Multiply of update/Half_decay): experiments/parts.ts

    Runs go on changed: own.Reads
      rows of the data

    Runs go on with the same bits: own.Starts

    Runs go on changed: own.Updates
      optimizer update

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
  expect(await text(parts.replace('1 / (1 + step)', '1 / (2 + step)'))).toMatchInlineSnapshot(`
    "1 computes something else, 1 not compared in full, 3 the same
    main (abc1234) → working tree

    own.Updates
      config same, the optimizer update differs: experiments/parts.ts

    Runs go on changed: own.Updates
      optimizer update

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
});

test('a comment and a constant by another name compute the same', async () => {
  const reordered = parts
    .replace('const [loss, weight]', '// Bits.\n    const bits = 0 + scale;\n    const [loss, weight]')
    .replace('tf.mul(loss, scale)', 'tf.mul(loss, bits)');
  expect(await text(reordered)).toMatchInlineSnapshot(`
    "1 not compared in full, 4 the same
    main (abc1234) → working tree

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
});

/** Settings of the optimizer of own.Updates, changed. */
const faster = { 'experiments/own.ts': experiments.replace('learningRate: 1,', 'learningRate: 2,') };

test('a changed field hides no changed code', async () => {
  const found = await report(parts.replace('mul(grad, 0.5)', 'mul(grad, 0.25)'), faster);
  expect(settled(textOf(found, plain))).toMatchInlineSnapshot(`
    "1 computes something else, 1 not compared in full, 3 the same
    main (abc1234) → working tree

    own.Updates
      Fields
        task.train.learner.optimizer.learningRate : 1 → 2  (experiments/own.ts:16)

    own.Updates
      beside its config, the optimizer update differs (Multiply of update/Half_decay): experiments/own.ts, experiments/parts.ts

    Parameters, FLOPs, tokens and memory as before: own.Updates

    Runs go on changed: own.Updates
      optimizer update

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
  expect(found.notes).toContain('Where a config changed, both codes were compared by the config of now.');
});

test('code that cannot build the config of now is compared by its own, as far as the two are equal', async () => {
  const own = experiments.replace('learningRate: 1,', 'learningRate: 1, share: 0.25,');
  const text = parts
    .replace('extends Sgd {', 'extends Sgd.with({ share: z.number().default(0.5) }) {')
    .replace('mul(grad, 0.5)', 'mul(grad, this.hp.share)');
  const found = await report(text, { 'experiments/own.ts': own });
  expect(settled(textOf(found, plain))).toMatchInlineSnapshot(`
    "1 changes at the same cost, 1 not compared in full, 3 the same
    main (abc1234) → working tree

    own.Updates
      Fields
        task.train.learner.optimizer.share : + 0.25  (experiments/own.ts:16)

    Parameters, FLOPs, tokens and memory as before: own.Updates

    Runs go on changed: own.Updates
      optimizer update

    not compared: own.Updates
      optimizer update: the code before cannot build the configs of now: Entry 15, ['task'].train.learner.optimizer: Half has no hyperparameter 'share'. It has learningRate, lrSchedule, l2RegularizerWeight, l1RegularizerWeight, decoupledWeightDecay, fixedWeightDecay, skipLp1dVectors, clipGradientNormToValue, clipGradientSingleNormToValue, cautious, slotDtype, slotRounding, ewcRegularizerWeight, ewcWeightPerVar, emaDecay, momentum, nesterov.

    not compared: own.Waits
      input: the code that reads it changed, and there is no data to compare: InputError: TextInput 'train': No file matches 'data/*.txt' (looked in /project). There is no directory /project/data. A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('code that no config of an experiment is of changes nothing beside its fields', async () => {
  const found = await report(parts, faster);
  expect(found.experiments.map(({ name, computed }) => [name, computed])).toEqual([
    ['own.Updates', undefined],
  ]);
});
