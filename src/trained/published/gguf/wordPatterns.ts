/**
 * @file Ways to split texts into words before byte-level BPE: by their names in GGUF, and as parts of a tokenizer.json
 * (llama.cpp's src/llama-vocab.cpp).
 */

/** A way to split texts. */
interface WordPattern {
  /** Its names in `tokenizer.ggml.pre`, the one that is written first. */
  readonly names: readonly string[];
  readonly normalizer: object | null;
  readonly preTokenizer: object;
  /** Whether a word that is a token is not merged. */
  readonly ignoresMerges: boolean;
}

const bytes = (use_regex: boolean) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex,
});

/** Words by a pattern, then bytes. */
const split = (Regex: string) => ({
  type: 'Sequence',
  pretokenizers: [{ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false }, bytes(false)],
});

/** The pattern of GPT-4's kin. @param digits how many make a word */
const cl100k = (digits: string): string =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;

const patterns: readonly WordPattern[] = [
  {
    names: ['gpt-2', 'gpt2'],
    ...{ normalizer: null, preTokenizer: bytes(true), ignoresMerges: false },
  },
  {
    names: ['llama-bpe', 'llama-v3', 'llama3'],
    ...{ normalizer: null, preTokenizer: split(cl100k('{1,3}')), ignoresMerges: true },
  },
  {
    names: ['qwen2', 'deepseek-r1-qwen'],
    ...{ normalizer: { type: 'NFC' }, preTokenizer: split(cl100k('')), ignoresMerges: false },
  },
  {
    names: ['smollm'],
    normalizer: null,
    preTokenizer: {
      type: 'Sequence',
      pretokenizers: [{ type: 'Digits', individual_digits: true }, bytes(true)],
    },
    ignoresMerges: false,
  },
];

/** All names. */
export const wordPatternNames: readonly string[] = patterns.flatMap(({ names }) => names);

/** Undefined for a name that is not known. */
export const wordPattern = (name: string): WordPattern | undefined =>
  patterns.find(({ names }) => names.includes(name));

/** Settings that change no ids: offsets alone. */
const withoutOffsets = (part: unknown): string =>
  JSON.stringify(part, (key, value) => (key === 'trim_offsets' ? undefined : value));

/** The pattern's name for parts of a tokenizer.json; undefined where none has them. */
export function wordPatternName(normalizer: unknown, preTokenizer: unknown): string | undefined {
  const found = patterns.find(
    (each) =>
      withoutOffsets(sorted(each.normalizer)) === withoutOffsets(sorted(normalizer)) &&
      withoutOffsets(sorted(each.preTokenizer)) === withoutOffsets(sorted(preTokenizer)),
  );
  return found?.names[0];
}

/** A value with the fields of its objects in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
