/** @file The tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json. */
import type { GgufFile, GgufValue } from '../../../checkpoints/index.js';
import { ConfigError } from '../../../hparams/index.js';
import { wordPattern, wordPatternNames } from './wordPatterns.js';

/** Kinds of tokens in `tokenizer.ggml.token_type`. */
export const TOKEN_KINDS = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** The character that stands for a space in SentencePiece. */
export const SPACE = '\u2581';

/** Contents of files by name. */
type Files = Readonly<Record<string, string>>;

/** The vocabulary of a file. */
interface Vocabulary {
  readonly tokens: readonly string[];
  readonly kinds: ArrayLike<number>;
}

/**
 * The files of a tokenizer, and of its chat template; none where the file has no vocabulary.
 *
 * @throws ConfigError for a tokenizer that has no counterpart, and for a damaged one
 */
export function tokenizerFiles(file: GgufFile): Files {
  const read = new TokenizerReader(file);
  const template = read.optional('tokenizer.chat_template', 'string');
  const model = read.optional('tokenizer.ggml.model', 'string') ?? 'none';
  const files: Record<string, string> = template === undefined ? {} : { 'chat_template.jinja': template };
  if (model === 'none' || model === 'no_vocab') return files;
  if (model !== 'gpt2' && model !== 'llama')
    throw read.problem('tokenizer.ggml.model', `is '${model}': expected gpt2 or llama`);
  const tokens = read.texts('tokenizer.ggml.tokens');
  const kinds =
    read.numbers('tokenizer.ggml.token_type', tokens.length) ?? tokens.map(() => TOKEN_KINDS.normal);
  const vocabulary = { tokens, kinds };
  const parts = model === 'gpt2' ? byteLevelParts(read, vocabulary) : sentencePieceParts(read, vocabulary);
  const special = (role: string): string | undefined => {
    const id = read.optional(`tokenizer.ggml.${role}_token_id`, 'number');
    return id === undefined ? undefined : tokens[id];
  };
  const [bos_token, eos_token] = [special('bos'), special('eos')];
  const unk_token = special('unknown');
  const pad_token = special('padding');
  const hasBos = read.optional('tokenizer.ggml.add_bos_token', 'boolean') ?? parts.addsBos;
  const document = {
    version: '1.0',
    ...{ truncation: null, padding: null },
    added_tokens: addedTokens(vocabulary),
    normalizer: parts.normalizer,
    pre_tokenizer: parts.preTokenizer,
    post_processor:
      hasBos && bos_token !== undefined ? bosTemplate(bos_token, tokens.indexOf(bos_token)) : null,
    decoder: parts.decoder,
    model: parts.model,
  };
  const settings = { bos_token, eos_token, unk_token, pad_token, add_bos_token: hasBos };
  files['tokenizer.json'] = `${JSON.stringify(document)}\n`;
  files['tokenizer_config.json'] = `${JSON.stringify(settings, null, 2)}\n`;
  return files;
}

/** Parts of a tokenizer.json. */
interface Parts {
  readonly normalizer: object | null;
  readonly preTokenizer: object | null;
  readonly decoder: object;
  readonly model: object;
  /** Whether texts begin with a token where the file does not say. */
  readonly addsBos: boolean;
}

const BPE = { type: 'BPE', dropout: null, continuing_subword_prefix: null, end_of_word_suffix: null };

/** Ids by token; unused ones behind the last are left out, since models have rows without tokens. */
function idsOf({ tokens, kinds }: Vocabulary): Record<string, number> {
  let last = tokens.length;
  while (last > 0 && kinds[last - 1] === TOKEN_KINDS.unused) last--;
  // Added tokens behind all others get their ids by themselves.
  while (last > 0 && isAdded(kinds[last - 1]!)) last--;
  return Object.fromEntries(tokens.slice(0, last).map((token, id) => [token, id]));
}

const isAdded = (kind: number): boolean => kind === TOKEN_KINDS.control || kind === TOKEN_KINDS.userDefined;

function byteLevelParts(read: TokenizerReader, vocabulary: Vocabulary): Parts {
  const name = read.optional('tokenizer.ggml.pre', 'string') ?? 'default';
  const pattern = wordPattern(name);
  if (pattern === undefined)
    throw read.problem(
      'tokenizer.ggml.pre',
      `is '${name}', a way to split words that is not known: expected one of ${wordPatternNames.join(', ')}`,
    );
  const { normalizer, preTokenizer, ignoresMerges } = pattern;
  return {
    ...{ normalizer, preTokenizer },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      ...{ ...BPE, unk_token: null, fuse_unk: false, byte_fallback: false, ignore_merges: ignoresMerges },
      vocab: idsOf(vocabulary),
      merges: read.texts('tokenizer.ggml.merges').map((merge, i) => {
        // The first character of a token may be a space in no alphabet of bytes.
        const at = merge.indexOf(' ', 1);
        if (at < 0)
          throw read.problem('tokenizer.ggml.merges', `has '${merge}' at ${i}: expected two tokens`);
        return [merge.slice(0, at), merge.slice(at + 1)];
      }),
    },
    addsBos: name.startsWith('llama'),
  };
}

