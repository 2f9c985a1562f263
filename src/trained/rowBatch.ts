/** @file The rows of a batch that decodes without end: completions join it and leave it between steps. */
import { type FilledBlock, PREFILL_STEPS, type RowFill, type Stepper } from '../decoding/index.js';
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
  readonly fill: RowFill;
}

/**
 * Rows of completions, each with its own rule. A row that is free takes the next one: the prompt is computed aside, block by
 * block, between the steps of the others or in one program with them (as Orca schedules, Yu et al. 2022, with prompts in
 * chunks). No bit of a completion depends on those beside it.
 */
export class RowBatch {
  readonly #rows = new Map<number, Row>();
  readonly #ids: Int32Array;
  readonly #positions: Int32Array;
  /** Free rows whose tokens still have memory. */
  readonly #left = new Set<number>();
  #filling: Filling | undefined;

  /**
   * @param stepper whose rows are apart.
   * @param seqlen tokens of a prompt and its continuation, at most.
   * @param cacheTokens tokens of all rows, at most; no less than `seqlen`.
   */
  constructor(
    private readonly stepper: Stepper,
    private readonly seqlen: number,
    private readonly cacheTokens = stepper.rows * seqlen,
  ) {
    this.#ids = new Int32Array(stepper.rows);
    this.#positions = new Int32Array(stepper.rows);
  }

  /** Completions that have a row. */
  get completions(): readonly Completion[] {
    const rows = this.#filling ? [this.#filling, ...this.#rows.values()] : [...this.#rows.values()];
    return rows.map(({ completion }) => completion);
  }

  /** Tokens that a completion may have in the end. */
  #most({ mostTokens }: Completion): number {
    return Math.min(this.seqlen, mostTokens);
  }

  /** Whether all rows have memory for a completion's tokens, however long they all become. */
  hasRoom(completion: Completion): boolean {
    const taken = this.completions.reduce((sum, each) => sum + this.#most(each), 0);
    return taken + this.#most(completion) <= this.cacheTokens;
  }

  /** Gives back the memory of rows that no completion takes; of all, once none is left: steps have written to free ones too. */
  #release(): void {
    if (this.#rows.size === 0) this.stepper.releaseAll();
    else for (const row of this.#left) this.stepper.releaseRow(row);
    this.#left.clear();
  }

  /** Frees the rows of ended completions, gives them to the next ones, and draws a token of each. */
  async advance(next: () => Waiting | undefined): Promise<void> {
    for (const [row, { completion }] of this.#rows)
      if (completion.finishReason !== undefined) this.#leave(row);
    const beside = await this.#fill(next);
    if (this.#filling === undefined) this.#release();
    if (beside || this.#rows.size === 0) return;
    this.#set();
    this.#draw(await this.#beside(this.stepper.extendRows(this.#ids, this.#positions)));
  }

  #leave(row: number): void {
    this.#rows.delete(row);
    this.#left.add(row);
  }

  /** The result of a step, while which the constraints of rows find their next tokens. */
  async #beside<T>(step: Promise<T>): Promise<T> {
    const rows = [...this.#rows.values()];
    // The step is under way once all that is resolved has run.
    if (rows.length > 0) setImmediate(() => rows.forEach(({ completion }) => void completion.prepare()));
    return step;
  }

  /** Sets the inputs of the next step. */
  #set(): void {
    // Free rows take token 0 at position 0, which a later prompt replaces.
    this.#ids.fill(0);
    this.#positions.fill(0);
    for (const [i, { id, position }] of this.#rows) {
      this.#ids[i] = id;
      this.#positions[i] = position;
    }
  }

  /**
   * Computes the prompts of free rows: one block between two steps, or some short ones.
   *
   * @returns whether the step was computed beside the block.
   */
  async #fill(next: () => Waiting | undefined): Promise<boolean> {
    for (let steps = 0; steps < PREFILL_STEPS; ) {
      this.#filling ??= this.#begin(next);
      if (this.#filling === undefined) return false;
      const taken = await this.#takeBlock(this.#filling);
      if (taken?.logits) this.#draw(taken.logits);
      if (taken === undefined || taken.isLast) {
        const { completion } = this.#filling;
        if (taken && completion.finishReason === undefined) this.#join(this.#filling, taken.next);
        else this.#left.add(this.#filling.row);
        this.#filling = undefined;
      }
      if (taken?.logits) return true;
      steps += taken?.steps ?? 0;
    }
    return false;
  }

  /** The next block of a prompt; none where its reader has left, or it fails. */
  async #takeBlock({ completion, fill }: Filling): Promise<FilledBlock | undefined> {
    if (completion.finishReason !== undefined) return undefined;
    try {
      this.#set();
      const step = { ids: this.#ids, positions: this.#positions };
      return await this.#beside(fill.take(this.#rows.size > 0 ? step : undefined));
    } catch (error) {
      completion.fail(error);
      return undefined;
    }
  }

  #begin(next: () => Waiting | undefined): Filling | undefined {
    const row = this.#ids.findIndex((_, i) => !this.#rows.has(i));
    const waiting = row < 0 ? undefined : next();
    if (waiting === undefined) return undefined;
    const { completion, source } = waiting;
    // What it may need stays, since another completion has just left it.
    this.#left.delete(row);
    this.stepper.releaseRow(row, this.#most(completion));
    const ids = completion.promptIds.subarray(0, completion.filled);
    return { row, completion, fill: this.stepper.fillRow(row, ids, source) };
  }

  /** Lets a completion take part in steps. @param next logits of the token after its prompt, where they are there */
  #join({ row, completion }: Filling, next: Float32Array | undefined): void {
    const position = completion.filled - 1;
    const joined = { completion, id: completion.promptIds[position]!, position };
    this.#rows.set(row, joined);
    if (next) this.#take(joined, next);
  }

  /** Draws a token of each row from the logits of a step, [rows * V]. */
  #draw(logits: Float32Array): void {
    const vocabulary = logits.length / this.#ids.length;
    for (const [i, row] of this.#rows)
      if (row.completion.finishReason === undefined)
        this.#take(row, logits.subarray(i * vocabulary, (i + 1) * vocabulary));
  }

  #take(row: Row, logits: Float32Array): void {
    const { completion } = row;
    row.position++;
    if (row.position < completion.promptIds.length) {
      row.id = completion.scorePrompt(row.position, logits);
      return;
    }
    try {
      row.id = completion.select(logits);
    } catch (error) {
      completion.fail(error);
      return;
    }
    const isEnded = completion.accept(row.id);
    if (!isEnded && row.position === this.seqlen - 1) completion.end();
  }
}
