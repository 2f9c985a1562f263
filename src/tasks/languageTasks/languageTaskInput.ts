/** @file LanguageTaskInput: the texts of a task as rows of token ids, to be scored or continued. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { HostTensor } from '../../compiler/index.js';
import { instance } from '../../hparams/index.js';
import {
  BaseTokenizer,
  type Batch,
  type BatchUnit,
  type DataIdentity,
  EXAMPLE_IDS,
  type IdVocabulary,
  InputError,
  lmBatchSpecs,
  paddingOf,
  RowInput,
  type RowTraits,
  TOKEN_UNIT,
} from '../../inputs/index.js';
import type { ScoredRow } from './scoredRows.js';
import { type LanguageTask, readTask } from './taskFile.js';
import { scoredTexts } from './taskMetrics.js';

/** A row with the number of its text, or of its prompt. */
interface NumberedRow extends ScoredRow {
  readonly id: number;
  /** Tokens that may be drawn behind it. */
  readonly most: number;
}

/**
 * Rows of [B, seqLen] of a task's file. `weights` are 1 at the tokens that are scored, `exampleIds` numbers of the texts, of which
 * one may have several rows. Prompts come whole, with `perExampleMaxDecodeSteps`.
 */
export class LanguageTaskInput extends RowInput.with({
  file: z.string().describe('The task, an example a line of JSON, as luthier evaluate reads it.'),
  tokenizer: instance(BaseTokenizer, null).describe('That of training.'),
  seqLen: z.int().positive().describe('Tokens of a row: of texts that are longer, windows are scored.'),
}) {
  #task: LanguageTask | undefined;
  #made: readonly NumberedRow[] | undefined;

  /** The task. @throws InputError for a file without one */
  get task(): LanguageTask {
    this.#task ??= this.named(() => readTask(this.hp.file));
    return this.#task;
  }

  /** @throws InputError for a text that the tokenizer lacks characters of, and for a prompt that no row holds */
  get #rows(): readonly NumberedRow[] {
    this.#made ??= this.named(() => this.#rowsOf(this.task));
    return this.#made;
  }

  override get batchUnit(): BatchUnit {
    return TOKEN_UNIT;
  }

  override rowTraits(): RowTraits {
    return { labels: 'next tokens' };
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    return path === 'ids' || path === 'labels' ? this.hp.tokenizer : null;
  }

  override knownIdentity(): DataIdentity | null {
    const { tokenizer } = this.hp;
    const [identity, learned] = [tokenizer.identity(), tokenizer.learned()];
    return {
      vocabSize: tokenizer.vocabSize,
      tokenizer: { class: tokenizer.constructor.name, identity, learned },
    };
  }

  override dataIdentity(): DataIdentity {
    const { file } = this.hp;
    const path = resolve(file);
    return { ...this.knownIdentity(), files: [{ name: file, path, size: statSync(path).size }] };
  }

  protected override get numRows(): number {
    return this.#rows.length;
  }

  protected override identity() {
    return { file: this.hp.file };
  }

  protected override emptyBatch(): Batch {
    const { batchSize, seqLen } = this.hp;
    const perRow = { shape: [batchSize], dtype: 'int32' } as const;
    return paddingOf({
      ...lmBatchSpecs(batchSize, seqLen, true),
      ...{ [EXAMPLE_IDS]: perRow, perExampleMaxDecodeSteps: perRow },
      evalSampleWeights: { shape: [batchSize], dtype: 'float32' },
    });
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    const { ids, from, id, most } = this.#rows[row]!;
    const { seqLen } = this.hp;
    const write = (name: string, at: number, values: ArrayLike<number>) =>
      (batch[name] as HostTensor).data.set(values as never, at);
    // A prompt's last token has no label.
    const count = most > 0 ? ids.length : ids.length - 1;
    const at = b * seqLen;
    write('ids', at, ids.slice(0, count));
    write('labels', at, ids.slice(1));
    write('paddings', at, new Float32Array(count));
    write(
      'weights',
      at,
      Array.from({ length: ids.length - 1 }, (_, i) => Number(i + 1 >= from)),
    );
    write('segmentIds', at, new Int32Array(count).fill(1));
    write('segmentPos', at, [...Array(count).keys()]);
    write(EXAMPLE_IDS, b, [id]);
    write('perExampleMaxDecodeSteps', b, [most]);
    write('evalSampleWeights', b, [1]);
  }

  #rowsOf(task: LanguageTask): NumberedRow[] {
    const { tokenizer, seqLen } = this.hp;
    if (task.kind === 'exactMatch')
      return task.examples.map(({ prompt, maxTokens }, id) => {
        const encoded = [...tokenizer.encode(prompt)];
        const start = tokenizer.promptStart;
        const ids = start.every((each, i) => encoded[i] === each) ? encoded : [...start, ...encoded];
        if (ids.length >= seqLen || ids.length === 0)
          throw new InputError(
            `${this.hp.file}: prompt ${id} has ${ids.length} tokens, and there is room for 1 to ${seqLen - 1} before an answer (seqLen).`,
          );
        return { ids, from: ids.length, id, most: Math.min(maxTokens, seqLen - ids.length) };
      });
    const encoder = {
      encode: (text: string) => tokenizer.encode(text),
      ...{ prefixId: tokenizer.bosId ?? tokenizer.eosId ?? 0, maxTokens: seqLen },
    };
    return scoredTexts(task, encoder).flatMap((rows, id) => rows.map((row) => ({ ...row, id, most: 0 })));
  }
}
