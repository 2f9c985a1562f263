/** @file `npm run bench:imports`: the time and memory of importing a Llama of 0.5 billion parameters, beside copying its file. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { encodePrefix, placeTensors } from '../src/checkpoints/safetensors.js';
import { importPublished } from '../src/trained/index.js';

const { values: flags } = parseArgs({
  options: {
    /** A folder with room for three copies of the weights. */
    folder: { type: 'string', default: join(tmpdir(), 'luthier-bench-imports') },
    dtype: { type: 'string', default: 'F32' },
    rounds: { type: 'string', default: '3' },
    /** Imports once, and prints a line of JSON: a process of its own has a peak of its own. */
    once: { type: 'boolean', default: false },
  },
});
const model = join(flags.folder, `model_${flags.dtype}`);
const run = join(flags.folder, 'run');
const file = join(model, 'model.safetensors');

const settings = {
  ...{ model_type: 'llama', vocab_size: 49_152, hidden_size: 1024, intermediate_size: 4096 },
  ...{ num_hidden_layers: 26, num_attention_heads: 16, num_key_value_heads: 4, rms_norm_eps: 1e-5 },
};

function writeModel(): void {
  const { vocab_size: vocab, hidden_size: dims, intermediate_size: hidden } = settings;
  const layer: [string, number[]][] = [
    ...['input_layernorm', 'post_attention_layernorm'].map((name): [string, number[]] => [name, [dims]]),
    ...['q', 'o'].map((part): [string, number[]] => [`self_attn.${part}_proj`, [dims, dims]]),
    ...['k', 'v'].map((part): [string, number[]] => [`self_attn.${part}_proj`, [dims / 4, dims]]),
    ...['gate', 'up'].map((part): [string, number[]] => [`mlp.${part}_proj`, [hidden, dims]]),
    ['mlp.down_proj', [dims, hidden]],
  ];
  const tensors: [string, number[]][] = [
    ['model.embed_tokens', [vocab, dims]],
    ['lm_head', [vocab, dims]],
    ['model.norm', [dims]],
    ...Array.from({ length: settings.num_hidden_layers }, (_, i) =>
      layer.map(([name, shape]): [string, number[]] => [`model.layers.${i}.${name}`, shape]),
    ).flat(),
  ];
  const layout = placeTensors(
    tensors.map(([name, shape]) => ({ name: `${name}.weight`, shape, dtype: flags.dtype as 'F32' | 'BF16' })),
  );
  mkdirSync(model, { recursive: true });
  writeFileSync(join(model, 'config.json'), JSON.stringify(settings));
  const piece = Float32Array.from({ length: 1 << 22 }, () => Math.random() - 0.5);
  const bytes = new Uint8Array(piece.buffer);
  const open = openSync(file, 'w');
  writeSync(open, encodePrefix(layout));
  for (let at = 0; at < layout.byteLength; at += bytes.length)
    writeSync(open, bytes, 0, Math.min(bytes.length, layout.byteLength - at));
  closeSync(open);
}

function timed(act: () => void): number {
  const start = performance.now();
  act();
  return (performance.now() - start) / 1000;
}

if (flags.once) {
  const before = process.resourceUsage().maxRSS;
  const start = performance.now();
  await importPublished({
    ...{ folder: model, jobLogDir: run, dtype: flags.dtype === 'F32' ? 'float32' : 'bfloat16' },
    ...{ maxLength: undefined, files: ['*.txt'], ignoredFields: [], ignoredTensors: [] },
  });
  const seconds = (performance.now() - start) / 1000;
  const peak = process.resourceUsage().maxRSS;
  process.stdout.write(JSON.stringify({ seconds, addedMb: (peak - before) / 1024, peakMb: peak / 1024 }));
} else {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) writeModel();
  const megabytes = statSync(file).size / 2 ** 20;
  process.stdout.write(
    `${megabytes.toFixed(0)} MiB of ${flags.dtype}, largest tensor ${((settings.vocab_size * settings.hidden_size * (flags.dtype === 'F32' ? 4 : 2)) / 2 ** 20).toFixed(0)} MiB\n`,
  );
  const copy = join(flags.folder, 'copy.safetensors');
  for (let round = 0; round < Number(flags.rounds); round++) {
    const copying = timed(() => {
      execFileSync('cp', [file, copy]);
      execFileSync('sync', [copy]);
    });
    rmSync(copy);
    const line = execFileSync(process.execPath, [
      ...process.execArgv,
      process.argv[1]!,
      '--once',
      `--dtype=${flags.dtype}`,
      `--folder=${flags.folder}`,
    ]);
    const { seconds, addedMb, peakMb } = JSON.parse(line.toString());
    rmSync(run, { recursive: true });
    process.stdout.write(
      `copied in ${copying.toFixed(2)} s, imported in ${seconds.toFixed(2)} s (${(seconds / copying).toFixed(2)}), ` +
        `${addedMb.toFixed(0)} MiB above the start, ${peakMb.toFixed(0)} MiB in all\n`,
    );
  }
}
