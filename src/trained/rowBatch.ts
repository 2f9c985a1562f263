/** @file The rows of a batch that decodes without end: completions join it and leave it between steps. */
import { PREFILL_STEPS, type Stepper } from '../decoding/index.js';
import type { Completion } from './completion.js';
import type { Source } from './sourceTexts.js';

/** A completion that waits for a row, and the arrays of its source where it has one. */
export interface Waiting {
  readonly completion: Completion;
  readonly source?: Source | undefined;
}

/** A completion in a row. */
interface Row {
  readonly completion: Completion;
  /** The last token, which the next step takes, and its position. */
  id: number;
  position: number;
}

/** A completion whose prompt is being computed for a row. */
interface Filling {
  readonly row: number;
  readonly completion: Completion;
  readonly blocks: AsyncGenerator<number, void, undefined>;
}

/**
 * Rows of completions, each with its own rule. A row that is free takes the next one between two steps: the prompt is computed
 * aside, block by block, while the others go on (as Orca schedules, Yu et al. 2022, with prompts in chunks). No bit of a
 * completion depends on those beside it.
 */
export class RowBatch {
  readonly #rows = new Map<number, Row>();
  readonly #ids: Int32Array;
  readonly #positions: Int32Array;
  #filling: Filling | undefined;

  /** @param stepper whose rows are apart. @param seqlen tokens of a prompt and its continuation, at most. */
  constructor(
    private readonly stepper: Stepper,
    private readonly seqlen: number,
  ) {
    this.#ids = new Int32Array(stepper.rows);
    this.#positions = new Int32Array(stepper.rows);
  }

  /** Completions that have a row. */
  get completions(): readonly Completion[] {
    const rows = this.#filling ? [this.#filling, ...this.#rows.values()] : [...this.#rows.values()];
    return rows.map(({ completion }) => completion);
  }

  /** Frees the rows of ended completions, gives them to the next ones, and draws a token of each. */
  async advance(next: () => Waiting | undefined): Promise<void> {
    for (const [row, { completion }] of this.#rows)
      if (completion.finishReason !== undefined) this.#rows.delete(row);
    await this.#fill(next);
    if (this.#rows.size > 0) await this.#extend();
  }

  /** Computes the prompts of free rows: one block between two steps, or some short ones. */
  async #fill(next: () => Waiting | undefined): Promise<void> {
    for (let steps = 0; steps < PREFILL_STEPS; ) {
      this.#filling ??= this.#begin(next);
      if (this.#filling === undefined) return;
      const { row, completion, blocks } = this.#filling;
      try {
        const { value, done } = await blocks.next();
        steps += value ?? 0;
        const isWanted = completion.finishReason === undefined;
        if (isWanted && !done) continue;
        const position = completion.promptIds.length - 1;
        if (isWanted) this.#rows.set(row, { completion, id: completion.promptIds[position]!, position });
      } catch (error) {
        completion.fail(error);
      }
      this.#filling = undefined;
    }
  }

  #begin(next: () => Waiting | undefined): Filling | undefined {
    const row = this.#ids.findIndex((_, i) => !this.#rows.has(i));
    const waiting = row < 0 ? undefined : next();
    if (waiting === undefined) return undefined;
    const { completion, source } = waiting;
    const before = completion.promptIds.subarray(0, -1);
    return { row, completion, blocks: this.stepper.fillRow(row, before, source) };
  }

  async #extend(): Promise<void> {
    // Free rows take token 0 at position 0, which a later prompt replaces.
    this.#ids.fill(0);
    this.#positions.fill(0);
    for (const [i, { id, position }] of this.#rows) {
      this.#ids[i] = id;
      this.#positions[i] = position;
    }
    const logits = await this.stepper.extendRows(this.#ids, this.#positions);
    const vocabulary = logits.length / this.#ids.length;
    for (const [i, row] of this.#rows) {
      const { completion } = row;
      if (completion.finishReason !== undefined) continue;
      row.id = completion.select(logits.subarray(i * vocabulary, (i + 1) * vocabulary));
      row.position++;
      const isEnded = completion.accept(row.id);
      if (!isEnded && row.position === this.seqlen - 1) completion.end();
    }
  }
}
