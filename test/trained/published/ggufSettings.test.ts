/** @file Llama 3's rotations in GGUF: the factors that transformers computes, written and read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type GgufEntry, GgufFile, writeGguf } from '../../../src/checkpoints/index.js';
import { ggufArchitectures } from '../../../src/trained/published/gguf/ggufArchitectures.js';
import { ggufSettings, settingsEntries } from '../../../src/trained/published/gguf/ggufSettings.js';
import { temporaryDirectory } from '../../command.js';

/** By `scripts/record_rope_factors.py`. */
const recorded: {
  readonly rope_theta: number;
  readonly models: Readonly<
    Record<string, { readonly head_dim: number; readonly factor: number; readonly factors: number[] }>
  >;
} = JSON.parse(readFileSync(new URL('ropeFactors.json', import.meta.url), 'utf8'));

const llama = ggufArchitectures.find(({ family }) => family === 'llama')!;

/** Fields of config.json of a small network with the rotations of a model. */
const fieldsOf = (head_dim: number, factor: number) => ({
  ...{ hidden_size: 2 * head_dim, num_attention_heads: 2, num_key_value_heads: 1, head_dim },
  ...{ num_hidden_layers: 1, intermediate_size: 8, rms_norm_eps: 1e-5, vocab_size: 16 },
  max_position_embeddings: 131072,
  rope_parameters: {
    ...{ rope_type: 'llama3', rope_theta: recorded.rope_theta, factor },
    ...{ low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 },
  },
});

/** A file of the network with the given factors. */
function fileOf(entries: readonly GgufEntry[], factors: readonly number[]): GgufFile {
  const path = join(temporaryDirectory(), 'model.gguf');
  const values = Float32Array.from(factors);
  writeGguf(
    path,
    [['general.architecture', 'string', 'llama'], ...entries],
    [
      { name: 'token_embd.weight', shape: [16, 4], type: 'F32', values: () => new Float32Array(64) },
      { name: 'rope_freqs.weight', shape: [values.length], type: 'F32', values: () => values },
    ],
  );
  return new GgufFile(path);
}

test.each(Object.entries(recorded.models))(
  '%s: rotations have the factors of transformers, written and read',
  (_, { head_dim, factor, factors }) => {
    const fields = fieldsOf(head_dim, factor);
    const written = settingsEntries(llama, fields);
    expect(written.problems).toEqual([]);
    expect(written.factors!.length).toBe(factors.length);
    for (const [i, expected] of factors.entries())
      expect(Math.abs(written.factors![i]! / expected - 1)).toBeLessThan(1e-5);
    // Some wavelengths stay, some take the factor, and some are between.
    expect(factors.filter((value) => value > 1.01 && value < factor - 0.01).length).toBeGreaterThan(2);
    const { settings } = ggufSettings(fileOf(written.entries, factors), []);
    expect(settings.rope_parameters).toEqual(fields.rope_parameters);
    const other = factors.map((value, i) => (i === factors.length / 2 ? value * 1.01 : value));
    const file = fileOf(written.entries, other);
    expect(() => ggufSettings(file, [])).toThrow(
      `${file.path}: the network has no counterpart here, or the file is damaged:\n` +
        '  the factors of rope_freqs.weight are not those of Llama 3',
    );
  },
);
