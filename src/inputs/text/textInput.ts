/** @file TextInput: batches for a language model from text files. */

import { z } from 'zod';
import { instance } from '../../hparams/index.js';
import { type BatchSpecs, type BatchUnit, type LmBatch, lmBatchSpecs, TOKEN_UNIT } from '../batch.js';
import { paddingOf } from '../batchRows.js';
import type { DataFile, DataIdentity } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import type { RowTraits } from '../inputSource.js';
import type { JsonValue } from '../jsonValue.js';
import { drawBelow, streamKey } from '../random.js';
import { RowInput } from '../rowInput.js';
import { fillWindow, packedRows, type RowSource, windowRows } from './lmRows.js';
import { fingerprint, readTextCorpus } from './textCorpus.js';
import type { TokenStream } from './tokens.js';
import { BaseTokenizer } from './vocabularies/baseTokenizer.js';
import { ByteTokenizer } from './vocabularies/byteTokenizer.js';

/** The corpus as rows, read on first use. */
interface TextData {
  readonly stream: TokenStream;
  readonly files: readonly DataFile[];
  readonly rows: RowSource;
}

/**
 * Text for a language model: `labels` are `ids` shifted by one token. Rows are windows of seqLen tokens over the
 * concatenated files or, if `packed`, whole documents packed into rows.
 */
