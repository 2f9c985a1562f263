/** @file luthier diff --base in real repositories: what it says of each kind of change. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { VersionsRequest } from '../../src/review/compareVersions.js';
import { textOf } from '../../src/review/reports/textReport.js';
import { plain } from '../../src/system/text/terminalOutput.js';
import { temporaryDirectory } from '../command.js';
import { withCommandEnvironment } from '../loader.js';
import { kinds } from './kinds.js';
import { diff, settled } from './reports/versionReport.js';
import { experimentsFile, family, repositoryOf, type TestRepository } from './repository.js';

const test = kinds();

withCommandEnvironment();

async function text(repository: TestRepository, request?: Partial<VersionsRequest>): Promise<string> {
  return settled(textOf(await diff(repository, request), plain));
}

const one = 'export class One extends Family {}\n';

test('comments and values that were the default before change nothing; files that nobody imports reach nobody', async () => {
  const repository = repositoryOf({
    'experiments/family.ts': family,
    'experiments/small.ts': experimentsFile(one),
    'notes.md': 'Notes.\n',
  });
  repository.write({
    'experiments/small.ts': experimentsFile(
      '/** Says nothing new. */\nexport class One extends Family {\n  override numHeads = 2;\n}',
    ),
  });
  expect(await text(repository)).toMatch(
    /^1 the same\nmain \(abc1234\) → working tree\n\nNote: For equal configs, /,
  );
  repository.write({ 'experiments/small.ts': experimentsFile(one), 'notes.md': 'Other notes.\n' });
  expect(await text(repository)).toBe('1 that the change does not reach\nmain (abc1234) → working tree');
});

/** Parts of a model that are the project's own, and an experiment that is made of them. */
const parts = `import { z } from 'zod';
import { Configurable, instance, LanguageModel } from 'luthier';

export class Head extends Configurable.with({
  width: z.int().default(8),
  depth: z.int().default(1),
  rate: z.number().default(0.5),
}) {}
export class Frame extends Configurable.with({ first: instance(Head).optional(), second: instance(Head).optional() }) {}
export class Model extends LanguageModel.with({ frame: instance(Frame), heads: z.array(instance(Head)).default([]) }) {}
`;
const composed = (frame: string, heads = '[]') => `import { Frame, Head, Model } from './parts.js';
import { Family } from './family.js';

export class Composed extends Family {
  override task() {
    const task = super.task();
    const { lmTpl } = task.model as any;
    const head = Head.config({ width: 3, depth: 2, rate: 0.25 });
    task.model = Model.config({ lmTpl, frame: Frame.config(${frame}), heads: ${heads} });
    return task;
  }
}
`;

