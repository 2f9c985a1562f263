/** @file Parts of a tokenizer.json: their types, fields and defaults, as the Rust library `tokenizers` has them. */
import { z } from 'zod';
import { didYouMean } from '../../../hparams/index.js';
import { InputError } from '../../inputErrors.js';

const flag = (value: boolean) => z.boolean().default(value);
const text = z.string();
const count = z.int().nonnegative();
const pattern = z.union([z.object({ String: text }), z.object({ Regex: text })]);
const behavior = z.enum(['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']);
const character = text.refine((value) => [...value].length === 1, 'expected one character');
const part: z.ZodType = z.lazy(() => z.looseObject({ type: text }));
const token = z.tuple([text, count]);

const bytes = { add_prefix_space: flag(true), trim_offsets: flag(true), use_regex: flag(true) };
const metaspace = {
  replacement: character.default('▁'),
  prepend_scheme: z.enum(['first', 'never', 'always']).default('always'),
  split: flag(true),
};
const ends = { sep: token, cls: token };

/** SentencePiece's rules: the size of a trie in bytes, the trie, and texts in UTF-8. */
const rules = text.refine((value) => {
  const contents = Buffer.from(value, 'base64');
  if (contents.length < 4) return false;
  const end = 4 + contents.readUInt32LE(0);
  const texts = contents.subarray(end);
  return end % 4 === 0 && end <= contents.length && Buffer.from(texts.toString()).equals(texts);
}, 'expected rules of SentencePiece in base64');

/** A text that may be cut to less than nothing ends the library's process. */
const strip = z
  .looseObject({ content: character, start: count, stop: count })
  .refine(({ start, stop }) => start === 0 || stop === 0, 'expected 0 for start or for stop');

const fields = (shape: z.core.$ZodLooseShape = {}) => z.looseObject(shape);

/** Fields by type of each kind of part. */
const kinds = {
  normalizer: {
    BertNormalizer: fields({
      ...{ clean_text: flag(true), handle_chinese_chars: flag(true), lowercase: flag(true) },
      strip_accents: z.boolean().nullable().default(null),
    }),
    Strip: fields({ strip_left: flag(true), strip_right: flag(true) }),
    ...{ StripAccents: fields(), NFC: fields(), NFD: fields(), NFKC: fields(), NFKD: fields() },
    Sequence: fields({ normalizers: z.array(part) }),
    ...{ Lowercase: fields(), Nmt: fields(), ByteLevel: fields() },
    Precompiled: fields({ precompiled_charsmap: rules }),
    Replace: fields({ pattern, content: text }),
    Prepend: fields({ prepend: text }),
  },
  pre_tokenizer: {
    ...{ BertPreTokenizer: fields(), Whitespace: fields(), WhitespaceSplit: fields() },
    UnicodeScripts: fields(),
    ByteLevel: fields(bytes),
    CharDelimiterSplit: fields({ delimiter: character }),
    Metaspace: fields(metaspace),
    Sequence: fields({ pretokenizers: z.array(part) }),
    Split: fields({ pattern, behavior, invert: flag(false) }),
    Punctuation: fields({ behavior: behavior.default('Isolated') }),
    Digits: fields({ individual_digits: flag(false) }),
    FixedLength: fields({ length: z.int().positive() }),
  },
  post_processor: {
    BertProcessing: fields(ends),
    RobertaProcessing: fields({ ...ends, trim_offsets: flag(true), add_prefix_space: flag(true) }),
    ByteLevel: fields(bytes),
    TemplateProcessing: fields({ single: z.array(z.unknown()), special_tokens: z.looseObject({}) }),
    Sequence: fields({ processors: z.array(part) }),
  },
  decoder: {
    BPEDecoder: fields({ suffix: text.default('</w>') }),
    ByteLevel: fields(bytes),
    WordPiece: fields({ prefix: text.default('##'), cleanup: flag(true) }),
    Metaspace: fields(metaspace),
    CTC: fields({
      ...{ pad_token: text.default('<pad>'), word_delimiter_token: text.default('|') },
      cleanup: flag(true),
    }),
    Sequence: fields({ decoders: z.array(part) }),
    ...{ Fuse: fields(), ByteFallback: fields() },
    Strip: strip,
    Replace: fields({ pattern, content: text }),
  },
} satisfies Record<string, Record<string, z.ZodType>>;

/** A kind of part. */
export type PartKind = keyof typeof kinds;

/** Names of the list that a Sequence has. */
const LISTS = ['normalizers', 'pretokenizers', 'processors', 'decoders'];

/**
 * A part with its defaults.
 *
 * @param path the place in the document
 * @throws InputError for an unknown type, with those that there are, and for fields that do not fit
 */
export function checkedPart(kind: PartKind, given: unknown, path: string): unknown {
  if (given === null) return null;
  const { type } = Object(given) as { readonly type?: unknown };
  const known: Readonly<Record<string, z.ZodType>> = kinds[kind];
  const schema = typeof type === 'string' && Object.hasOwn(known, type) ? known[type] : undefined;
  if (schema === undefined) {
    const names = Object.keys(known);
    const hint = typeof type === 'string' ? didYouMean(type, names) : '';
    throw new InputError(
      `${path}: type ${JSON.stringify(type) ?? 'nothing'} is not known.${hint} The types are: ${names.join(', ')}.`,
    );
  }
  const checked = checkedFields(schema, given, `${path} (${type})`) as Record<string, unknown>;
  const list = LISTS.find((name) => Array.isArray(checked[name]));
  if (list === undefined || type !== 'Sequence') return checked;
  const parts = (checked[list] as unknown[]).map((one, i) => checkedPart(kind, one, `${path}.${list}[${i}]`));
  return { ...checked, [list]: parts };
}

/** The fields of a part or a model with their defaults. @throws InputError for those that do not fit */
export function checkedFields<T>(schema: z.ZodType<T>, given: unknown, path: string): T {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [{ path: at, message }] = parsed.error.issues as [z.core.$ZodIssue];
  throw new InputError(`${[path, ...at.map(String)].join('.')}: ${message}.`);
}
