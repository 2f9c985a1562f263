/** @file Changes of experiments that only loading finds, and all that a review tells of each: mixins, presets, results of calls. */
import { expect } from 'vitest';
import { withCommandEnvironment } from '../loader.js';
import { kinds } from './kinds.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds();

withCommandEnvironment();

const mixins = `import type { Family } from '../experiments/family.js';

/** An experiment with dropout. */
export function withDropout<B extends abstract new () => Family>(Base: B, rate: number) {
  abstract class Dropped extends Base {
    override task() {
      const task = super.task();
      (task.model as any).lmTpl.stackedTransformerTpl.dropoutProb = rate;
      return task;
    }
  }
  return Dropped as unknown as B;
}

/** Experiments of these numbers of layers. */
export const bySize = (Base: any, ...sizes: number[]): any =>
  Object.fromEntries(sizes.map((numLayers) => [\`L\${numLayers}\`, Base.preset({ numLayers })]));

/** A number, which is no experiment. */
export const half = (value: number) => value / 2;
`;
const base = experimentsFile(`/** The base of them. */
export class Small extends Family {
  override numLayers = 1;
}
`);
const mixed = `import { bySize, half, withDropout } from '../lib/mixins.js';
import { Small } from './base.js';

/** With dropout. */
export class Mixed extends withDropout(Small, 0.1) {}
export const { L1, L2 } = bySize(Small, 1, 2);
export const width = half(8);
`;
const files = {
  'lib/mixins.ts': mixins,
  'experiments/family.ts': family,
  'experiments/base.ts': base,
  'experiments/mixed.ts': mixed,
};
const review = new ScratchReview(files);
const { git } = review.repository;

test('nothing', async () => {
  expect(await review.told({})).toMatchInlineSnapshot(`
    "4 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed"
  `);
});

test('a comment in the mixin', async () => {
  expect(await review.told({ 'lib/mixins.ts': `// More.\n${mixins}` })).toMatchInlineSnapshot(`
    "3 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed"
  `);
});

test('an argument of the mixin', async () => {
  const edits = { 'experiments/mixed.ts': instead('Small, 0.1', 'Small, 0.2') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 2 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed
      Fields
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : 0.1 → 0.2  (lib/mixins.ts:8)

    Parameters, FLOPs, tokens and memory as before: mixed.Mixed

    Runs go on changed: mixed.Mixed
      loss or gradients"
  `);
});

test('the code of the mixin', async () => {
  const edits = { 'lib/mixins.ts': instead('dropoutProb = rate', 'dropoutProb = rate / 2') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 changes at the same cost, 2 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed
      Fields
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : 0.1 → 0.05  (lib/mixins.ts:8)

    Parameters, FLOPs, tokens and memory as before: mixed.Mixed

    Runs go on changed: mixed.Mixed
      loss or gradients"
  `);
});

