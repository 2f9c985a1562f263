/** @file Exports for transformers and PEFT: tensors with the names and bits that were imported, and changes of LoRA. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WeightFiles } from '../../../src/checkpoints/index.js';
import { exportAdapter, exportHuggingFace, importPublished, loadRun } from '../../../src/trained/index.js';
import { temporaryDirectory } from '../../command.js';
import { adapterFolder } from './adapterFolder.js';

const published = join(import.meta.dirname, '../../fixtures/published');

async function imported(folder: string, values: { dtype?: 'bfloat16'; adapter?: string } = {}) {
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [], ...values },
  });
  return jobLogDir;
}

const state = (run: string): Buffer =>
  readFileSync(join(run, 'checkpoints/checkpoint_00000000/state.safetensors'));

/** Tensors of a folder as float32, with their shapes. */
function tensorsOf(path: string): Record<string, { shape: readonly number[]; values: Float32Array }> {
  const source = WeightFiles.open(path);
  try {
    return Object.fromEntries(
      source.names.map((name) => {
        const shape = source.shapeOf(name)!;
        const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
        source.readInto(name, values);
        return [name, { shape, values }];
      }),
    );
  } finally {
    source.close();
  }
}

const models: [string, { dtype?: 'bfloat16' }][] = [
  ['gpt2', {}],
  ['llamaBfloat16', { dtype: 'bfloat16' }],
  ['families/deepseek_v3', {}],
  ['families/gemma3_text', {}],
  // Without data; with a table that the network computes.
  ['families/whisper', {}],
];

test.each(models)('%s goes back with its names and bits, and comes again', async (name, values) => {
  const folder = join(published, name);
  const directory = await imported(folder, values);
  const run = await loadRun(directory, { engine: 'eager' });
  const out = join(temporaryDirectory(), 'out');
  await exportHuggingFace(run, { directory, out });
  await run.dispose();
  expect(tensorsOf(out)).toEqual(tensorsOf(folder));
  // 4.0 stays 4.0.
  const [settings, given] = [out, folder].map((each) => readFileSync(join(each, 'config.json'), 'utf8'));
  expect(settings).toBe(given!.replace(/"dtype": "\w+"/, `"dtype": "${values.dtype ?? 'float32'}"`));
  expect(state(await imported(out, values)).equals(state(directory))).toBe(true);
});

test('a config.json of another network is refused with all that differs', async () => {
  const directory = await imported(join(published, 'families/qwen3'));
  const run = await loadRun(directory, { engine: 'eager' });
  const folder = join(temporaryDirectory(), 'config');
  mkdirSync(folder);
  const settings = JSON.parse(readFileSync(join(directory, 'published/config.json'), 'utf8'));
  const file = join(folder, 'config.json');
  writeFileSync(
    file,
    JSON.stringify({ ...settings, num_hidden_layers: 1, layer_types: null, vocab_size: 50 }),
  );
  const out = join(temporaryDirectory(), 'out');
  await expect(exportHuggingFace(run, { directory, out, config: folder })).rejects.toThrow(
    new RegExp(
      `^The network is not that of ${file}:\n  'model\\.embed_tokens\\.weight' is \\[48, 16\\], there \\[50, 16\\]\\.\n`,
    ),
  );
  await run.dispose();
});

test("PEFT's adapter of two projections is added to the weights, and goes back as it came", async () => {
  const base = join(published, 'llama');
  const adapter = adapterFolder(base);
  const directory = await imported(base, { adapter });
  const run = await loadRun(directory, { engine: 'eager' });
  const [merged, again] = [0, 1].map(() => join(temporaryDirectory(), 'out')) as [string, string];
  await exportHuggingFace(run, { directory, out: merged });
  exportAdapter(run, { directory, out: again });
  await run.dispose();
  const factors = tensorsOf(join(adapter, 'adapter_model.safetensors'));
  const expected = tensorsOf(base);
  for (const [name, { shape, values }] of Object.entries(expected)) {
    const at = `base_model.model.${name.replace(/\.weight$/, '')}`;
    const [a, b] = ['A', 'B'].map((factor) => factors[`${at}.lora_${factor}.weight`]?.values);
    const inputs = shape[1]!;
    if (a && b)
      for (let i = 0; i < values.length; i++) {
        const [row, column] = [Math.floor(i / inputs), i % inputs];
        values[i]! += 3 * (b[2 * row]! * a[column]! + b[2 * row + 1]! * a[inputs + column]!);
      }
  }
  const found = tensorsOf(merged);
  expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  for (const [name, { values }] of Object.entries(expected))
    for (const [i, value] of values.entries()) expect(found[name]!.values[i]).toBeCloseTo(value, 5);
  expect(tensorsOf(join(again, 'adapter_model.safetensors'))).toEqual(factors);
  const settings = JSON.parse(readFileSync(join(again, 'adapter_config.json'), 'utf8'));
  expect(settings).toMatchObject({ r: 2, lora_alpha: 6, target_modules: ['q_proj', 'v_proj'] });
});

test('an adapter without a counterpart is refused with all its reasons', async () => {
  const base = join(published, 'llama');
  const adapter = adapterFolder(base, { use_dora: true, bias: 'all', rank_pattern: { q_proj: 4 } });
  await expect(imported(base, { adapter })).rejects.toThrow(
    `${join(adapter, 'adapter_config.json')}: the adapter has no counterpart here:\n` +
      '  bias is "all": Invalid input: expected "none"\n' +
      '  use_dora is true: expected it to be off\n' +
      '  rank_pattern is {"q_proj":4}: expected it to be off',
  );
  const other = adapterFolder(base, { r: 3 });
  await expect(imported(base, { adapter: other })).rejects.toThrow(
    /lora_a is \[16, 3\], and 'base_model\.model\.model\.layers\.0\.self_attn\.q_proj\.lora_A\.weight' in the checkpoint \[2, 16\], read as r d -> d r\./,
  );
});
