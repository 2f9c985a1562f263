/** @file luthier diff --base in a repository with each kind of experiment: changed, added, removed, broken, mended, the same. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { markdownOf } from '../../src/review/reports/markdownReport.js';
import { textOf } from '../../src/review/reports/textReport.js';
import { plain } from '../../src/system/text/terminalOutput.js';
import { temporaryDirectory } from '../command.js';
import { missingLines, root } from '../docs/pages.js';
import { withCommandEnvironment } from '../loader.js';
import { diff, settled } from './reports/versionReport.js';
import { experimentsFile, family, repositoryOf } from './repository.js';

withCommandEnvironment();

const one = 'export class One extends Family {}\n';

test('changed, added, removed, broken and mended experiments, from base classes and new files', async () => {
  const repository = repositoryOf({
    'experiments/family.ts': family,
    'experiments/small.ts': experimentsFile(
      one,
      'export class Own extends Family {\n  override numHeads = 4;\n}',
      'export class Gone extends Family {}',
    ),
    'experiments/broken.ts': experimentsFile(
      'export class Mended extends Family {\n  override numHead = 4;\n}',
    ),
    'experiments/apart.ts': family.replace('abstract class Family', 'class Apart'),
  });
  repository.write({
    'experiments/family.ts': family.replace("default(2).describe('Heads", "default(4).describe('Heads"),
    'experiments/small.ts': experimentsFile(
      `// A comment.\n${one}`,
      'export class Own extends Family {\n  override numHeads = 4;\n}',
    ),
    'experiments/broken.ts': experimentsFile(
      'export class Mended extends Family {\n  override numHeads = 4;\n}',
    ),
    'experiments/new/fresh.ts':
      "import { Family } from '../family.js';\nexport class Fresh extends Family {\n  override steps = 7;\n}\n" +
      'export class Wrong extends Family {\n  override steps = 0;\n}\n',
  });
  const answers = temporaryDirectory();
  const report = await diff(repository, { answers });
  expect(settled(textOf(report, plain))).toMatchInlineSnapshot(`
    "Fails: 1 breaks, 1 removed, 1 can't go on from its checkpoints, 1 added, 1 mended, 1 the same, 1 that the change does not reach
    main (abc1234) → working tree

    removed: small.Gone
    added: new.fresh.Fresh
    mended: broken.Mended

    small.Gone extended Family at experiments/small.ts:8
      6.86k parameters
      last changed by abc1234 of DATE: base
      --exp=small.Gone leads nowhere now

    new.fresh.Wrong: broken
      Wrong.steps: expected a positive integer, got 0
      at experiments/new/fresh.ts:6

    new.fresh.Fresh (added against Family of experiments/family.ts)
      Constants
        steps : 5 → 7  (set by Fresh at experiments/new/fresh.ts:3; was set by Family at experiments/family.ts:9)
      Fields
        task.train.numTrainSteps : 5 → 7  (experiments/family.ts:16)

    small.One
      Constants
        numHeads : 2 → 4  (set by Family at experiments/family.ts:7)
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 2 → 4  (luthier/src/models; forces a new run)

    Consequences                              before, or base       after
    new.fresh.Fresh  Parameters                         6.86k       6.86k
                     Forward FLOPs per token       16.3 kFLOP  16.3 kFLOP
                     Tokens per step                       16          16
                     Tokens of training                    80         112  +32, +40%
                     FLOPs of training             3.92 MFLOP  5.49 MFLOP  +1.57 MFLOP, +40%
                     Peak memory of training           216 kB      216 kB
    small.One        Peak memory of training           216 kB      216 kB  +256 B, +0.12%
    broken.Mended    Parameters                             -       6.86k
                     Forward FLOPs per token                -  16.3 kFLOP
                     Tokens per step                        -          16
                     Tokens of training                     -          80
                     FLOPs of training                      -  3.92 MFLOP
                     Peak memory of training                -      216 kB

    Runs cannot go on: small.One
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      a checkpoint: not compatible with this model, 8 differences
      initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more
      lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)
      lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it."
  `);
  expect(settled(markdownOf(report))).toMatchInlineSnapshot(`
    "### ❌ Fails: 1 breaks, 1 removed, 1 can't go on from its checkpoints, 1 added, 1 mended, 1 the same, 1 that the change does not reach

    \`main (abc1234)\` → \`working tree\`

    | Experiment        | Verdict                                            | Numerics  | Checkpoints              | Parameters | FLOPs/token | Tokens/step | Training tokens     | Training FLOPs                     | Peak memory                  |
    |-------------------|----------------------------------------------------|-----------|--------------------------|-----------:|------------:|------------:|---------------------|------------------------------------|------------------------------|
    | \`new.fresh.Wrong\` | ❌ broken                                           | –         | –                        |          – |           – |           – | –                   | –                                  | –                            |
    | \`small.Gone\`      | 🗑️ removed                                        | –         | –                        |          – |           – |           – | –                   | –                                  | –                            |
    | \`new.fresh.Fresh\` | 🆕 added against \`Family of experiments/family.ts\` | –         | –                        |      6.86k |  16.3 kFLOP |          16 | 80 → 112 (**+40%**) | 3.92 MFLOP → 5.49 MFLOP (**+40%**) | 216 kB                       |
    | \`small.One\`       | ✏️ changed                                         | same code | cannot go on: 8 reshaped |      6.86k |  16.3 kFLOP |          16 | 80                  | 3.92 MFLOP                         | 216 kB → 216 kB (**+0.12%**) |
    | \`broken.Mended\`   | ✅ mended                                           | –         | –                        |      6.86k |  16.3 kFLOP |          16 | 80                  | 3.92 MFLOP                         | 216 kB                       |

    > For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    <details>
    <summary>❌ broken: <code>new.fresh.Wrong</code></summary>

    \`\`\`text
    Wrong.steps: expected a positive integer, got 0
    \`\`\`
    at \`experiments/new/fresh.ts:6\`

    </details>

    <details>
    <summary><code>small.Gone extended Family at experiments/small.ts:8</code></summary>

    - \`6.86k parameters\`
    - \`last changed by abc1234 of DATE: base\`
    - \`--exp=small.Gone leads nowhere now\`

    </details>

    <details>
    <summary>Runs cannot go on: 1 experiment</summary>

    - \`small.One\`
      - \`forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4\`
      - \`a checkpoint: not compatible with this model, 8 differences\`
      - \`initFromCheckpoint would load 11 of 19 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w and 5 more\`
      - \`lm/transformer/x_layers_*/self_attention/key/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)\`
      - \`lm/transformer/x_layers_*/self_attention/query/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)\`
      - \`lm/transformer/x_layers_*/self_attention/value/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)\`
      - \`lm/transformer/x_layers_*/self_attention/post/w [16, 2, 8] float32 → [16, 4, 4] float32 (2 variables)\`

    </details>

    <details>
    <summary><code>new.fresh.Fresh</code> against <code>Family of experiments/family.ts</code>: 1 constant, 1 field</summary>

    - \`steps\`: \`5\` → \`7\` · set by \`Fresh\` at \`experiments/new/fresh.ts:3\` · was set by \`Family\` at \`experiments/family.ts:9\`
    - \`task.train.numTrainSteps\`: \`5\` → \`7\` · \`experiments/family.ts:16\`

    </details>

    <details>
    <summary><code>small.One</code>: 1 constant, 1 field</summary>

    - \`numHeads\`: \`2\` → \`4\` · set by \`Family\` at \`experiments/family.ts:7\`
    - \`task.model.lmTpl.stackedTransformerTpl.numHeads\`: \`2\` → \`4\` · \`luthier/src/models\` · forces a new run

    </details>"
  `);
  const [, shown] = /```markdown\n([\s\S]*?)```/.exec(
    readFileSync(join(root, 'docs/guide/reviewing.md'), 'utf8'),
  )!;
  expect(missingLines(shown!, markdownOf(report))).toEqual([]);
  // What is known is not asked again, as a time that is too short for any question tells.
  const known = { answers, limits: { seconds: 1e-3, gigabytes: 4 } };
  const own = await diff(repository, { ...known, name: 'small.One' });
  expect(own.experiments).toEqual(report.experiments.filter(({ name }) => name === 'small.One'));
  expect([own.unchanged, own.untouched]).toEqual([0, 0]);
  await expect(diff(repository, { ...known, name: 'small.Onne' })).rejects.toThrow(
    "Did you mean 'small.One'?",
  );
});