test('a constant of the base class of both', async () => {
  const edits = { 'experiments/base.ts': instead('numLayers = 1;', 'numLayers = 1;\n  override steps = 6;') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "4 cost more

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    4 experiments: base.Small, mixed.L1, mixed.L2, mixed.Mixed
      Constants
        steps : 5 → 6  (set by Small at experiments/base.ts:6; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 6  (experiments/family.ts:16)

    Consequences                          before       after
    base.Small    Tokens of training          80          96  +16, +20%
                  FLOPs of training   2.13 MFLOP  2.56 MFLOP  +426 kFLOP, +20%
    mixed.L1      Tokens of training          80          96  +16, +20%
                  FLOPs of training   2.13 MFLOP  2.56 MFLOP  +426 kFLOP, +20%
    mixed.L2      Tokens of training          80          96  +16, +20%
                  FLOPs of training   3.92 MFLOP  4.71 MFLOP  +784 kFLOP, +20%
    mixed.Mixed   Tokens of training          80          96  +16, +20%
                  FLOPs of training   2.25 MFLOP  2.70 MFLOP  +450 kFLOP, +20%

    Runs go on with the same bits: base.Small, mixed.L1, mixed.L2, mixed.Mixed"
  `);
});

test('a class that gets a mixin, and one that loses it', async () => {
  const edits = {
    'experiments/base.ts': (text: string) =>
      text
        .replace('class Small extends Family', 'class Small extends withDropout(Family, 0.3)')
        .replace('import', "import { withDropout } from '../lib/mixins.js';\nimport"),
    'experiments/mixed.ts': instead('extends withDropout(Small, 0.1)', 'extends Small'),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "3 cost more, 1 changes at the same cost

    found by loading, not by source text: base.Small, mixed.L1, mixed.L2, mixed.Mixed

    3 experiments: base.Small, mixed.L1, mixed.L2
      Fields
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : 0 → 0.3  (lib/mixins.ts:8; was luthier/src/models/presets/gpt2.ts:N)

    mixed.Mixed
      Fields
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : 0.1 → 0.3  (lib/mixins.ts:8)

    Consequences                               before       after
    base.Small    Forward FLOPs per token  8.89 kFLOP  9.37 kFLOP  +480 FLOP, +5.4%
                  FLOPs of training        2.13 MFLOP  2.25 MFLOP  +115 kFLOP, +5.4%
                  Peak memory of training      125 kB      128 kB  +3.14 kB, +2.5%
    mixed.L1      Forward FLOPs per token  8.89 kFLOP  9.37 kFLOP  +480 FLOP, +5.4%
                  FLOPs of training        2.13 MFLOP  2.25 MFLOP  +115 kFLOP, +5.4%
                  Peak memory of training      125 kB      128 kB  +3.14 kB, +2.5%
    mixed.L2      Forward FLOPs per token  16.3 kFLOP  17.3 kFLOP  +960 FLOP, +5.9%
                  FLOPs of training        3.92 MFLOP  4.15 MFLOP  +230 kFLOP, +5.9%
                  Peak memory of training      216 kB      221 kB  +5.25 kB, +2.4%

    Parameters, FLOPs, tokens and memory as before: mixed.Mixed

    Runs go on changed: base.Small, mixed.L1, mixed.L2
      loss or gradients
      random draws

    Runs go on changed: mixed.Mixed
      loss or gradients"
  `);
});

test('one is added', async () => {
  const edits = {
    'experiments/mixed.ts': `${mixed}export class More extends withDropout(Mixed, 0.3) {}\n`,
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 added, 3 the same, 1 that the change does not reach

    added: mixed.More

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed, mixed.More

    Consequences                           before, or base       after
    mixed.More    Parameters                         3.76k       3.76k
                  Forward FLOPs per token       9.37 kFLOP  9.37 kFLOP
                  Tokens per step                       16          16
                  Tokens of training                    80          80
                  FLOPs of training             2.25 MFLOP  2.25 MFLOP
                  Peak memory of training           128 kB      128 kB"
  `);
});

test('one is removed', async () => {
  const edits = {
    'experiments/mixed.ts': instead(
      '/** With dropout. */\nexport class Mixed extends withDropout(Small, 0.1) {}\n',
      '',
    ),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 removed, 2 the same, 1 that the change does not reach

    removed: mixed.Mixed

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed extended withDropout(Small, 0.1) at experiments/mixed.ts:5: With dropout.
      3.76k parameters
      last changed by abc1234 of DATE: base
      --exp=mixed.Mixed leads nowhere now"
  `);
});

test('one is renamed, without and with an alias', async () => {
  const renamed = mixed.replace('class Mixed', 'class Dropped');
  expect(await review.told({ 'experiments/mixed.ts': renamed })).toMatchInlineSnapshot(`
    "1 under another name, 2 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.Dropped, mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed is renamed to mixed.Dropped (configs and constants are equal)
      --exp=mixed.Mixed leads nowhere now: use --exp=mixed.Dropped, with another job_log_dir
      runs of mixed.Mixed do not resume, and their checkpoints do not load: both check the experiment's name. export { Dropped as Mixed }; in experiments/mixed.ts keeps that name"
  `);
  const kept = `${renamed}export { Dropped as Mixed };\n`;
  expect(await review.told({ 'experiments/mixed.ts': kept })).toMatchInlineSnapshot(`
    "1 under another name, 3 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.Dropped, mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed is renamed to mixed.Dropped (one class has both names)
      --exp takes either name. A job_log_dir belongs to one name: runs of mixed.Mixed resume with --exp=mixed.Mixed, not with --exp=mixed.Dropped"
  `);
});

test('their file is moved', async () => {
  const told = await review.told({}, {}, () => git('mv', 'experiments/mixed.ts', 'experiments/moved.ts'));
  expect(told).toMatchInlineSnapshot(`
    "3 under another name, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed, moved.L1, moved.L2, moved.Mixed

    mixed.L1 is renamed to moved.L1, in experiments/moved.ts instead of experiments/mixed.ts (git detects the moved file, with a class of the same name; configs and constants are equal)
      --exp=mixed.L1 leads nowhere now: use --exp=moved.L1, with another job_log_dir
      runs of mixed.L1 do not resume, and their checkpoints do not load: both check the experiment's name. export { L1 } from './moved.js'; in experiments/mixed.ts keeps that name

    mixed.L2 is renamed to moved.L2, in experiments/moved.ts instead of experiments/mixed.ts (git detects the moved file, with a class of the same name; configs and constants are equal)
      --exp=mixed.L2 leads nowhere now: use --exp=moved.L2, with another job_log_dir
      runs of mixed.L2 do not resume, and their checkpoints do not load: both check the experiment's name. export { L2 } from './moved.js'; in experiments/mixed.ts keeps that name

    mixed.Mixed is renamed to moved.Mixed, in experiments/moved.ts instead of experiments/mixed.ts (git detects the moved file, with a class of the same name; configs and constants are equal)
      --exp=mixed.Mixed leads nowhere now: use --exp=moved.Mixed, with another job_log_dir
      runs of mixed.Mixed do not resume, and their checkpoints do not load: both check the experiment's name. export { Mixed } from './moved.js'; in experiments/mixed.ts keeps that name"
  `);
});

test('one is broken by a constant', async () => {
  const edits = { 'experiments/mixed.ts': instead('Small, 1, 2)', 'Small, 1, 0)') };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "exit 1: Fails: 3 break, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.L1, mixed.L2, mixed.Mixed: broken
      Experiment 'mixed.L1': experiments/mixed.ts failed to load.
      Small.preset: numLayers: expected a positive integer, got 0
      at lib/mixins.ts:17"
  `);
});

test('one is broken in task()', async () => {
  const edits = {
    'experiments/mixed.ts': instead(
      'withDropout(Small, 0.1) {}',
      "withDropout(Small, 0.1) {\n  override task(): never {\n    throw new Error('Not ready.');\n  }\n}",
    ),
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "exit 1: Fails: 1 breaks, 2 the same, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.Mixed: broken
      Not ready.
      at experiments/mixed.ts:7"
  `);
});

