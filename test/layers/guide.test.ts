/** @file The programs of docs/guide/layers.md run and print what the page leads one to expect. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const guide = readFileSync(join(root, 'docs/guide/layers.md'), 'utf8');
const programs = [...guide.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]!);

async function run(program: string): Promise<string> {
  const require = createRequire(import.meta.url);
  const path = join(mkdtempSync(join(tmpdir(), 'luthier-guide-')), 'program.mts');
  const zod = pathToFileURL(require.resolve('zod')).href;
  writeFileSync(path, program.replaceAll("'../src/", `'${root}src/`).replaceAll("'zod'", `'${zod}'`));
  const tsx = pathToFileURL(require.resolve('tsx')).href;
  return (await promisify(execFile)(process.execPath, ['--import', tsx, path], { timeout: 60_000 })).stdout;
}

test('the programs of the guide run', { timeout: 120_000 }, async () => {
  expect(await Promise.all(programs.map(run))).toEqual([
    "[ 'gate []', 'linear/w [4,4]' ]\nFloat32Array(1) [ 0.5 ]\n",
    "[ 'linear/w [2,3]', 'bias/b [3]' ]\n",
    '35 8\n',
  ]);
});
