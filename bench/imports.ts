/** @file `npm run bench:import`: time and memory of importing a Llama of 0.5 billion parameters, beside copying its file. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { encodePrefix, placeTensors } from '../src/checkpoints/safetensors.js';
import { SafetensorsFile } from '../src/checkpoints/safetensorsFile.js';
import { importPublished } from '../src/trained/index.js';
import { hasPeers, peersPython } from './programs.js';

const { values: flags } = parseArgs({
  options: {
    /** A folder with room for two copies of the weights. */
    folder: { type: 'string', default: join(tmpdir(), 'luthier-bench-import') },
    dtype: { type: 'string', default: 'F32' },
    rounds: { type: 'string', default: '3' },
    /** Imports once, and prints a line of JSON: a process of its own has a peak of its own. */
    once: { type: 'boolean', default: false },
  },
});
if (flags.dtype !== 'F32' && flags.dtype !== 'BF16')
  throw new Error(`--dtype=${flags.dtype}: expected F32 or BF16`);
const { dtype } = flags as { readonly dtype: 'F32' | 'BF16' };
const model = join(flags.folder, `model_${dtype}`);
const run = join(flags.folder, 'run');
const file = join(model, 'model.safetensors');
const MIB = 2 ** 20;

const settings = {
  ...{ model_type: 'llama', vocab_size: 49_152, hidden_size: 1024, intermediate_size: 4096 },
  ...{ num_hidden_layers: 26, num_attention_heads: 16, num_key_value_heads: 4, rms_norm_eps: 1e-5 },
};
const largestBytes = settings.vocab_size * settings.hidden_size * (dtype === 'F32' ? 4 : 2);

/** Shapes of the weights by name. */
function shapes(): Record<string, number[]> {
  const { vocab_size: vocab, hidden_size: dims, intermediate_size: hidden } = settings;
  const layer = {
    input_layernorm: [dims],
    post_attention_layernorm: [dims],
    'self_attn.q_proj': [dims, dims],
    'self_attn.k_proj': [dims / 4, dims],
    'self_attn.v_proj': [dims / 4, dims],
    'self_attn.o_proj': [dims, dims],
    'mlp.gate_proj': [hidden, dims],
    'mlp.up_proj': [hidden, dims],
    'mlp.down_proj': [dims, hidden],
  };
  const layers = Array.from({ length: settings.num_hidden_layers }, (_, i) =>
    Object.entries(layer).map(([name, shape]) => [`model.layers.${i}.${name}`, shape] as const),
  );
  const ends = { 'model.embed_tokens': [vocab, dims], lm_head: [vocab, dims], 'model.norm': [dims] };
  return { ...ends, ...Object.fromEntries(layers.flat()) };
}

/** The published model; its values repeat after 4 million. */
function writeModel(): void {
  const layout = placeTensors(
    Object.entries(shapes()).map(([name, shape]) => ({ name: `${name}.weight`, shape, dtype })),
  );
  mkdirSync(model, { recursive: true });
  writeFileSync(join(model, 'config.json'), JSON.stringify(settings));
  const bytes = new Uint8Array(Float32Array.from({ length: 1 << 22 }, () => Math.random() - 0.5).buffer);
  const open = openSync(file, 'w');
  writeSync(open, encodePrefix(layout));
  for (let at = 0; at < layout.byteLength; at += bytes.length)
    writeSync(open, bytes, 0, Math.min(bytes.length, layout.byteLength - at));
  closeSync(open);
}

async function importOnce(): Promise<void> {
  const before = process.resourceUsage().maxRSS;
  const start = performance.now();
  await importPublished({
    ...{ folder: model, jobLogDir: run, dtype: dtype === 'F32' ? 'float32' : 'bfloat16' },
    ...{ maxLength: undefined, files: undefined, ignoredFields: [], ignoredTensors: [] },
  });
  const seconds = (performance.now() - start) / 1000;
  process.stdout.write(
    JSON.stringify({ seconds, addedMib: (process.resourceUsage().maxRSS - before) / 1024 }),
  );
}

/** Seconds of an act. */
function timed(act: () => void): number {
  const start = performance.now();
  act();
  return (performance.now() - start) / 1000;
}

function compare(): void {
  const size = statSync(file).size;
  const copy = join(flags.folder, 'copy.safetensors');
  const largest = largestBytes / MIB;
  process.stdout.write(
    `${(size / MIB).toFixed(0)} MiB of ${dtype}, the largest tensor ${largest.toFixed(0)} MiB\n`,
  );
  for (let round = 0; round < Number(flags.rounds); round++) {
    const copying = timed(() => {
      execFileSync('cp', [file, copy]);
      execFileSync('sync', [copy]);
    });
    rmSync(copy);
    const weights = new SafetensorsFile(file);
    const hashing = timed(() => weights.digest());
    weights.close();
    const once = ['--once', `--dtype=${dtype}`, `--folder=${flags.folder}`];
    const line = execFileSync(process.execPath, [...process.execArgv, process.argv[1]!, ...once]).toString();
    const { seconds, addedMib } = JSON.parse(line) as { seconds: number; addedMib: number };
    rmSync(run, { recursive: true });
    process.stdout.write(
      `copy and sync ${copying.toFixed(2)} s, read and hashed ${hashing.toFixed(2)} s, ` +
        `import ${seconds.toFixed(2)} s (${(seconds / copying).toFixed(2)} of copying), ` +
        `${addedMib.toFixed(0)} MiB (${(addedMib / largest).toFixed(2)} of the largest tensor)\n`,
    );
  }
}

/** The same by PyTorch, which keeps the whole model in memory and makes no digest. */
function comparePeers(): void {
  const script = fileURLToPath(new URL('peers/torch_import.py', import.meta.url));
  process.stdout.write(execFileSync(peersPython, [script, model, join(flags.folder, 'peer')]));
}

if (flags.once) await importOnce();
else {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) writeModel();
  compare();
  if (hasPeers && dtype === 'F32') comparePeers();
}
