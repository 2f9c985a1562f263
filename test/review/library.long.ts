/** @file luthier diff --base in the library's own repository: each version is evaluated with its own sources. */
import { cpSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compareVersions } from '../../src/review/compareVersions.js';
import { textOf } from '../../src/review/reports/textReport.js';
import { plain } from '../../src/system/text/terminalOutput.js';
import { family, repositoryOf } from './repository.js';

const library = fileURLToPath(new URL('../..', import.meta.url));

test('a default of a layer, against a version of the library that has no such command', async () => {
  const repository = repositoryOf({
    'experiments/small.ts': family
      .replace("'luthier'", "'../src/index.js'")
      .replace('export abstract class Family', 'export class One'),
  });
  const { folder } = repository;
  for (const name of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(library, name), join(folder, name), { recursive: true });
  rmSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(join(library, 'node_modules'), join(folder, 'node_modules'));
  const later = ['src/tools', 'src/review', 'src/analysis'];
  for (const name of later) rmSync(join(folder, name), { recursive: true });
  repository.git('add', '.');
  repository.git('commit', '--quiet', '--message=early');
  for (const name of later) cpSync(join(library, name), join(folder, name), { recursive: true });
  const layers = 'src/layers/transformer/feedForwards.ts';
  const text = readFileSync(join(folder, layers), 'utf8');
  repository.write({
    [layers]: text.replace(
      'residualWeight: z.number().default(1)',
      'residualWeight: z.number().default(0.5)',
    ),
  });
  const state = repository.state();
  const report = await compareVersions({
    project: folder,
    base: 'HEAD',
    exact: false,
    name: undefined,
    changes: [],
    limits: { seconds: 60, gigabytes: 4 },
  });
  expect(repository.state()).toBe(state);
  expect(
    textOf(report, plain)
      .replace(/\([0-9a-f]{7}\)/, '')
      .replace(/(feedForwards\.ts):\d+/g, '$1:N'),
  ).toMatchInlineSnapshot(`
    "1 changes at the same cost
    HEAD  → working tree

    small.One
      Fields
        task.model.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trFflayerTpl.residualWeight : 1 (default) → 0.5 (default)  (default of TransformerFeedForward at src/layers/transformer/feedForwards.ts:N)
        task.model.lmTpl.stackedTransformerTpl.moeLayerTpl.residualWeight : 1 (default) → 0.5 (default)  (default of TransformerFeedForwardMoe at src/layers/transformer/feedForwards.ts:N)

    Consequences                           before   after
    small.One     Peak memory of training  216 kB  217 kB  +1.02 kB, +0.47%

    Runs go on changed: small.One
      loss or gradients

    Note: For equal configs, the traced training step and evaluation, the update and its learning rates, the distributions of initial values, decoding, and rows of the data were compared; without data, the code that reads it.

    Note: Where a config changed, both codes were compared by the config of now."
  `);
});
