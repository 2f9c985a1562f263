/**
 * @file The trained all-MiniLM-L6-v2 against sentence-transformers (scripts/record_minilm.py). Skipped without its weights, which
 * bench/peers/minilm.sh fetches.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { importPublished, loadRun } from '../../src/trained/index.js';
import { temporaryDirectory } from '../command.js';
import { publishedModels } from '../publishedModels.js';

const folder = join(publishedModels, 'all-MiniLM-L6-v2');
const hasWeights = existsSync(join(folder, 'model.safetensors'));

test.skipIf(!hasWeights)(
  `embeddings of 100 sentences${hasWeights ? '' : ' (skipped without the weights: bash bench/peers/minilm.sh)'}`,
  { timeout: 300_000 },
  async () => {
    const jobLogDir = join(temporaryDirectory(), 'run');
    await importPublished({
      ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: undefined },
      ...{ ignoredFields: [], ignoredTensors: [] },
    });
    const run = await loadRun(jobLogDir, { batchSize: 10 });
    const record = new SafetensorsFile(join(import.meta.dirname, '../fixtures/published/minilm.safetensors'));
    const sentences: string[] = JSON.parse(record.layout.metadata.sentences!);
    const expected = record.read('embeddings') as Float32Array;
    record.close();
    const found = (await run.predict(sentences)).flatMap(({ outputs }) => outputs.embeddings as number[]);
    await run.dispose();
    expect(sentences.length).toBe(100);
    expect(found.length).toBe(expected.length);
    const farthest = found.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);
    expect(farthest).toBeLessThan(1e-4);
  },
);
