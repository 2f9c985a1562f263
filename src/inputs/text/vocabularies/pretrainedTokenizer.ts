/** @file PretrainedTokenizer: the vocabulary of a tokenizer.json. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { InputError, placed } from '../../inputErrors.js';
import type { JsonValue } from '../../jsonValue.js';
import { readFiles, resolveFiles, type SourceFile } from '../corpusFiles.js';
import type { TokenArray } from '../tokens.js';
import { BaseTokenizer, checkIds } from './baseTokenizer.js';
import { decodeUtf8 } from './characters.js';
import { type TextModel, textModel } from './textModel.js';
import type { TokenDecoder } from './tokenDecoders.js';
import { parseTokenizer, type TokenizerDocument } from './tokenizerJson.js';

const role = (about: string) => z.string().min(1).nullable().default(null).describe(about);

/** A tokenizer after reading. */
interface Loaded {
  readonly contents: string;
  readonly document: TokenizerDocument;
  readonly model: TextModel;
  readonly ids: ReadonlyMap<string, number>;
  readonly vocabSize: number;
}

/**
 * A tokenizer in Hugging Face's format: BPE, Unigram, WordPiece, as `luthier tokenizer train` or another program wrote it.
 * Special tokens in a text become their ids, unless `specialTokensAsText` is set; none are added. Byte-level BPE with GPT-2's words takes any bytes; other
 * models are encoded by the Rust library `tokenizers`, and may have no way back to the exact text.
 */
export class PretrainedTokenizer extends BaseTokenizer.with({
  file: z.string().min(1).describe("Path of a tokenizer.json, or a 'pkg:<package>/<path>' spec."),
  contents: z
    .string()
    .nullable()
    .default(null)
    .describe('Contents of the tokenizer.json; null reads the file. A run saves them.'),
  specialTokensAsText: z
    .boolean()
    .default(false)
    .describe(
      'Whether special tokens in a text are encoded as plain characters, so that no text can contain the end of a sequence.',
    ),
  padToken: role('The token of padding, null for none.'),
  eosToken: role('The token that ends a sequence, null for none.'),
  bosToken: role('The token that begins a sequence, null for none.'),
  promptTokens: z
    .array(z.string().min(1))
    .default([])
    .describe('Tokens that stand before prompts, as published models may expect.'),
  unkToken: role("The token for unknown text; null for the file's, if any."),
}) {
  #loaded: Loaded | null = null;

  override get vocabSize(): number {
    return this.#load().vocabSize;
  }

  override get padId(): number | null {
    return this.#idOf('padToken', this.hp.padToken);
  }

  override get eosId(): number | null {
    return this.#idOf('eosToken', this.hp.eosToken);
  }

  override get bosId(): number | null {
    return this.#idOf('bosToken', this.hp.bosToken);
  }

  override get promptStart(): readonly number[] {
    return this.hp.promptTokens.map((token) => this.#idOf('promptTokens', token)!);
  }

  override get unkId(): number | null {
    const { unk_token: token, unk_id: id } = this.#load().document.model;
    if (this.hp.unkToken === null && typeof id === 'number') return id;
    return this.#idOf('unkToken', this.hp.unkToken ?? (typeof token === 'string' ? token : null));
  }

  /** Texts of the tokens by id. */
  get tokens(): ReadonlyMap<number, string> {
    return this.#load().model.tokens;
  }

  /** Texts that are found whole before a text is split, by id. */
  get specialTokens(): ReadonlyMap<number, string> {
    return new Map(this.#load().document.added_tokens.map(({ id, content }) => [id, content]));
  }

  override identity(): string {
    const { contents, vocabSize } = this.#load();
    const hash = createHash('sha256').update(contents).digest('hex');
    const texts = this.hp.specialTokensAsText ? ', special tokens as text' : '';
    return `PretrainedTokenizer of ${vocabSize} tokens (sha256 ${hash.slice(0, 16)}${texts})`;
  }

  override learned(): { readonly [field: string]: JsonValue } {
    return { contents: this.#load().contents };
  }

  override hasText(id: number): boolean {
    return this.#load().model.tokens.has(id);
  }

  override tokenBytes(id: number): Uint8Array | undefined {
    return this.#load().model.tokenBytes(id);
  }

  override get maxTokenBytes(): number {
    return this.#load().model.maxTokenBytes;
  }

  override encode(text: string): Int32Array {
    const { model } = this.#load();
    return this.#placed(() => model.encode(text));
  }

  override encodeFile(file: SourceFile): TokenArray {
    const { model } = this.#load();
    const ids = this.#placed(() => model.encodeFile(file));
    return this.vocabSize <= 1 << 16 ? Uint16Array.from(ids) : ids;
  }

  /** Bytes that are no character, which a model may well write, become U+FFFD. */
  override decode(ids: ArrayLike<number>): string {
    const { model } = this.#load();
    this.#check(ids);
    return model.decode(ids);
  }

  override decoder(context: ArrayLike<number> = []): TokenDecoder {
    this.#check(context);
    const decoder = this.#load().model.decoder(context);
    return {
      take: (id) => {
        this.#check([id]);
        return decoder.take(id);
      },
      rest: () => decoder.rest(),
    };
  }

  #placed<T>(make: () => T): T {
    return placed(() => `PretrainedTokenizer: ${this.hp.file}`, make);
  }

  #check(ids: ArrayLike<number>): void {
    const { vocabSize, model } = this.#load();
    checkIds(ids, vocabSize, 'PretrainedTokenizer');
    for (let i = 0; i < ids.length; i++) {
      if (!model.tokens.has(ids[i]!))
        throw new InputError(
          `PretrainedTokenizer: id ${ids[i]} at position ${i} has no token in ${this.hp.file}.`,
        );
    }
  }

  #idOf(field: string, token: string | null): number | null {
    if (token === null) return null;
    const { ids, document } = this.#load();
    const id = ids.get(token);
    if (id !== undefined) return id;
    const special = document.added_tokens.map(({ content }) => content).join(', ') || 'none';
    throw new InputError(
      `PretrainedTokenizer: ${field} '${token}' is not a token of ${this.hp.file}. Its special tokens: ${special}.`,
    );
  }

  /** Reads the file at first use, since configs are also built and inspected where it is missing. */
  #load(): Loaded {
    if (this.#loaded) return this.#loaded;
    const { file } = this.hp;
    const contents = this.hp.contents ?? contentsOf(file);
    const document = parseTokenizer(contents, file);
    const model = modelOf(document, this.hp);
    const ids = new Map([...model.tokens].map(([id, token]) => [token, id]));
    for (const { id, content } of document.added_tokens) ids.set(content, id);
    let vocabSize = 0;
    for (const id of model.tokens.keys()) vocabSize = Math.max(vocabSize, id + 1);
    this.#loaded = { contents, document, model, ids, vocabSize };
    return this.#loaded;
  }
}

function contentsOf(file: string): string {
  const [found] = readFiles(resolveFiles([file]));
  return decodeUtf8(found!);
}

function modelOf(
  document: TokenizerDocument,
  { file, specialTokensAsText }: PretrainedTokenizer['hp'],
): TextModel {
  return placed(
    () => file,
    () => textModel(document, specialTokensAsText),
  );
}
