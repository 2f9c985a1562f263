/** @file Tokenizer documents of every kind of part, texts that tell them apart, and random compositions. */
import fc from 'fast-check';

/** A part of a tokenizer.json. */
type Part = Readonly<Record<string, unknown>>;

/** The parts of a tokenizer.json; those left out are null. */
export interface Parts {
  readonly normalizer?: Part | null;
  readonly pre_tokenizer?: Part | null;
  readonly post_processor?: Part | null;
  readonly decoder?: Part | null;
  readonly model: Part;
  readonly added_tokens?: readonly Part[];
}

const added = (id: number, content: string, flags: object = {}): Part => ({
  ...{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
  ...flags,
});

const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABTé.,!?-\'"0123456789▁_ \nßäöü漢字'];
const WORDS = ['the', 'quick', 'brown', 'fox', 'cafe', 'café', 'is', 'do', 'not', "n't", '12', '...'];

const byPlace = (tokens: readonly string[]): Record<string, number> =>
  Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));

const bytePieces = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);

/** Merges that make words of letters, left to right; what is made may have a prefix within words, and a suffix at their ends. */
function bpe({
  prefix = '',
  suffix = '',
  ...fields
}: {
  prefix?: string;
  suffix?: string;
  [field: string]: unknown;
} = {}): Part {
  const tokens = ['<unk>', ...bytePieces];
  for (const letter of LETTERS)
    for (const start of ['', prefix]) for (const end of ['', suffix]) tokens.push(start + letter + end);
  const merges: [string, string][] = [];
  for (const word of [
    ...WORDS.filter((word) => [...word].every((letter) => LETTERS.includes(letter))),
    '▁t',
    '▁the',
  ]) {
    const letters = [...word];
    let made = letters[0]!;
    for (const [i, letter] of letters.slice(1).entries()) {
      const next = `${prefix}${letter}${i === letters.length - 2 ? suffix : ''}`;
      if (!merges.some(([a, b]) => a === made && b === next)) merges.push([made, next]);
      made += next.slice(prefix.length);
      tokens.push(made);
    }
  }
  return {
    ...{ type: 'BPE', dropout: null, unk_token: '<unk>', fuse_unk: false, byte_fallback: false },
    ...{
      continuing_subword_prefix: prefix || null,
      end_of_word_suffix: suffix || null,
      ignore_merges: false,
    },
    ...fields,
    ...{ vocab: byPlace(tokens), merges },
  };
}

const wordLevel: Part = {
  ...{ type: 'WordLevel', unk_token: '<unk>' },
  vocab: byPlace(['<unk>', ...WORDS, ...LETTERS, ...WORDS.map((word) => `▁${word}`)]),
};
const wordPiece: Part = {
  ...{
    type: 'WordPiece',
    unk_token: '<unk>',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
  },
  vocab: byPlace(['<unk>', ...WORDS, ...LETTERS, ...[...WORDS, ...LETTERS].map((word) => `##${word}`)]),
};
const unigram = (fields: object = {}, more: readonly string[] = []): Part => ({
  ...{ type: 'Unigram', unk_id: 0, byte_fallback: false },
  ...fields,
  // Scores that no two segmentations share.
  vocab: [...new Set(['<unk>', ...more, ...WORDS, ...WORDS.map((word) => `▁${word}`), ...LETTERS])].map(
    (piece, i) => [piece, i === 0 ? 0 : -2 - piece.length / 7 - Math.sqrt(i)],
  ),
});

const models: Readonly<Record<string, Part>> = {
  bpe: bpe(),
  'bpe with fused unknowns': bpe({ fuse_unk: true }),
  'bpe without unknowns': bpe({ unk_token: null }),
  'bpe with a prefix': bpe({ prefix: '##' }),
  'bpe with a suffix': bpe({ suffix: '</w>' }),
  'bpe with both': bpe({ prefix: '##', suffix: '</w>' }),
  'bpe with bytes': bpe({ byte_fallback: true, fuse_unk: true }),
  'bpe with whole words': bpe({ ignore_merges: true }),
  'word pieces': wordPiece,
  'word pieces of short words': { ...wordPiece, max_input_chars_per_word: 4 },
  words: wordLevel,
  unigrams: unigram(),
  'unigrams with bytes': unigram({ byte_fallback: true }, bytePieces),
};

const metaspace = (prepend_scheme: string, split = true): Part => ({
  ...{ type: 'Metaspace', replacement: '▁', prepend_scheme, split },
});
const replace = (pattern: object, content: string): Part => ({ type: 'Replace', pattern, content });
const behaviors = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'];
const gpt4 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const patterns = [
  { String: ' ' },
  { String: 'o' },
  { Regex: '\\s+' },
  { Regex: '\\w+|[^\\w\\s]+' },
  { Regex: '[aeiou]' },
  { Regex: gpt4 },
];

