/** @file Models as GGUF files: the same parameters and tokens both ways, llama.cpp's tokens, and models that have no form there. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GgufFile, SafetensorsFile, writeGguf } from '../../../src/checkpoints/index.js';
import { build } from '../../../src/hparams/index.js';
import { PretrainedTokenizer } from '../../../src/inputs/index.js';
import { exportGguf, importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { ggufSettings } from '../../../src/trained/published/gguf/ggufSettings.js';
import { tokenizerFiles } from '../../../src/trained/published/gguf/ggufTokenizer.js';
import { tokenizerEntries } from '../../../src/trained/published/gguf/tokenizerEntries.js';
import { temporaryDirectory } from '../../command.js';

const published = join(import.meta.dirname, '../../fixtures/published');
const { exports: recorded } = JSON.parse(readFileSync(join(published, 'gguf.json'), 'utf8')) as {
  exports: Record<string, { sha256: string; prompt: number[]; tokens: number[] }>;
};

async function imported(folder: string, ignoredFields: readonly string[] = []): Promise<string> {
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields, ignoredTensors: [] },
  });
  return jobLogDir;
}

/** The parameters of a run by path. */
function paramsIn(jobLogDir: string): Record<string, ArrayLike<number | bigint>> {
  const file = new SafetensorsFile(join(jobLogDir, 'checkpoints/checkpoint_00000000/state.safetensors'));
  const names = file.names.filter((name) => name.startsWith('params/'));
  return Object.fromEntries(names.map((name) => [name, file.read(name)]));
}

/** The likeliest tokens behind each beginning of ids from a place on. */
async function likeliest(run: TrainedRun, ids: readonly number[], from: number): Promise<number[]> {
  const { logits } = await run.predict({
    ids: { shape: [1, ids.length], dtype: 'int32', data: Int32Array.from(ids) },
  });
  const size = logits!.shape[2]!;
  return ids.slice(from).map((_, i) => {
    const at = (from + i - 1) * size;
    const row = Array.from(logits!.data.subarray(at, at + size), Number);
    return row.indexOf(Math.max(...row));
  });
}

/** A copy of a fixture with other fields of its config.json. */
function changed(name: string, fields: Readonly<Record<string, unknown>>): string {
  const folder = join(temporaryDirectory(), 'model');
  cpSync(join(published, name), folder, { recursive: true });
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...fields }));
  return folder;
}