export class TextInput extends RowInput.with({
  files: z
    .array(z.string())
    .min(1)
    .describe("Paths, globs and 'pkg:<package>/<glob>' specs, in the order to read them."),
  tokenizer: instance(BaseTokenizer, () => ByteTokenizer.config()),
  seqLen: z.int().positive().describe('Tokens per row.'),
  split: z.enum(['train', 'validation', 'all']).default('train').describe('The split of the corpus to read.'),
  splitBy: z
    .enum(['file', 'text'])
    .default('text')
    .describe('Hold out whole files spread over the order, or the end of the text.'),
  validationFraction: z
    .number()
    .min(0)
    .lt(1)
    .default(0.1)
    .describe('Fraction of files or of tokens to hold out.'),
  validationFiles: z
    .array(z.string())
    .default([])
    .describe('Files to hold out, as in `files`; if given, they alone define the split.'),
  packed: z
    .boolean()
    .default(false)
    .describe('Whether rows hold whole documents, with segmentIds and segmentPos.'),
  sampling: z
    .enum(['permuted', 'random', 'sequential'])
    .nullable()
    .default(null)
    .describe("Every row once an epoch in random order, windows at random offsets (nanoGPT's), or in order."),
  repeat: z
    .boolean()
    .nullable()
    .default(null)
    .describe('Whether to start over after the last row; null: in training only.'),
}) {
  #data: TextData | null = null;
  #fingerprint: string | null = null;

  protected override setup(): void {
    super.setup();
    if (this.sampling !== 'random') return;
    if (this.hp.packed) {
      throw new InputError("sampling 'random' draws windows, and packed rows are whole; use 'permuted'.");
    }
    if (!this.repeats) throw new InputError("sampling 'random' has no end; set repeat, or use 'permuted'.");
  }

  override get batchUnit(): BatchUnit {
    return TOKEN_UNIT;
  }

  /** The tokenizer, with its vocabulary learned. */
  get tokenizer(): BaseTokenizer {
    this.#load();
    return this.hp.tokenizer;
  }

  /** Number of tokens of the split. */
  get numTokens(): number {
    return this.#load().stream.tokens.length;
  }

  override rowTraits(): RowTraits {
    return { ...(this.hp.packed && { packedBy: 'packed' }), labels: 'next tokens', isPadded: true };
  }

  override vocabularyFor(): BaseTokenizer {
    return this.tokenizer;
  }

  /** `sampling` with its default: random order in training, corpus order otherwise. */
  get sampling(): 'permuted' | 'random' | 'sequential' {
    return this.hp.sampling ?? (this.hp.isTraining ? 'permuted' : 'sequential');
  }

  /** `repeat` with its default. */
  override get repeats(): boolean {
    return this.hp.repeat ?? this.hp.isTraining;
  }

  /** `sampling` decides the order. */
  protected override get shuffles(): boolean {
    return false;
  }

  protected override get numRows(): number {
    return this.repeats ? Number.POSITIVE_INFINITY : this.#load().rows.numRows;
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, seqLen, packed } = this.hp;
    return lmBatchSpecs(batchSize, seqLen, packed);
  }

  protected override emptyBatch(): LmBatch {
    return paddingOf(this.batchSpecs()) as LmBatch;
  }

  protected override fillRow(row: number, batch: LmBatch, b: number): void {
    const { stream, rows } = this.#load();
    const cut = this.#cutOf(row);
    if ('start' in cut) fillWindow(stream.tokens, cut.start, this.hp.seqLen, batch, b);
    else rows.fill(cut.row, batch, b);
  }

  protected override rowName(row: number): string {
    const { seqLen, packed } = this.hp;
    const cut = this.#cutOf(row);
    if ('row' in cut && packed) return `row ${cut.row} of the packed documents`;
    const start = 'start' in cut ? cut.start : cut.row * seqLen;
    const end = Math.min(start + seqLen, this.numTokens - 1);
    return `tokens ${start} to ${end} of split '${this.hp.split}'`;
  }

  override dataIdentity(): DataIdentity {
    const { files } = this.#load();
    return { ...this.knownIdentity(), files, contents: this.#contents };
  }

  /** Identity of the tokenizer, unless it must learn its vocabulary first. */
  override knownIdentity(): DataIdentity | null {
    const { tokenizer } = this.hp;
    if (tokenizer.needsCorpus) return null;
    const [identity, learned] = [tokenizer.identity(), tokenizer.learned()];
    return {
      vocabSize: tokenizer.vocabSize,
      tokenizer: { class: tokenizer.constructor.name, identity, learned },
    };
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    return {
      corpus: this.#contents,
      tokenizer: this.tokenizer.identity(),
      seqLen: this.hp.seqLen,
      packed: this.hp.packed,
      sampling: this.sampling,
      ...(this.sampling === 'permuted' && { order: this.orderName }),
      repeat: this.repeats,
      seed: this.#seed,
    };
  }

  get #contents(): string {
    this.#fingerprint ??= fingerprint(this.#load().stream);
    return this.#fingerprint;
  }

  get #seed(): number {
    return this.hp.inputRandomSeed ?? 0;
  }

  /**
   * Windows of an endless permuted input start at a new offset each epoch, so that every token eventually appears at
   * every position; one window fewer is cut, so that each offset has equally many.
   */
  get #shiftsWindows(): boolean {
    return this.repeats && !this.hp.packed && this.numTokens > 2 * this.hp.seqLen;
  }

  /** The n-th row to be read: one of those that the corpus is cut into, or a window that begins anywhere. */
  #cutOf(n: number): { readonly row: number } | { readonly start: number } {
    const { seqLen } = this.hp;
    const { stream, rows } = this.#load();
    const { length } = stream.tokens;
    if (this.sampling === 'random')
      return { start: drawBelow(streamKey(this.#seed, 'windowOffset'), n, length - seqLen) };
    if (this.sampling === 'sequential') return { row: n % rows.numRows };
    const shifts = this.#shiftsWindows;
    const { epoch, item } = this.permuted(n, shifts ? Math.floor((length - seqLen) / seqLen) : rows.numRows);
    if (!shifts) return { row: item };
    return { start: drawBelow(streamKey(this.#seed, 'windowPhase'), epoch, seqLen) + item * seqLen };
  }

  /**
   * Reads the corpus at first use, since configs are also built and inspected where its files are missing.
   *
   * @throws InputError, with the input's name, for missing or unencodable files
   */
  #load(): TextData {
    if (this.#data) return this.#data;
    try {
      const { stream, files } = readTextCorpus(this.hp, this.hp.tokenizer);
      const { seqLen, packed } = this.hp;
      const rows = packed ? packedRows(stream, seqLen) : windowRows(stream.tokens, seqLen);
      if (rows.numRows === 0)
        throw new InputError('No document has two tokens, so there is nothing to predict.');
      if (this.sampling === 'random' && stream.tokens.length <= seqLen) {
        throw new InputError(
          `sampling 'random' needs more than seqLen = ${seqLen} tokens, and split '${this.hp.split}' has ${stream.tokens.length}.`,
        );
      }
      this.#data = { stream, files, rows: rows as RowSource };
      return this.#data;
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new InputError(`TextInput '${this.name}': ${error.message}`, { cause: error });
    }
  }
}
