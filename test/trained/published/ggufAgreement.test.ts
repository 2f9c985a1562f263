/** @file A trained model in GGUF's types: its likeliest tokens, beside those that llama.cpp finds by the same files. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build, derive } from '../../../src/hparams/index.js';
import { ActQuantization, Quantization } from '../../../src/layers/index.js';
import { exportGguf, importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { Predictor } from '../../../src/trained/predictor.js';
import { temporaryDirectory } from '../../command.js';

const published = join(import.meta.dirname, '../../fixtures/published');
const file = join(published, 'agreement.gguf');
const { text, exports } = JSON.parse(readFileSync(join(published, 'agreement.json'), 'utf8')) as {
  text: string;
  exports: Record<string, { sha256: string; tokens: string }>;
};
/** Rows of the text, of as many tokens as the model's context, of which the last ones are none of it. */
const [ROWS, SEQLEN] = [4, 256];
const bytes = Buffer.from(text);
const length = bytes.length / ROWS;
const ids = new Int32Array(ROWS * SEQLEN);
for (const [i, byte] of bytes.entries()) ids[Math.floor(i / length) * SEQLEN + (i % length)] = byte;
const batch = { ids: { shape: [ROWS, SEQLEN], dtype: 'int32' as const, data: ids } };

async function imported(from: string): Promise<string> {
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder: from, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  return jobLogDir;
}

/** The likeliest token behind each, with what weights multiply rounded in blocks; 0: as it is. */
async function likeliest({ document, params, batchSpecs }: TrainedRun, blockSize: number): Promise<number[]> {
  const model = derive(document.task.model, (draft) => {
    if (blockSize === 0) return;
    draft.quantization = Quantization.config({
      ...{ mode: 'materialize', weightParams: null, actParams: ActQuantization.config({ blockSize }) },
    });
  });
  const predictor = new Predictor({
    ...{ model: build(model), params, trained: batchSpecs },
    compileOptions: () => ({ engine: 'onnx' }),
  });
  const { logits } = await predictor.predict(batch);
  await predictor.dispose();
  const size = logits!.shape[2]!;
  return Array.from(bytes, (_, i) => {
    const at = (Math.floor(i / length) * SEQLEN + (i % length)) * size;
    const row = Array.from(logits!.data.subarray(at, at + size), Number);
    return row.indexOf(Math.max(...row));
  });
}

const TYPES = {
  q4_k: 'Q4_K',
  q4_0: 'Q4_0',
  q8_0: 'Q8_0',
  bfloat16: 'BF16',
  float16: 'F16',
  float32: 'F32',
} as const;
/** Blocks in which llama.cpp rounds to 8 bits what packed weights multiply. */
const BLOCKS: { readonly [name: string]: number } = { q4_k: 256, q4_0: 32, q8_0: 32 };

let first: string;
let run: TrainedRun;

beforeAll(async () => {
  first = await imported(file);
  run = await loadRun(first);
});

afterAll(() => run.dispose());

test.each(Object.entries(TYPES))(
  '%s: with its rounding of what packed weights multiply, the likeliest tokens are those of llama.cpp',
  async (name, type) => {
    const { sha256, tokens } = exports[name]!;
    const out = join(temporaryDirectory(), 'model.gguf');
    await exportGguf(run, { directory: first, out, type });
    expect(createHash('sha256').update(readFileSync(out)).digest('hex')).toBe(sha256);
    const again = await loadRun(await imported(out));
    const expected = Buffer.from(tokens, 'base64');
    const same = (await likeliest(again, BLOCKS[name] ?? 0)).filter((id, i) => id === expected[i]);
    await again.dispose();
    expect(same.length).toBeGreaterThanOrEqual(0.99 * expected.length);
  },
);
