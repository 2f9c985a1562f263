/** @file Every program and command in the guide, the README and docs/architecture.md runs, and prints what the page shows. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandEnvironment } from '../loader.js';
import { compilePages, missingLines, root, runPage } from './pages.js';

const guide = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md'));
const pages = [...guide.map((name) => `docs/guide/${name}`), 'README.md', 'docs/architecture.md'];

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

for (const page of pages) {
  test.concurrent(`${page} shows what happens`, async () => {
    const results = await runPage(page, commandEnvironment);
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
  });
}

test.concurrent('what the pages show compiles, and what they say does not compile does not', {
  timeout: 300_000,
}, async () => {
  expect(compilePages(pages)).toBe('');
});