const normalizers: readonly Part[] = [
  ...[true, false].flatMap((lowercase) =>
    [true, false, null].map((strip_accents) => ({
      ...{ type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents, lowercase },
    })),
  ),
  ...['NFC', 'NFD', 'NFKC', 'NFKD', 'StripAccents', 'Lowercase', 'Nmt', 'ByteLevel'].map((type) => ({
    type,
  })),
  { type: 'Sequence', normalizers: [{ type: 'NFD' }, { type: 'StripAccents' }, { type: 'Lowercase' }] },
  { type: 'Strip', strip_left: true, strip_right: false },
  { type: 'Strip', strip_left: false, strip_right: true },
  { type: 'Prepend', prepend: '▁' },
  ...[replace({ String: ' ' }, '▁'), replace({ Regex: '\\s{2,}' }, ' '), replace({ Regex: '[\\d]+' }, '0')],
];
const preTokenizers: readonly Part[] = [
  ...['BertPreTokenizer', 'Whitespace', 'WhitespaceSplit', 'UnicodeScripts'].map((type) => ({ type })),
  ...behaviors.flatMap((behavior) => [
    { type: 'Punctuation', behavior },
    ...patterns.flatMap((pattern) =>
      [false, true].map((invert) => ({ type: 'Split', pattern, behavior, invert })),
    ),
  ]),
  ...[true, false].map((individual_digits) => ({ type: 'Digits', individual_digits })),
  ...['always', 'first', 'never'].flatMap((scheme) => [metaspace(scheme), metaspace(scheme, false)]),
  { type: 'CharDelimiterSplit', delimiter: '-' },
  { type: 'FixedLength', length: 3 },
  { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: false },
  { type: 'Sequence', pretokenizers: [{ type: 'Whitespace' }, { type: 'Digits', individual_digits: true }] },
];
const template = {
  type: 'TemplateProcessing',
  ...{ single: [{ Sequence: { id: 'A', type_id: 0 } }], special_tokens: {} },
  pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
};
const postProcessors: readonly Part[] = [
  template,
  { type: 'BertProcessing', sep: ['.', 1], cls: ['!', 2] },
  { type: 'RobertaProcessing', sep: ['.', 1], cls: ['!', 2], trim_offsets: true, add_prefix_space: false },
  { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
  { type: 'Sequence', processors: [template] },
];
const llamaDecoders = [
  replace({ String: '▁' }, ' '),
  ...[{ type: 'ByteFallback' }, { type: 'Fuse' }],
  { type: 'Strip', content: ' ', start: 1, stop: 0 },
];
const decoders: readonly Part[] = [
  { type: 'BPEDecoder', suffix: '</w>' },
  { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
  ...[true, false].map((cleanup) => ({ type: 'WordPiece', prefix: '##', cleanup })),
  ...[metaspace('always'), metaspace('never')],
  { type: 'CTC', pad_token: '<unk>', word_delimiter_token: '▁', cleanup: true },
  ...[{ type: 'Fuse' }, { type: 'ByteFallback' }],
  { type: 'Strip', content: ' ', start: 1, stop: 0 },
  replace({ String: '▁' }, ' '),
  { type: 'Sequence', decoders: llamaDecoders },
];

/** Special tokens found in many ways, behind a model's vocabulary; its own unknown is one of them. */
function addedTo(model: Part): Part[] {
  const size = Array.isArray(model.vocab) ? model.vocab.length : Object.keys(model.vocab as object).length;
  return [
    added(0, '<unk>'),
    added(size, '<end>'),
    added(size + 1, 'fox', { special: false, single_word: true }),
    added(size + 2, '<l>', { lstrip: true }),
    added(size + 3, '<r>', { rstrip: true, normalized: true, special: false }),
  ]
    .map((token) => (token.content === 'fox' ? { ...token, id: idIn(model, 'fox') } : token))
    .map(renumbered(size));
}

function idIn({ vocab }: Part, token: string): number {
  return Array.isArray(vocab)
    ? vocab.findIndex(([piece]) => piece === token)
    : ((vocab as Record<string, number>)[token] ?? -1);
}

/** Ids behind a vocabulary without gaps. */
function renumbered(size: number): (token: Part) => Part {
  let next = size;
  return (token) => (Number(token.id) >= 0 && Number(token.id) < size ? token : { ...token, id: next++ });
}

/** The contents of a tokenizer.json. */
export function documentOf({ model, ...parts }: Parts): string {
  const none = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null };
  const head = { version: '1.0', truncation: null, padding: null, added_tokens: [] };
  return JSON.stringify({ ...head, ...none, ...parts, model });
}

const titled = (kind: string, part: Part): string =>
  `${kind} ${JSON.stringify(part).replace(/["{}]/g, '').slice(0, 90)}`;
const whitespace = { type: 'WhitespaceSplit' };

/** Documents by name: each model with and without added tokens and words, and each other part with a model that shows it. */
export const documents: readonly (readonly [name: string, contents: string])[] = [
  ...Object.entries(models).flatMap(([name, model]) => [
    [name, documentOf({ model })] as const,
    [
      `${name} in words`,
      documentOf({ model, pre_tokenizer: whitespace, added_tokens: addedTo(model) }),
    ] as const,
  ]),
  ...normalizers.map(
    (normalizer) =>
      [titled('normalizer', normalizer), documentOf({ model: models.bpe!, normalizer })] as const,
  ),
  ...preTokenizers.map(
    (pre_tokenizer, i) =>
      [
        titled('pre-tokenizer', pre_tokenizer),
        documentOf({ model: i % 2 === 0 ? wordLevel : wordPiece, pre_tokenizer }),
      ] as const,
  ),
  ...postProcessors.map(
    (post_processor) =>
      [titled('post-processor', post_processor), documentOf({ model: wordLevel, post_processor })] as const,
  ),
  ...decoders.map(
    (decoder) =>
      [
        titled('decoder', decoder),
        documentOf({
          model: unigram({ byte_fallback: true }, bytePieces),
          pre_tokenizer: metaspace('always'),
          decoder,
        }),
      ] as const,
  ),
];

/** Texts on which tokenizers differ. */
export const texts: readonly string[] = [
  ...[
    '',
    ' ',
    '  ',
    '\n',
    '\t',
    ' \n ',
    'a',
    ' a',
    'a ',
    ' a ',
    'the',
    'The quick brown fox',
    ' the  quick   brown fox ',
  ],
  ...[
    'café',
    'cafe\u0301',
    'CAFÉ',
    'naïve café',
    'thecafé',
    'ß',
    'STRASSE straße',
    'İstanbul',
    'ΣΊΣΥΦΟΣ',
    'ﬁne',
    'Å',
  ],
  ...[
    'don’t',
    "don't",
    "do n't",
    "it's 12 o'clock",
    'hello, world!',
    '...',
    'a.b.c',
    '(a)[b]{c}',
    '¿qué?',
    'a—b',
    '「漢字」',
  ],
  ...[
    '漢字',
    'the漢字fox',
    '\u{20000}a',
    'こんにちは',
    '안녕',
    'привет мир',
    'שלום',
    'नमस्ते',
    'ไทย',
    '٣٤',
    '½ ²',
    'Ⅳ',
  ],
  ...[
    '😀',
    'a😀b',
    '👨‍👩‍👧',
    '\u0301a',
    'a\u200bb',
    'a\u00a0b',
    'a\u3000b',
    'a\u0085b',
    '\ufeffa',
    'a\0b',
    '\ufffd',
    '\u00ad',
  ],
  ...[
    '<unk>',
    'a<end>b',
    ' <l> <r> ',
    'fox foxes fox.',
    '<end',
    '▁the',
    '__proto__',
    '12 345-6789',
    'a\r\nb\rc',
    'x'.repeat(120),
  ],
];

const anyOf = (parts: readonly Part[]) => fc.constantFrom(...parts);

/** None, one, or a sequence of several. */
const composed = (parts: readonly Part[], list: string): fc.Arbitrary<Part | null> =>
  fc.oneof(
    fc.constant(null),
    anyOf(parts),
    fc.array(anyOf(parts), { maxLength: 3 }).map((some) => ({ type: 'Sequence', [list]: some })),
  );

/** Random documents of all parts. */
export const anyDocument: fc.Arbitrary<string> = fc
  .record({
    model: fc.constantFrom(...Object.values(models)),
    normalizer: composed(normalizers, 'normalizers'),
    pre_tokenizer: composed(preTokenizers, 'pretokenizers'),
    post_processor: composed(postProcessors, 'processors'),
    decoder: composed(decoders, 'decoders'),
    isAdded: fc.boolean(),
  })
  .map(({ isAdded, ...parts }) =>
    documentOf({ ...parts, added_tokens: isAdded ? addedTo(parts.model) : [] }),
  );
