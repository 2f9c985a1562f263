/** @file Bytes that the tokens of a tokenizer.json add to a text, by its decoder. */
import { z } from 'zod';
import { bytesOfSpelling } from './byteAlphabet.js';
import type { TokenizerDocument } from './tokenizerJson.js';

const part = z.looseObject({ type: z.string() });
type Part = z.output<typeof part>;

/** A spelling of a token behind others; bytes once it is no text any more. */
type Spelling = string | Uint8Array;

const utf8 = new TextEncoder();
const textOf = (value: unknown, otherwise: string): string => (typeof value === 'string' ? value : otherwise);

/** What the parts of decoders make of a token that is not the first one of a text. */
const STEPS: Readonly<Record<string, (token: string, fields: Part) => Spelling>> = {
  ByteLevel: (token) => bytesOfSpelling(token) ?? token,
  ByteFallback: (token) => {
    const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    return byte === undefined ? token : Uint8Array.of(Number.parseInt(byte, 16));
  },
  Metaspace: (token, { replacement }) => token.replaceAll(textOf(replacement, '▁'), ' '),
  Replace: (token, { pattern, content }) => {
    const { String: from } = z.object({ String: z.string() }).catch({ String: '' }).parse(pattern);
    return from === '' ? token : token.replaceAll(from, textOf(content, ''));
  },
  WordPiece: (token, { prefix }) => {
    const continues = textOf(prefix, '##');
    return token.startsWith(continues) ? token.slice(continues.length) : ` ${token}`;
  },
  BPEDecoder: (token, { suffix }) => token.replaceAll(textOf(suffix, '</w>'), ' '),
  // These join tokens, or strip blanks from the beginning of the whole text.
  Fuse: (token) => token,
  Strip: (token) => token,
};

/** The parts of a decoder in order; undefined for parts of other kinds. */
function partsOf(decoder: unknown): readonly Part[] | undefined {
  const read = part.safeParse(decoder);
  if (!read.success) return undefined;
  const { type, decoders } = read.data as Part & { readonly decoders?: unknown };
  if (type !== 'Sequence') return type in STEPS ? [read.data] : undefined;
  const all = z.array(part).safeParse(decoders);
  return all.success && all.data.every((each) => each.type in STEPS) ? all.data : undefined;
}

/**
 * Bytes that a token adds to a text which it does not begin.
 *
 * @param tokens texts of the tokens by id.
 * @returns undefined for special tokens, and for all where the decoder's parts are of other kinds.
 */
export function tokenBytes(
  { added_tokens, decoder }: Pick<TokenizerDocument, 'added_tokens' | 'decoder'>,
  tokens: ReadonlyMap<number, string>,
): (id: number) => Uint8Array | undefined {
  const parts = partsOf(decoder);
  const added = new Map(added_tokens.map((token) => [token.id, token]));
  return (id) => {
    const token = tokens.get(id);
    const own = added.get(id);
    if (token === undefined || own?.special) return undefined;
    if (own) return utf8.encode(own.content);
    if (parts === undefined) return undefined;
    const spelling = parts.reduce<Spelling>(
      (so, fields) => (typeof so === 'string' ? STEPS[fields.type]!(so, fields) : so),
      token,
    );
    return typeof spelling === 'string' ? utf8.encode(spelling) : spelling;
  };
}
