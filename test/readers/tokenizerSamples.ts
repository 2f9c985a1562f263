/** @file Tokenizers of each model, with the ids of random texts, for the Rust library to check. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { build } from '../../src/hparams/index.js';
import { PretrainedTokenizer, resolveFiles } from '../../src/inputs/index.js';
import { trainedJson } from '../inputs/text/vocabularies/trainedBpe.js';

const SPECIAL = ['<|endoftext|>', '<|endoftext|>s'];
const VOCAB_SIZE = 4096;

const part = fc.oneof(
  fc.constantFrom(' ', '  ', '\n', '\t', "'s", "'ll", "'", ' interface', 'string', SPECIAL[0]!, '<|end'),
  fc.constantFrom('\u0085', '\ufeff', '\u3000', '\u0301', '😀', '漢字', 'Größe', '½', '٣', '0042', '▁'),
  fc.string({ unit: 'grapheme', maxLength: 4 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 8 }),
);

/** The most frequent words of documents, longest runs of letters and digits. */
function frequentWords(documents: readonly string[], count: number): [word: string, count: number][] {
  const counts = new Map<string, number>();
  for (const [word] of documents.join('\n').matchAll(/[\p{L}\p{N}]+/gu))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, count);
}

const added = (contents: readonly string[]) =>
  contents.map((content, id) => {
    const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
    return { id, content, ...flags };
  });

const common = { version: '1.0', truncation: null, padding: null, post_processor: null };

/** A Unigram model of words, their beginnings and characters, as SentencePiece writes them. */
function unigramJson(documents: readonly string[]): string {
  const words = frequentWords(documents, 1500);
  const pieces = new Map<string, number>();
  for (const [word, count] of words)
    for (let length = 2; length <= word.length; length++)
      for (const piece of [word.slice(0, length), `▁${word.slice(0, length)}`])
        pieces.set(piece, (pieces.get(piece) ?? 0) + count);
  const characters = [...new Set(documents.join(''))].filter((character) => !/\s/.test(character));
  for (const character of ['▁', ...characters]) pieces.set(character, (pieces.get(character) ?? 0) + 1);
  const special = ['<unk>', ...SPECIAL];
  const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true };
  // Scores that no two segmentations share.
  const scored = [...pieces].map(([piece, count], i) => [piece, Math.log(count / 1e7) - i * 1e-6]);
  return JSON.stringify({
    ...common,
    added_tokens: added(special),
    normalizer: { type: 'NFKC' },
    ...{ pre_tokenizer: metaspace, decoder: metaspace },
    model: {
      type: 'Unigram',
      unk_id: 0,
      byte_fallback: false,
      vocab: [...special.map((piece) => [piece, 0]), ...scored],
    },
  });
}

/** A WordPiece model of words and their ends, as BERT has it. */
function wordPieceJson(documents: readonly string[]): string {
  const special = ['[UNK]', ...SPECIAL];
  const tokens = new Set(special);
  for (const [word] of frequentWords(documents, 1500)) {
    const lower = word.toLowerCase();
    tokens.add(lower);
    for (let at = 1; at < lower.length; at++) tokens.add(`##${lower.slice(at)}`);
  }
  for (const character of new Set(documents.join('').toLowerCase()))
    if (!/\s/.test(character)) tokens.add(character).add(`##${character}`);
  return JSON.stringify({
    ...common,
    added_tokens: added(special),
    normalizer: {
      type: 'BertNormalizer',
      ...{ clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
    model: {
      ...{ type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##' },
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries([...tokens].map((token, id) => [token, id])),
    },
  });
}

/** Writes each tokenizer.json, and the texts with their ids: with special tokens in them found, and as text. */
export function writeTokenizerSamples(directory: string): void {
  const documents = resolveFiles(['pkg:typescript/lib/lib.*.d.ts']).map(({ path }) =>
    readFileSync(path, 'utf8'),
  );
  const random = fc.sample(fc.array(part, { maxLength: 30 }), { numRuns: 5000, seed: 1 });
  // Words beyond the length from which merges are queued.
  const long = ['a', 'interface', ' ', '/', 'é'].map((unit) => unit.repeat(500));
  const texts = [...random.map((parts) => parts.join('')), ...long, ...documents.slice(0, 5)];
  // Hugging Face's library takes its time.
  const fewer = [...texts.slice(0, 1500), ...long, documents[0]!];
  const models = {
    bpe: trainedJson(documents, VOCAB_SIZE, SPECIAL),
    unigram: unigramJson(documents),
    wordpiece: wordPieceJson(documents),
  };
  mkdirSync(directory, { recursive: true });
  for (const [name, contents] of Object.entries(models)) {
    const file = join(directory, `${name}.json`);
    writeFileSync(file, contents);
    const [plain, asText] = [false, true].map((specialTokensAsText) =>
      build(PretrainedTokenizer.config({ file, specialTokensAsText })),
    );
    const samples = (name === 'bpe' ? texts : fewer).map((text) => ({
      text,
      ids: [...plain!.encode(text)],
      idsAsText: [...asText!.encode(text)],
    }));
    writeFileSync(join(directory, `${name}.samples.json`), JSON.stringify(samples));
  }
  writeFileSync(
    join(directory, 'training.json'),
    JSON.stringify({ vocabSize: VOCAB_SIZE, specialTokens: SPECIAL, documents }),
  );
}
