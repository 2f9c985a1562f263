/** @file Pages of the guide, and what their programs and commands print. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { commandEnvironment } from '../loader.js';
import { missingLines, root, runPage } from './pages.js';

const guide = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md'));
/** All pages with code. */
export const pages: readonly string[] = [
  ...guide.map((name) => `docs/guide/${name}`),
  'README.md',
  'docs/architecture/machine-code.md',
];

/** Pages that train for longest, or review a clone: `npm run test:long` runs them. */
export const longPages: readonly string[] = [
  'docs/architecture/machine-code.md',
  'docs/guide/add-an-optimizer.md',
  'docs/guide/architectures.md',
  'docs/guide/configs.md',
  'docs/guide/configs-in-depth.md',
  'docs/guide/embeddings.md',
  'docs/guide/experiments.md',
  'docs/guide/fine-tuning.md',
  'docs/guide/first-experiment.md',
  'docs/guide/inputs.md',
  'docs/guide/inputs-media.md',
  'docs/guide/inputs-records.md',
  'docs/guide/inputs-tasks.md',
  'docs/guide/inputs-text.md',
  'docs/guide/inside-a-run.md',
  'docs/guide/layers.md',
  'docs/guide/models.md',
  'docs/guide/own-model.md',
  'docs/guide/planning.md',
  'docs/guide/programs.md',
  'docs/guide/reviewing.md',
  'docs/guide/running.md',
  'docs/guide/search.md',
  'docs/guide/serving.md',
  'docs/guide/tensorflow-js.md',
  'docs/guide/trained-models.md',
];

/** Pages that use trained weights, with the folder of those in `models` and the script that fetches them. */
export const weightPages: Readonly<Record<string, { readonly folder: string; readonly script: string }>> = {
  'docs/guide/embeddings.md': { folder: 'all-MiniLM-L6-v2', script: 'bench/peers/minilm.sh' },
};

/** What the programs of a page print where the page shows nothing, in order. */
const unshown: Record<string, RegExp[]> = {
  'docs/guide/inputs.md': [
    /^\[ 2, 64 \] \[\n/,
    /^$/,
    /^\{\n {2}x: \{ shape: \[ 2 \], dtype: 'float32', data: Float32Array\(2\) \[ 0, 1 \] \}\n\}\n$/,
  ],
  'docs/guide/layers.md': [
    /^\[ 'gate \[\]', 'linear\/w \[4,4\]' \]\nFloat32Array\(1\) \[ 0.5 \]\n$/,
    /^\[ 'linear\/w \[2,3\]', 'bias\/b \[3\]' \]\n$/,
    /^35 8\n$/,
  ],
};

/** Compiled as people's programs are: pages train for hundreds of steps, which take longer than an optimizing compiler. */
const pageEnvironment = (more?: Readonly<Record<string, string>>): NodeJS.ProcessEnv =>
  commandEnvironment({ ...more, LUTHIER_CFLAGS: '' });

/** Runs a page, and expects that it prints what it shows. */
export async function expectShown(page: string): Promise<void> {
  const results = await runPage(page, pageEnvironment);
  const expected = [...(unshown[page] ?? [])];
  let hasRun = false;
  for (const { kind, code, shown, printed, status } of results) {
    if (kind === 'program') expect(status, printed).toBe(0);
    hasRun ||= kind === 'command' && code.includes('--job_log_dir');
    if (shown === undefined) {
      expect(printed, code).toMatch((kind === 'program' && expected.shift()) || /(?:)/);
    } else if (kind === 'command' || hasRun) {
      // What a run prints and leaves behind differs in its figures.
      expect({ missing: missingLines(shown, printed), printed }, code).toMatchObject({ missing: [] });
    } else {
      // The lines of a page are not those of the program.
      const plain = (text: string) => text.replace(/(\.ts):\d+/g, '$1:#');
      // Where the page is to follow the program: npx tsx scripts/refreshPage.ts PAGE
      expect(plain(printed), code).toBe(plain(shown));
    }
  }
  expect(expected).toEqual([]);
}