/** SentencePiece's BPE: of two neighbours, those merge first whose token has the best score. */
function sentencePieceParts(read: TokenizerReader, vocabulary: Vocabulary): Parts {
  const { tokens, kinds } = vocabulary;
  const scores = read.numbers('tokenizer.ggml.scores', tokens.length);
  if (scores === undefined)
    throw read.problem('tokenizer.ggml.scores', 'is absent: expected a score for each token');
  const hasPrefix = read.optional('tokenizer.ggml.add_space_prefix', 'boolean') ?? true;
  const ids = idsOf(vocabulary);
  const unknown = tokens.find((_, id) => kinds[id] === TOKEN_KINDS.unknown) ?? null;
  const merges = tokens.flatMap((token, id) =>
    kinds[id] === TOKEN_KINDS.normal ? splits(token, ids).map((pair) => ({ pair, score: scores[id]! })) : [],
  );
  const before = (pair: readonly [string, string]): readonly [number, number] => [
    ids[pair[0]]!,
    ids[pair[1]]!,
  ];
  merges.sort((a, b) => {
    const [[aLeft, aRight], [bLeft, bRight]] = [before(a.pair), before(b.pair)];
    return b.score - a.score || aLeft - bLeft || aRight - bRight;
  });
  const replace = (from: string, to: string) => ({ type: 'Replace', pattern: { String: from }, content: to });
  const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [...(hasPrefix ? [{ type: 'Prepend', prepend: SPACE }] : []), replace(' ', SPACE)],
    },
    preTokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        replace(SPACE, ' '),
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(hasPrefix ? [strip] : []),
      ],
    },
    model: {
      ...{ ...BPE, unk_token: unknown, fuse_unk: true, byte_fallback: true, ignore_merges: false },
      vocab: ids,
      merges: merges.map(({ pair }) => pair),
    },
    addsBos: true,
  };
}

/** All pairs of tokens that a token is made of. */
function splits(token: string, ids: Readonly<Record<string, number>>): [string, string][] {
  const characters = [...token];
  return characters.slice(1).flatMap((_, i): [string, string][] => {
    const [left, right] = [characters.slice(0, i + 1).join(''), characters.slice(i + 1).join('')];
    return Object.hasOwn(ids, left) && Object.hasOwn(ids, right) ? [[left, right]] : [];
  });
}

const addedTokens = ({ tokens, kinds }: Vocabulary): object[] =>
  tokens.flatMap((content, id) => {
    const special = kinds[id] === TOKEN_KINDS.control || kinds[id] === TOKEN_KINDS.unknown;
    if (!special && kinds[id] !== TOKEN_KINDS.userDefined) return [];
    return [{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }];
  });

function bosTemplate(token: string, id: number): object {
  const single = [{ SpecialToken: { id: token, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }];
  const pair = [...single, { Sequence: { id: 'B', type_id: 0 } }];
  const special_tokens = { [token]: { id: token, ids: [id], tokens: [token] } };
  return { type: 'TemplateProcessing', single, pair, special_tokens };
}

/** Reads values of their kinds. */
class TokenizerReader {
  constructor(private readonly file: GgufFile) {}

  optional(key: string, kind: 'string'): string | undefined;
  optional(key: string, kind: 'number'): number | undefined;
  optional(key: string, kind: 'boolean'): boolean | undefined;
  optional(key: string, kind: 'string' | 'number' | 'boolean'): GgufValue | undefined {
    const value = this.file.metadata.get(key);
    if (value !== undefined && typeof value !== kind) throw this.problem(key, `is not a ${kind}`);
    return value;
  }

  texts(key: string): readonly string[] {
    const value = this.file.metadata.get(key);
    if (Array.isArray(value) && value.every((each) => typeof each === 'string'))
      return value as readonly string[];
    throw this.problem(key, value === undefined ? 'is absent' : 'is not an array of texts');
  }

  numbers(key: string, length: number): Float64Array | undefined {
    const value = this.file.metadata.get(key);
    if (value === undefined) return undefined;
    if (value instanceof Float64Array && value.length === length) return value;
    throw this.problem(key, `is not an array of ${length} numbers, one for each token`);
  }

  problem(key: string, text: string): ConfigError {
    return new ConfigError(`${this.file.path}: ${key} ${text}.`);
  }
}
