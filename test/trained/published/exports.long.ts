/**
 * @file Exports as transformers and PEFT load them (scripts/check_exports.py): every tensor has its place, and outputs equal those of
 * what was imported. Skipped without both, which bench/peers/setup.sh installs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportAdapter, exportHuggingFace, importPublished, loadRun } from '../../../src/trained/index.js';
import { temporaryDirectory } from '../../command.js';
import { peersPython } from '../../publishedModels.js';
import { adapterFolder, LINEARS } from './adapterFolder.js';

const published = join(import.meta.dirname, '../../fixtures/published');
const script = join(import.meta.dirname, '../../../scripts/check_exports.py');
const families = readdirSync(join(published, 'families')).map((name) => join('families', name));
const hasPeers = existsSync(peersPython);

/** An import, written again. @returns its folder, and that of its adapter where it has one */
async function exported(folder: string, adapter?: string): Promise<{ merged: string; factors: string }> {
  const [directory, merged, factors] = ['run', 'merged', 'factors'].map((name) =>
    join(temporaryDirectory(), name),
  ) as [string, string, string];
  await importPublished({
    ...{ folder, jobLogDir: directory, dtype: 'float32', maxLength: undefined, files: undefined, adapter },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  const run = await loadRun(directory, { engine: 'eager' });
  await exportHuggingFace(run, { directory, out: merged });
  if (adapter !== undefined) exportAdapter(run, { directory, out: factors });
  await run.dispose();
  return { merged, factors };
}

/** Of each pair, the largest difference in parts of the largest magnitude, or the reason why there is none. */
function checked(pairs: readonly string[]): Record<string, number | string> {
  // Exit status 1, with the same lines, where a pair does not fit.
  let lines: string;
  try {
    lines = execFileSync(peersPython, [script, ...pairs], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    lines = (error as { stdout: string }).stdout;
  }
  const results = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { pair: string; difference?: number; error?: string });
  return Object.fromEntries(results.map(({ pair, difference, error }) => [pair, difference ?? error!]));
}

test.skipIf(!hasPeers)(
  `transformers and PEFT load exports${hasPeers ? '' : ' (skipped without them: bash bench/peers/setup.sh)'}`,
  { timeout: 600_000 },
  async () => {
    const pairs: string[] = [];
    for (const name of ['gpt2', 'gpt2Half', 'llama', 'llamaBfloat16', ...families])
      pairs.push(`${join(published, name)}=${(await exported(join(published, name))).merged}`);
    for (const name of ['llama', ...['qwen3', 'gemma2', 'olmo2'].map((family) => join('families', family))]) {
      const base = join(published, name);
      const { merged, factors } = await exported(base, adapterFolder(base, {}, LINEARS));
      pairs.push(`${base}+${factors}=${merged}`);
    }
    const found = checked(pairs);
    expect(Object.keys(found)).toEqual(pairs);
    const wrong = Object.entries(found).filter(([, difference]) => !(Number(difference) < 1e-5));
    expect(wrong).toEqual([]);
  },
);
