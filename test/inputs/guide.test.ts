import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const guide = readFileSync(new URL('docs/guide/inputs.md', root), 'utf8');
const programs = [...guide.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]!);

/** Runs a program of the guide, which stands where experiments stand, and gives what it prints. */
async function run(program: string): Promise<string> {
  const require = createRequire(import.meta.url);
  const zod = pathToFileURL(require.resolve('zod')).href;
  const path = join(mkdtempSync(join(tmpdir(), 'luthier-guide-')), 'program.mts');
  writeFileSync(
    path,
    program.replaceAll("'../src/", `'${fileURLToPath(root)}src/`).replaceAll("'zod'", `'${zod}'`),
  );
  const tsx = pathToFileURL(require.resolve('tsx')).href;
  return (await promisify(execFile)(process.execPath, ['--import', tsx, path], { timeout: 30_000 })).stdout;
}

test('the programs of the guide run', { timeout: 60_000 }, async () => {
  expect(programs.length).toBe(3);
  const [text, ahead, own] = await Promise.all(programs.map(run));
  expect(text).toMatch(/^\[ 2, 64 \] \[\n/);
  expect(ahead).toBe('');
  expect(own).toBe("{\n  x: { shape: [ 2 ], dtype: 'float32', data: Float32Array(2) [ 0, 1 ] }\n}\n");
});
