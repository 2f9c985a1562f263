/** @file Settings of a network in GGUF's metadata, as config.json has them. */
import type { GgufEntry, GgufFile, GgufValue } from '../../../checkpoints/index.js';
import { ConfigError } from '../../../hparams/index.js';
import { rotationsOf } from '../../../models/index.js';
import { type GgufArchitecture, ggufArchitectures } from './ggufArchitectures.js';

/** Rotations of Llama 3, which files hold as a factor for each frequency alone: the context that the models came from. */
const LLAMA3 = { low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };

/** Keys without a say in the network's numbers. */
const HARMLESS =
  /^(vocab_size|tensor_data_layout|rope\.scaling\.(finetuned|original_context_length)|attention\.causal)$/;

export interface GgufSettings {
  readonly architecture: GgufArchitecture;
  /** Contents of config.json. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The least digits that give a float32. */
function shortest(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}

/**
 * The settings of a file.
 *
 * @param ignored keys that may be passed over, though they are not read
 * @throws ConfigError for an architecture that has no counterpart, and for keys that are missing or not read, with all of them
 */
export function ggufSettings(file: GgufFile, ignored: readonly string[]): GgufSettings {
  const { metadata, path } = file;
  const name = metadata.get('general.architecture');
  const reads = new KeyReader(file, `${name}.`);
  const hasExperts = reads.number('expert_count', true) !== undefined;
  const architecture = ggufArchitectures.find(
    (each) => each.architecture === name && (each.family === 'mixtral') === hasExperts,
  );
  if (architecture === undefined) {
    const known = [...new Set(ggufArchitectures.map((each) => each.architecture))].join(', ');
    throw new ConfigError(
      `${path}: general.architecture is ${shown(name)}${hasExperts ? ' with experts' : ''}: expected one of ${known}.`,
    );
  }
  const settings: Record<string, unknown> = {
    architectures: [architecture.className],
    model_type: architecture.family,
    vocab_size: file.shapeOf('token_embd.weight')?.[0],
  };
  for (const [field, key, kind] of architecture.fields) {
    const isOptional = key === 'attention.head_count_kv' || key === 'attention.key_length';
    const value = reads.number(key, isOptional);
    if (value !== undefined) settings[field] = kind === 'f32' ? shortest(value) : value;
  }
  for (const [field, tensor] of Object.entries(architecture.flags))
    settings[field] = file.shapeOf(tensor) !== undefined;
  if (architecture.defaultTheta !== undefined) Object.assign(settings, rotaryOf(file, reads, settings));
  settings.tie_word_embeddings = file.shapeOf('output.weight') === undefined;
  settings.bos_token_id = metadata.get('tokenizer.ggml.bos_token_id') ?? null;
  settings.eos_token_id = metadata.get('tokenizer.ggml.eos_token_id') ?? null;
  settings.dtype = 'float32';
  reads.finish(ignored);
  return { architecture, settings };
}

/** Rotations of a file. */
function rotaryOf(
  file: GgufFile,
  reads: KeyReader,
  { hidden_size, num_attention_heads, head_dim }: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const depth = Number(head_dim ?? Number(hidden_size) / Number(num_attention_heads));
  for (const key of ['rope.dimension_count', 'attention.value_length']) reads.equal(key, depth);
  const rope_theta = shortest(reads.number('rope.freq_base', true) ?? 10_000);
  const kind = reads.text('rope.scaling.type') ?? 'none';
  const factor = shortest(reads.number('rope.scaling.factor', true) ?? 1);
  if (file.shapeOf('rope_freqs.weight') !== undefined)
    return {
      rope_parameters: { rope_type: 'llama3', rope_theta, ...llama3Of(file, reads, depth, rope_theta) },
    };
  if (kind === 'none') return { rope_parameters: { rope_type: 'default', rope_theta } };
  if (kind === 'linear') return { rope_parameters: { rope_type: 'linear', rope_theta, factor } };
  reads.problems.push(`rope.scaling.type is ${shown(kind)}, which has no counterpart here`);
  return {};
}

/** The settings of Llama 3's rotations that give a file's factors. */
function llama3Of(file: GgufFile, reads: KeyReader, depth: number, theta: number): Record<string, number> {
  const factors = new Float32Array(file.shapeOf('rope_freqs.weight')!.reduce((a, b) => a * b, 1));
  file.elements('rope_freqs.weight').fill(factors, 0);
  const factor = shortest(Math.max(...factors));
  const expected = llama3Factors({ ...LLAMA3, factor }, depth, theta);
  const isKnown =
    factors.length === expected.length &&
    factors.every((value, i) => Math.abs(value / expected[i]! - 1) < 1e-5);
  if (!isKnown) reads.problems.push('the factors of rope_freqs.weight are not those of Llama 3');
  return { ...LLAMA3, factor };
}

/** The factors of the wavelengths (transformers' rope type llama3). @param depth of a head */
function llama3Factors(
  given: {
    readonly factor: number;
    readonly low_freq_factor: number;
    readonly high_freq_factor: number;
    readonly original_max_position_embeddings: number;
  },
  depth: number,
  theta: number,
): number[] {
  const {
    factor,
    low_freq_factor: low,
    high_freq_factor: high,
    original_max_position_embeddings: length,
  } = given;
  return Array.from({ length: depth / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * theta ** ((2 * i) / depth);
    if (wavelength < length / high) return 1;
    if (wavelength > length / low) return factor;
    const smooth = (length / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}

const shown = (value: GgufValue | undefined): string =>
  value === undefined ? 'absent' : JSON.stringify(value).slice(0, 80);

/** Reads keys of an architecture, and knows those that nothing has read. */
class KeyReader {
  readonly problems: string[] = [];
  readonly #read = new Set<string>();

  constructor(
    private readonly file: GgufFile,
    private readonly prefix: string,
  ) {}

  /** A number; of an array for each layer, that of all. */
  number(key: string, isOptional = false): number | undefined {
    const value = this.#value(key);
    if (value === undefined && isOptional) return undefined;
    if (typeof value === 'number') return value;
    if (value instanceof Float64Array && value.length > 0 && value.every((each) => each === value[0]))
      return value[0];
    this.problems.push(`${this.prefix}${key}: expected a number, found ${shown(value)}`);
    return undefined;
  }

  text(key: string): string | undefined {
    const value = this.#value(key);
    if (value === undefined || typeof value === 'string') return value;
    this.problems.push(`${this.prefix}${key}: expected a text, found ${shown(value)}`);
    return undefined;
  }

  /** Checks a number that others imply. */
  equal(key: string, expected: number): void {
    const value = this.number(key, true);
    if (value !== undefined && value !== expected)
      this.problems.push(`${this.prefix}${key} is ${value}: expected ${expected}, the depth of a head`);
  }

  /** @throws ConfigError with all problems, keys that are not read among them */
  finish(ignored: readonly string[]): void {
    for (const [key, value] of this.file.metadata) {
      if (!key.startsWith(this.prefix) || this.#read.has(key) || ignored.includes(key)) continue;
      if (!HARMLESS.test(key.slice(this.prefix.length)))
        this.problems.push(
          `${key} is ${shown(value)}: the key is not read, and may change the network's numbers`,
        );
    }
    if (this.problems.length > 0)
      throw new ConfigError(
        `${this.file.path}: the network has no counterpart here, or the file is damaged:\n${this.problems.map((line) => `  ${line}`).join('\n')}`,
      );
  }

  #value(key: string): GgufValue | undefined {
    this.#read.add(this.prefix + key);
    return this.file.metadata.get(this.prefix + key);
  }
}

/** Settings that other programs read otherwise, or not at all, by the value that they must have. */
const EXPECTED: Readonly<Record<string, unknown>> = {
  sliding_window: null,
  use_sliding_window: false,
  partial_rotary_factor: 1,
};

/**
 * The metadata of settings.
 *
 * @param settings of config.json, with the family's defaults
 * @returns the entries, the factors of `rope_freqs.weight` where rotations have them, and settings that GGUF has no key of
 */
export function settingsEntries(
  { architecture, fields, defaultTheta }: GgufArchitecture,
  settings: Readonly<Record<string, unknown>>,
): { readonly entries: GgufEntry[]; readonly factors?: number[]; readonly problems: string[] } {
  const derived: Readonly<Record<string, unknown>> = {
    num_key_value_heads: settings.num_attention_heads,
    head_dim: Number(settings.hidden_size) / Number(settings.num_attention_heads),
    n_inner: 4 * Number(settings.n_embd),
  };
  const sizeOf = (field: string): number => Number(settings[field] ?? derived[field]);
  const entries = fields.map(
    ([field, key, kind]): GgufEntry => [`${architecture}.${key}`, kind, sizeOf(field)],
  );
  entries.push([`${architecture}.vocab_size`, 'u32', sizeOf('vocab_size')]);
  const problems = Object.entries(EXPECTED).flatMap(([field, expected]) => {
    const value = settings[field] ?? expected;
    // A window that is not used.
    const isUnused = field === 'sliding_window' && settings.use_sliding_window === false;
    return value === expected || isUnused ? [] : [`${field} is ${JSON.stringify(value)}`];
  });
  if (defaultTheta === undefined) return { entries, problems };
  const { kind, ...rope } = rotationsOf(settings);
  const theta = rope.rope_theta ?? Number(settings.rope_theta ?? defaultTheta);
  const depth = sizeOf('head_dim');
  entries.push(
    [`${architecture}.attention.value_length`, 'u32', depth],
    [`${architecture}.rope.dimension_count`, 'u32', depth],
    [`${architecture}.rope.freq_base`, 'f32', theta],
  );
  if ((rope.partial_rotary_factor ?? 1) !== 1)
    problems.push(`partial_rotary_factor is ${rope.partial_rotary_factor}`);
  if (kind === 'yarn') problems.push('rope_type is yarn');
  if (kind === 'linear')
    entries.push(
      [`${architecture}.rope.scaling.type`, 'string', kind],
      [`${architecture}.rope.scaling.factor`, 'f32', rope.factor],
    );
  if (kind !== 'llama3') return { entries, problems };
  const { original_max_position_embeddings = LLAMA3.original_max_position_embeddings } = rope;
  return {
    entries,
    problems,
    factors: llama3Factors({ ...rope, original_max_position_embeddings }, depth, theta),
  };
}