test('their module fails to load', async () => {
  const edits = { 'experiments/mixed.ts': `${mixed}throw new Error('It is not ready.');\n` };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "exit 1: Fails: 3 break, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.L1, mixed.L2, mixed.Mixed: broken
      Experiment 'mixed.L1': experiments/mixed.ts failed to load.
      It is not ready.
      at experiments/mixed.ts:8"
  `);
});

test('their module never loads, and one ends the process', async () => {
  const hangs = { 'experiments/mixed.ts': `${mixed}await new Promise(() => {});\n` };
  expect(await review.told(hangs, { limits: { seconds: 8, gigabytes: 4 } })).toMatchInlineSnapshot(`
    "exit 1: Fails: 3 break, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.L1, mixed.L2, mixed.Mixed: broken
      It took longer than 8 s; luthier diff --timeout=SECONDS gives it more."
  `);
  const ends = { 'experiments/mixed.ts': `${mixed}process.exit(0);\n` };
  expect(await review.told(ends)).toMatchInlineSnapshot(`
    "exit 1: Fails: 3 break, 1 that the change does not reach

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    mixed.L1, mixed.L2, mixed.Mixed: broken
      The process ended with exit code 0."
  `);
});

test('one of a file that is added, by its name alone', async () => {
  const edits = {
    'experiments/later.ts': `import { withDropout } from '../lib/mixins.js';
import { Small } from './base.js';
export default withDropout(Small, 0.4);
`,
  };
  expect(await review.told(edits, { name: 'later.default' })).toMatchInlineSnapshot(`
    "1 added

    added: later.default

    found by loading, not by source text: later.default, mixed.L1, mixed.L2, mixed.Mixed

    later.default (added against base.Small)
      Fields
        task.model.lmTpl.stackedTransformerTpl.dropoutProb : 0 → 0.4  (lib/mixins.ts:8; was luthier/src/models/presets/gpt2.ts:N)

    Consequences                            before, or base       after
    later.default  Parameters                         3.76k       3.76k
                   Forward FLOPs per token       8.89 kFLOP  9.37 kFLOP  +480 FLOP, +5.4%
                   Tokens per step                       16          16
                   Tokens of training                    80          80
                   FLOPs of training             2.13 MFLOP  2.25 MFLOP  +115 kFLOP, +5.4%
                   Peak memory of training           125 kB      128 kB  +3.14 kB, +2.5%"
  `);
});

test('a preset in a constant, which source text tells', async () => {
  const edits = {
    'experiments/base.ts': `${base}/** Longer. */\nexport const Longer = Small.preset({ steps: 9 });\n`,
  };
  expect(await review.told(edits)).toMatchInlineSnapshot(`
    "1 added, 4 the same

    added: base.Longer

    found by loading, not by source text: mixed.L1, mixed.L2, mixed.Mixed

    base.Longer (added against base.Small)
      Constants
        steps : 5 → 9  (set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 9  (experiments/family.ts:16)

    Consequences                           before, or base       after
    base.Longer   Parameters                         3.76k       3.76k
                  Forward FLOPs per token       8.89 kFLOP  8.89 kFLOP
                  Tokens per step                       16          16
                  Tokens of training                    80         144  +64, +80%
                  FLOPs of training             2.13 MFLOP  3.84 MFLOP  +1.71 MFLOP, +80%
                  Peak memory of training           125 kB      125 kB"
  `);
});