test('a moved, a shared and a repeated part; a default of a class', async () => {
  const repository = repositoryOf({
    'experiments/family.ts': family,
    'experiments/parts.ts': parts,
    'experiments/composed.ts': composed('{ first: head }', '[1, 2, 3].map(() => Head.config({ width: 4 }))'),
  });
  repository.write({
    'experiments/composed.ts': composed('{ second: head }', '[1, 2, 3].map(() => Head.config())'),
  });
  expect(await text(repository)).toMatchInlineSnapshot(`
    "1 changes at the same cost
    main (abc1234) → working tree

    composed.Composed
      Fields
        task.model.frame.first : Head → not set (default)  (default of Frame at experiments/parts.ts:9; was experiments/composed.ts:9)
        task.model.frame.second : not set (default) → the Head of task.model.frame.first  (experiments/composed.ts:9; was default of Frame at experiments/parts.ts:9)
        task.model.heads[0…2].width : 4 → 8 (default)  (3 places; default of Head at experiments/parts.ts:5; was experiments/composed.ts:9)

    Parameters, FLOPs, tokens and memory as before: composed.Composed

    Runs go on with the same bits: composed.Composed"
  `);
  repository.write({
    'experiments/composed.ts': composed(
      '{ first: head, second: head }',
      '[Head.config({ width: 4 }), Head.config({ width: 4 }), Head.config({ width: 4 }), Head.config({ width: 9 })]',
    ),
  });
  expect(await text(repository)).toMatchInlineSnapshot(`
    "1 changes at the same cost
    main (abc1234) → working tree

    composed.Composed
      Fields
        task.model.heads : + a new Head at the end  (experiments/composed.ts:9)
        task.model.heads[3].width : + 9  (experiments/composed.ts:9)
        task.model.frame.second : not set (default) → the Head of task.model.frame.first  (experiments/composed.ts:9; was default of Frame at experiments/parts.ts:9)

    Parameters, FLOPs, tokens and memory as before: composed.Composed

    Runs go on with the same bits: composed.Composed"
  `);
  repository.git('checkout', '--', '.');
  repository.write({
    'experiments/parts.ts': parts.replace('depth: z.int().default(1)', 'depth: z.int().default(7)'),
  });
  expect(await text(repository)).toMatchInlineSnapshot(`
    "1 changes at the same cost
    main (abc1234) → working tree

    composed.Composed
      Fields
        task.model.heads[0…2].depth : 1 (default) → 7 (default)  (3 places; default of Head at experiments/parts.ts:6)

    Parameters, FLOPs, tokens and memory as before: composed.Composed

    Runs go on with the same bits: composed.Composed

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

const named = {
  'experiments/family.ts': family,
  'experiments/parts.ts': parts,
  'experiments/composed.ts': composed('{ first: head }'),
  'experiments/small.ts': experimentsFile(one),
};
/** The same files with other names, and without a word about the old ones. */
const otherNames = {
  'experiments/family.ts': family
    .replaceAll('numHeads', 'heads')
    .replace('numLayers, heads,', 'numLayers, numHeads: heads,'),
  'experiments/parts.ts': parts
    .replaceAll('width', 'breadth')
    .replaceAll('Frame', 'Body')
    .replace('{\n', "{\n  added: z.string().default('plain'),\n"),
  'experiments/composed.ts': composed('{ first: head }')
    .replaceAll('width', 'breadth')
    .replaceAll('Frame', 'Body'),
};

test('new names with an alias, and a field that is new', async () => {
  const repository = repositoryOf(named);
  repository.write({
    ...otherNames,
    'experiments/family.ts': otherNames['experiments/family.ts']
      .replace('Experiment,', 'Experiment, renamed,')
      .replace("heads: z.int().positive().default(2).describe('Heads.')", (old) =>
        old.replace('heads: ', 'heads: renamed(').replace(/$/, ", 'numHeads')"),
      ),
    'experiments/parts.ts': `${otherNames['experiments/parts.ts']
      .replace('LanguageModel }', 'LanguageModel, registerAlias, renamed }')
      .replace('z.int().default(8)', "renamed(z.int().default(8), 'width')")}registerAlias('Frame', Body);\n`,
  });
  const report = await diff(repository);
  expect(report.experiments.map(({ name, status }) => [name, status])).toEqual([
    ['small.One', 'renamed'],
    ['composed.Composed', 'redeclared'],
  ]);
  expect(settled(textOf(report, plain))).toMatchInlineSnapshot(`
    "1 with new names only, 1 with added or removed fields and the same values
    main (abc1234) → working tree

    with new names only: small.One
    with added or removed fields and the same values: composed.Composed

    Names
      constant numHeads of Family is renamed to heads (composed.Composed, small.One)
      field width of Head is renamed to breadth (composed.Composed)
      class Frame is renamed to Body (composed.Composed)
      new field added of Head: 'plain' everywhere (composed.Composed)

    Runs go on with the same bits: small.One, composed.Composed

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
});

test('new names without an alias', async () => {
  const repository = repositoryOf(named);
  repository.write(otherNames);
  expect(await text(repository)).toMatchInlineSnapshot(`
    "2 change at the same cost
    main (abc1234) → working tree

    Names
      class Frame removed and Body added, perhaps renamed: without registerAlias('Frame', Body) documents and runs that were saved with Frame will not load (composed.Composed)
      field width of Head removed and breadth added, perhaps renamed: without renamed(…, 'width') documents and runs that were saved with width will not load (composed.Composed)
      new field added of Head: 'plain' everywhere (composed.Composed)
      constant numHeads removed and heads added, perhaps renamed: without renamed(…, 'numHeads') documents and runs that were saved with numHeads will not load (composed.Composed, small.One)

    2 experiments: composed.Composed, small.One
      Constants
        heads : + 2  (set by Family at experiments/family.ts:7)
        numHeads : - 2  (set by Family at experiments/family.ts:7)

    composed.Composed
      Fields
        task.model.frame : class Frame → class Body
        task.model.frame.first.breadth : + 3  (experiments/composed.ts:8)
        task.model.frame.first.width : - 3  (was experiments/composed.ts:8)

    Parameters, FLOPs, tokens and memory as before: composed.Composed, small.One

    Runs go on with the same bits: composed.Composed, small.One

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('classes of one name in several files', async () => {
  const heads = (fields: string) => `import { z } from 'zod';
import { Configurable } from 'luthier';
export class Head extends Configurable.with({ ${fields} }) {}
`;
  const base = (steps: number) => `import { Family as Base } from './family.js';
export abstract class Family extends Base {
  override steps = ${steps};
}
`;
  const files = {
    'experiments/family.ts': family,
    'experiments/base.ts': base(3),
    // Loaded first, and not the class that the configs are of.
    'experiments/a.ts': heads('width: z.int().default(1)'),
    'experiments/parts.ts': parts,
    'experiments/composed.ts': `import './a.js';\n${composed('{ first: head }', '[Head.config()]').replace('family', 'base')}`,
  };
  const repository = repositoryOf(files);
  repository.write({
    'experiments/family.ts': family.replace("default(2).describe('Heads", "default(4).describe('Heads"),
    'experiments/base.ts': base(4),
    'experiments/parts.ts': parts.replace('depth: z.int().default(1)', 'depth: z.int().default(7)'),
    'experiments/a.ts': heads('width: z.int().default(1), depth: z.int().default(7)'),
  });
  expect(await text(repository)).toMatchInlineSnapshot(`
    "1 can't go on from its checkpoints (and costs more)
    main (abc1234) → working tree

    composed.Composed
      Constants
        numHeads : 2 → 4  (set by Family at experiments/family.ts:7)
        steps : 3 → 4  (set by Family at experiments/base.ts:3)
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 2 → 4  (luthier/src/models; forces a new run)
        task.model.heads[0].depth : 1 (default) → 7 (default)  (default of Head at experiments/parts.ts:6)
        task.train.numTrainSteps : 3 → 4  (experiments/family.ts:16)

    Consequences                                    before       after
    composed.Composed  Tokens of training               48          64  +16, +33%
                       FLOPs of training        2.35 MFLOP  3.14 MFLOP  +784 kFLOP, +33%
                       Peak memory of training      216 kB      216 kB  +256 B, +0.12%

    Runs cannot go on: composed.Composed
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      a checkpoint: not compatible with this model, 8 differences
      initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});

test('one experiment against a revision, in a project that is a folder of the repository', async () => {
  const outer = repositoryOf({ 'README.md': 'Outer.\n' });
  mkdirSync(join(outer.folder, 'inner/experiments'), { recursive: true });
  outer.write({
    'inner/package.json': '{ "type": "module" }\n',
    'shared/family.ts': family,
    'inner/experiments/small.ts': experimentsFile(one).replace('./family.js', '../../shared/family.js'),
    'inner/data/steps.txt': '5',
  });
  outer.git('add', '.');
  outer.git('commit', '--quiet', '--message=inner');
  // The family reads a file that git ignores, and is not in the worktree by itself.
  const reading = family
    .replace("import { z } from 'zod';", "import { readFileSync } from 'node:fs';\nimport { z } from 'zod';")
    .replace(
      'numTrainSteps: this.steps',
      "numTrainSteps: Number(readFileSync('data/steps.txt', 'utf8')) + this.steps",
    );
  outer.write({ 'shared/family.ts': reading });
  outer.git('commit', '--quiet', '--all', '--message=read');
  outer.write({ 'shared/family.ts': reading.replace('+ this', '+ 1 + this') });
  const project = join(outer.folder, 'inner');
  const pictures = join(temporaryDirectory(), 'pictures');
  expect(
    await text(outer, {
      project,
      pictures,
      name: 'One',
      base: 'HEAD',
      changes: [{ kind: 'set', path: 'steps', text: '9', origin: '--set steps=9' }],
    }),
  ).toMatchInlineSnapshot(`
    "1 costs more
    HEAD (abc1234) → working tree

    small.One
      Fields
        task.train.numTrainSteps : 14 → 15  (../shared/family.ts:17)

    Consequences                          before       after
    small.One     Tokens of training         224         240  +16, +7.1%
                  FLOPs of training   11.0 MFLOP  11.8 MFLOP  +784 kFLOP, +7.1%

    Runs go on with the same bits: small.One"
  `);
  expect(readdirSync(pictures)).toEqual(['small.One.svg']);
});

test('an experiment that ends the process, and one that cannot be loaded', async () => {
  const repository = repositoryOf({
    'experiments/family.ts': family,
    'experiments/a.ts': experimentsFile('export class Ends extends Family {}'),
    'experiments/b.ts': experimentsFile(one),
    'experiments/c.ts': experimentsFile('export class Two extends Family {}'),
  });
  repository.write({
    'experiments/a.ts': experimentsFile(
      "console.error('I am off.');\nprocess.exit(3);\nexport class Ends extends Family {}",
    ),
    'experiments/b.ts': experimentsFile('export class One extends Family {'),
    'experiments/c.ts': experimentsFile('export class Two extends Family {\n  override steps = 6;\n}'),
  });
  writeFileSync(join(repository.folder, 'data'), 'ignored');
  expect(await text(repository)).toMatchInlineSnapshot(`
    "Fails: 2 break, 1 costs more
    main (abc1234) → working tree

    a.Ends: broken
      The process ended with exit code 3. It said:
      I am off.

    b.One: broken
      Experiment 'b.One': experiments/b.ts failed to load.
      Expected identifier but found end of file
      at experiments/b.ts:3

    c.Two
      Constants
        steps : 5 → 6  (set by Two at experiments/c.ts:4; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 6  (experiments/family.ts:16)

    Consequences                          before       after
    c.Two         Tokens of training          80          96  +16, +20%
                  FLOPs of training   3.92 MFLOP  4.71 MFLOP  +784 kFLOP, +20%

    Runs go on with the same bits: c.Two"
  `);
});
