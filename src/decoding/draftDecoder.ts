/** @file Base of decoders that draft several tokens of each row, which the model then reads in one call. */
import { z } from 'zod';
import type { ConstrainedText } from './constraints/index.js';
import { BaseDecoder, type Continuation, type DecodeOutput, type DecodeRequest } from './decoder.js';
import { logProbability } from './sampling.js';

/** A row of a decode. */
export class DraftedRow implements Continuation {
  readonly ids: number[] = [];
  readonly logprobs: number[] = [];
  isDone: boolean;
  /** Whether a draft model has read all tokens but the last two. */
  isBehind = false;

  constructor(
    /** Number of the row. */
    readonly index: number,
    /** Prompt and continuation. */
    readonly tokens: number[],
    private readonly limit: number,
    private readonly eosIds: ReadonlySet<number>,
    /** The continuation under a constraint. */
    public text: ConstrainedText | undefined,
  ) {
    this.isDone = limit <= 0;
  }

  get promptLength(): number {
    return this.tokens.length - this.ids.length;
  }

  accept(id: number, logprob: number): void {
    this.ids.push(id);
    this.tokens.push(id);
    this.logprobs.push(logprob);
    this.text = this.text?.with(id);
    this.isDone = this.eosIds.has(id) || this.ids.length >= this.limit || this.text?.isOver === true;
  }
}

/** Drafts tokens and has the model read them. Outputs are [B, 1, T] and [B, 1]. */
export abstract class DraftDecoder extends BaseDecoder.with({
  numDraftTokens: z.int().positive().default(4).describe('Tokens of a draft, at most.'),
}) {
  static override readonly isAbstract = true;

  override get draftTokens(): number {
    return this.hp.numDraftTokens;
  }

  /** Takes the prompts, where drafts come from a model of their own. */
  protected async beginDrafts(_request: DecodeRequest): Promise<void> {}

  /** Draws the next token of a row without a draft. */
  protected abstract drawOne(logits: Float32Array, row: DraftedRow, request: DecodeRequest): number;

  /** Drafts tokens of each row that is not done, has the model read them, and takes those that it keeps and one more. */
  protected abstract takeDrafts(request: DecodeRequest, rows: readonly DraftedRow[]): Promise<void>;

  /** Whether drafts may stand in all rows' next places. */
  protected mayDraft({ extendDrafts }: DecodeRequest, rows: readonly DraftedRow[]): boolean {
    return (
      extendDrafts !== undefined &&
      rows.every(({ tokens }) => tokens.length + this.hp.numDraftTokens <= this.hp.seqlen)
    );
  }

  override async decode(request: DecodeRequest): Promise<DecodeOutput> {
    const { seqlen, maxDecodeSteps } = this.hp;
    const { positions } = await this.takePrompts(request);
    await this.beginDrafts(request);
    const constraint = this.constraintOn(request);
    const { data, shape } = request.prefixIds;
    const rows = Array.from(positions, (position, row) => {
      const begin = row * shape[1]!;
      const limit = Math.min(maxDecodeSteps ?? seqlen, seqlen - 1 - position);
      const tokens = [...data.subarray(begin, begin + position + 1)];
      return new DraftedRow(row, tokens, limit, this.eosIds, constraint?.begin());
    });
    while (rows.some(({ isDone }) => !isDone))
      await (this.mayDraft(request, rows) ? this.takeDrafts(request, rows) : this.#takeOne(request, rows));
    return this.outputOf(
      request,
      rows.map((row) => [row]),
    );
  }

  /** The tokens that a row may draw after `text`, its continuation or that with a draft of `count` tokens behind. */
  protected allowedAfter(text: ConstrainedText | undefined, { ids }: DraftedRow, count = 0) {
    return text?.allowed(ids.length + count >= this.hp.minDecodeSteps);
  }

  /** A token of each row by its logits. */
  async #takeOne(request: DecodeRequest, rows: readonly DraftedRow[]): Promise<void> {
    const last = Int32Array.from(rows, ({ tokens }) => tokens.at(-1)!);
    const logits = await request.extendRows!(last, positionsOf(rows));
    const size = logits.length / rows.length;
    for (const [row, one] of rows.entries()) {
      if (one.isDone) continue;
      const own = logits.subarray(row * size, (row + 1) * size);
      const id = this.drawOne(own, one, request);
      one.accept(id, logProbability(own, id));
    }
  }
}

/** Positions of the last tokens. */
export const positionsOf = (rows: readonly DraftedRow[]): Int32Array =>
  Int32Array.from(rows, ({ tokens }) => tokens.length - 1);

/** The last token of each row and its draft, [rows, most + 1]. */
export function withDrafts(
  rows: readonly DraftedRow[],
  drafts: readonly (readonly number[])[],
  most: number,
): Int32Array {
  const ids = new Int32Array(rows.length * (most + 1));
  for (const [row, { tokens }] of rows.entries())
    ids.set([tokens.at(-1)!, ...drafts[row]!], row * (most + 1));
  return ids;
}
