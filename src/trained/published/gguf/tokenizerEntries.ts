/** @file The tokenizer.json of a folder as GGUF's metadata. */
import { join } from 'node:path';
import { z } from 'zod';
import type { GgufEntry } from '../../../checkpoints/index.js';
import { isThere, readJsonFile } from '../../../files/index.js';
import { ConfigError } from '../../../hparams/index.js';
import { publishedChatTemplate } from '../../../inputs/index.js';
import {
  modelSettings,
  readSettings,
  tokenizerSettings,
  tokensBeforeText,
  tokenText,
} from '../publishedFiles.js';
import { SPACE, TOKEN_KINDS } from './ggufTokenizer.js';
import { wordPatternName, wordPatternNames } from './wordPatterns.js';

const merge = z.union([z.string(), z.tuple([z.string(), z.string()])]);

const schema = z.object({
  added_tokens: z
    .array(z.object({ id: z.int().nonnegative(), content: z.string(), special: z.boolean().default(false) }))
    .default([]),
  normalizer: z.unknown().default(null),
  pre_tokenizer: z.unknown().default(null),
  decoder: z.unknown().default(null),
  model: z.object({
    type: z.string().default('BPE'),
    vocab: z.unknown(),
    merges: z.array(merge).optional(),
    unk_token: z.string().nullish(),
    byte_fallback: z.boolean().default(false),
    ignore_merges: z.boolean().default(false),
  }),
});

const ids = z.record(z.string(), z.int().nonnegative());

type Document = z.output<typeof schema>;

/** A token: its kind, and its score where merges go by scores. */
interface Token {
  readonly text: string;
  readonly kind: number;
  readonly score: number;
}

/**
 * The metadata of a folder's tokenizer and chat template; that of none where there is no tokenizer.json.
 *
 * @param rows of the model's table, of which those without a token are unused
 * @throws ConfigError for a tokenizer that GGUF has no form of
 */
export function tokenizerEntries(folder: string, rows: number): GgufEntry[] {
  const path = join(folder, 'tokenizer.json');
  if (!isThere(path)) return [['tokenizer.ggml.model', 'string', 'none']];
  const document = readJsonFile(path, schema);
  const { model } = document;
  const vocab = ids.safeParse(model.vocab).data;
  if (model.type !== 'BPE' || vocab === undefined)
    throw new ConfigError(`${path}: GGUF files are written with BPE, and the model is ${model.type}.`);
  const isBytes = !model.byte_fallback;
  const merges = (model.merges ?? []).map((each) => (typeof each === 'string' ? each : each.join(' ')));
  const tokens = tokensOf(document, vocab, rows, path);
  const of = (key: string, kind: GgufEntry[1], value: GgufEntry[2]): GgufEntry => [
    `tokenizer.ggml.${key}`,
    kind,
    value,
  ];
  return [
    of('model', 'string', isBytes ? 'gpt2' : 'llama'),
    of('pre', 'string', isBytes ? patternOf(document, path) : 'default'),
    of(
      'tokens',
      'string',
      tokens.map(({ text }) => text),
    ),
    of(
      'token_type',
      'i32',
      tokens.map(({ kind }) => kind),
    ),
    ...(isBytes
      ? [of('merges', 'string', merges)]
      : [
          of(
            'scores',
            'f32',
            tokens.map(({ score }) => score),
          ),
          of('add_space_prefix', 'bool', JSON.stringify(document.normalizer).includes('"Prepend"')),
        ]),
    ...specialEntries(folder, tokens, model.unk_token).map(([key, value]) => of(key, 'u32', value)),
    of('add_bos_token', 'bool', tokensBeforeText(folder).length > 0),
    ...templateEntries(folder),
  ];
}

function patternOf({ normalizer, pre_tokenizer }: Document, path: string): string {
  const found = wordPatternName(normalizer, pre_tokenizer);
  if (found !== undefined) return found;
  throw new ConfigError(
    `${path}: its normalizer and pre_tokenizer are those of no way to split words that GGUF files name here: ${wordPatternNames.join(', ')}.`,
  );
}

/** The tokens of a tokenizer by id. */
function tokensOf(
  { added_tokens, model }: Document,
  vocab: Readonly<Record<string, number>>,
  rows: number,
  path: string,
): Token[] {
  const tokens: Token[] = Array.from({ length: rows }, (_, id) => ({
    ...{ text: `[PAD${id}]`, kind: TOKEN_KINDS.unused, score: 0 },
  }));
  const put = (id: number, token: Token): void => {
    if (id >= rows)
      throw new ConfigError(`${path}: token '${token.text}' has id ${id}, and the model ${rows} rows.`);
    tokens[id] = token;
  };
  // The sooner a token is made by a merge, the better its score.
  const ranks = new Map<string, number>();
  for (const [rank, each] of (model.merges ?? []).entries()) {
    const merged = (typeof each === 'string' ? each.split(' ') : each).join('');
    if (!ranks.has(merged)) ranks.set(merged, rank);
  }
  for (const [text, id] of Object.entries(vocab)) {
    const isByte = model.byte_fallback && /^<0x[0-9A-F]{2}>$/.test(text);
    const kind =
      text === model.unk_token ? TOKEN_KINDS.unknown : isByte ? TOKEN_KINDS.byte : TOKEN_KINDS.normal;
    put(id, { text, kind, score: -(ranks.get(text) ?? ranks.size) });
  }
  for (const { id, content, special } of added_tokens) {
    const isUnknown = content === model.unk_token;
    const kind = isUnknown ? TOKEN_KINDS.unknown : special ? TOKEN_KINDS.control : TOKEN_KINDS.userDefined;
    put(id, { text: model.byte_fallback ? content.replaceAll(' ', SPACE) : content, kind, score: 0 });
  }
  return tokens;
}

/** Ids of tokens with a role. */
function specialEntries(
  folder: string,
  tokens: readonly Token[],
  unknown: string | null | undefined,
): [string, number][] {
  const settings = readSettings(folder, tokenizerSettings) ?? {};
  const eos = readSettings(folder, modelSettings)?.eos_token_id;
  const idOf = (text: string | null | undefined): number | undefined => {
    const id = text == null ? -1 : tokens.findIndex((token) => token.text === text);
    return id < 0 ? undefined : id;
  };
  const roles: readonly [string, number | undefined][] = [
    ['bos_token_id', idOf(tokenText(settings.bos_token) ?? tokensBeforeText(folder)[0])],
    [
      'eos_token_id',
      idOf(tokenText(settings.eos_token)) ?? (Array.isArray(eos) ? eos[0] : (eos ?? undefined)),
    ],
    ['padding_token_id', idOf(tokenText(settings.pad_token))],
    ['unknown_token_id', idOf(unknown)],
  ];
  return roles.filter((role): role is [string, number] => role[1] !== undefined);
}

function templateEntries(folder: string): GgufEntry[] {
  try {
    return [['tokenizer.chat_template', 'string', publishedChatTemplate(folder)]];
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}