const llama3 = {
  rope_parameters: {
    ...{ rope_type: 'llama3', rope_theta: 1e9, factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
    original_max_position_embeddings: 8192,
  },
};

test.each([
  ['llama', () => changed('llama', { max_position_embeddings: 68 })],
  ['gpt2', () => changed('gpt2', {})],
  ['llama with rotations of Llama 3', () => changed('llama', llama3)],
  ['mixtral', () => changed('families/mixtral', { sliding_window: null, head_dim: 4 })],
  [
    'qwen2',
    () =>
      changed('families/qwen2', {
        use_sliding_window: false,
        layer_types: null,
        head_dim: 4,
        max_position_embeddings: 68,
      }),
  ],
  [
    'qwen3',
    () => changed('families/qwen3', { use_sliding_window: false, attention_bias: true, layer_types: null }),
  ],
])('%s has the same parameters and settings behind its export and import', async (name, folder) => {
  const first = await imported(folder());
  const run = await loadRun(first, { engine: 'eager' });
  const out = join(temporaryDirectory(), 'model.gguf');
  await exportGguf(run, { directory: first, out });
  const expected = recorded[name];
  if (expected !== undefined) {
    expect(createHash('sha256').update(readFileSync(out)).digest('hex')).toBe(expected.sha256);
    expect(await likeliest(run, [...expected.prompt, ...expected.tokens], expected.prompt.length)).toEqual(
      expected.tokens,
    );
  }
  await run.dispose();
  const second = await imported(out);
  expect(paramsIn(second)).toEqual(paramsIn(first));
  const again = await loadRun(second, { engine: 'eager' });
  expect(again.document.task.model).toEqual(run.document.task.model);
  await again.dispose();
});

test('runs continue texts as llama.cpp does with their exports', async () => {
  const { prompt, tokens } = recorded.gpt2!;
  const run = await loadRun(await imported(join(published, 'gpt2')), { engine: 'eager' });
  const text = run.tokenizer.decode(prompt);
  expect([...run.tokenizer.encode(text)]).toEqual(prompt);
  const continued = await run.generate(text, { maxTokens: tokens.length });
  expect(continued).toBe(run.tokenizer.decode(tokens));
  await run.dispose();
});

/** A file without tensors. */
function fileOf(entries: Parameters<typeof writeGguf>[1]): GgufFile {
  const path = join(temporaryDirectory(), 'model.gguf');
  writeGguf(path, entries, []);
  return new GgufFile(path);
}

const encoded = (folder: string, texts: readonly string[]): number[][] => {
  const tokenizer = build(PretrainedTokenizer.config({ file: join(folder, 'tokenizer.json') }));
  return texts.map((text) => [...tokenizer.encode(text)]);
};

const TEXTS = ['one two  three', "it's 1234, isn't it?", ' ünïcode\n\n', 'a<s>b'];

test('a byte-level tokenizer goes through GGUF with its template', () => {
  const folder = join(temporaryDirectory(), 'tokenizer');
  cpSync(join(published, 'gpt2'), folder, { recursive: true });
  writeFileSync(join(folder, 'chat_template.jinja'), '{{ messages[0].content }}');
  const file = fileOf(tokenizerEntries(folder, 260 + 30));
  const again = join(temporaryDirectory(), 'again');
  mkdirSync(again);
  for (const [name, text] of Object.entries(tokenizerFiles(file))) writeFileSync(join(again, name), text);
  expect(encoded(again, TEXTS)).toEqual(encoded(folder, TEXTS));
  expect(readFileSync(join(again, 'chat_template.jinja'), 'utf8')).toBe('{{ messages[0].content }}');
});

test('a tokenizer of SentencePiece is merged by its scores, and keeps its ids through GGUF', () => {
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
  const pieces = ['\u2581', 'o', 'n', 'e', 't', 'w', 'on', 'tw', '\u2581on', '\u2581one', 'two', 'ne'];
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...pieces];
  const kinds = [2, 3, 3, ...bytes.map(() => 6), ...pieces.map(() => 1)];
  // 'ne' merges before 'on'.
  const scores = tokens.map((token, i) => (token === 'ne' ? -1 : -i));
  const file = fileOf([
    ['tokenizer.ggml.model', 'string', 'llama'],
    ['tokenizer.ggml.tokens', 'string', tokens],
    ['tokenizer.ggml.scores', 'f32', scores],
    ['tokenizer.ggml.token_type', 'i32', kinds],
    ['tokenizer.ggml.bos_token_id', 'u32', 1],
    ['tokenizer.ggml.eos_token_id', 'u32', 2],
  ]);
  const folders = [0, 1].map(() => {
    const folder = join(temporaryDirectory(), 'tokenizer');
    mkdirSync(folder);
    return folder;
  });
  const write = (folder: string, from: GgufFile): void => {
    for (const [name, text] of Object.entries(tokenizerFiles(from))) writeFileSync(join(folder, name), text);
  };
  write(folders[0]!, file);
  const id = (...texts: string[]): number[] => texts.map((text) => tokens.indexOf(text));
  const expected = [id('\u2581', 'o', 'ne', '\u2581', 'two'), id('\u2581', '<0xC3>', '<0xA9>')];
  expect(encoded(folders[0]!, ['one two', 'é'])).toEqual(expected);
  write(folders[1]!, fileOf(tokenizerEntries(folders[0]!, tokens.length)));
  expect(encoded(folders[1]!, [...TEXTS, 'one two'])).toEqual(encoded(folders[0]!, [...TEXTS, 'one two']));
  const settings = JSON.parse(readFileSync(join(folders[1]!, 'tokenizer_config.json'), 'utf8'));
  expect(settings).toEqual({ bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>', add_bos_token: true });
});

test('files that have no counterpart are refused with every reason', () => {
  const settingsOf = (entries: Parameters<typeof writeGguf>[1]): string => {
    const file = fileOf(entries);
    try {
      ggufSettings(file, []);
    } catch (error) {
      return (error as Error).message.replace(file.path, 'FILE');
    }
    return 'none';
  };
  expect(settingsOf([['general.architecture', 'string', 'mamba']])).toBe(
    'FILE: general.architecture is "mamba": expected one of llama, qwen2, qwen3, gpt2.',
  );
  expect(
    settingsOf([
      ['general.architecture', 'string', 'llama'],
      ...(['embedding_length', 'block_count', 'feed_forward_length'] as const).map(
        (key): Parameters<typeof writeGguf>[1][number] => [`llama.${key}`, 'u32', 16],
      ),
      ['llama.attention.head_count', 'u32', 4],
      ['llama.attention.head_count_kv', 'u32', [4, 2]],
      ['llama.rope.dimension_count', 'u32', 2],
      ['llama.rope.scaling.type', 'string', 'longrope'],
      ['llama.logit_scale', 'f32', 0.5],
      ['llama.vocab_size', 'u32', 5],
    ]),
  ).toBe(
    [
      'FILE: the network has no counterpart here, or the file is damaged:',
      '  llama.attention.head_count_kv: expected a number, found {"0":4,"1":2}',
      '  llama.context_length: expected a number, found absent',
      '  llama.attention.layer_norm_rms_epsilon: expected a number, found absent',
      '  llama.rope.dimension_count is 2: expected 4, the depth of a head',
      '  rope.scaling.type is "longrope", which has no counterpart here',
      "  llama.logit_scale is 0.5: the key is not read, and may change the network's numbers",
    ].join('\n'),
  );
  const words = fileOf([
    ['tokenizer.ggml.model', 'string', 'gpt2'],
    ['tokenizer.ggml.pre', 'string', 'tekken'],
    ['tokenizer.ggml.tokens', 'string', ['a']],
  ]);
  expect(() => tokenizerFiles(words)).toThrow(
    `${words.path}: tokenizer.ggml.pre is 'tekken', a way to split words that is not known: expected one of gpt-2, gpt2, llama-bpe, llama-v3, llama3, qwen2, deepseek-r1-qwen, smollm.`,
  );
});

test('networks that GGUF has no form of are not exported', async () => {
  const refusal = async (folder: string): Promise<string> => {
    const directory = await imported(folder);
    const run = await loadRun(directory, { engine: 'eager' });
    const out = join(temporaryDirectory(), 'model.gguf');
    const message = await exportGguf(run, { directory, out }).then(
      () => 'none',
      (error: Error) => error.message.replace(directory, 'RUN'),
    );
    await run.dispose();
    return message;
  };
  expect(await refusal(join(published, 'families/mixtral'))).toBe(
    'mixtral has no form in GGUF:\n  sliding_window is 9, which GGUF has no key of here.',
  );
  expect(await refusal(join(published, 'families/gemma2'))).toBe(
    'RUN/published/config.json: GGUF files are written of llama, mixtral, qwen2, qwen3, gpt2, not of gemma2.',
  );
});
