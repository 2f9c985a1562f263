/** @file Prompt lookup: greedy decoding that takes what followed the last tokens before as a draft (Saxena, 2023). */
import { z } from 'zod';
import { BaseDecoder, type Continuation, type DecodeOutput, type DecodeRequest } from './decoder.js';
import { adjustmentsOf } from './logitAdjustments.js';
import { GREEDY } from './sampledIds.js';
import { logProbability, type SamplingRule, sampleId } from './sampling.js';

/** A row of a decode. */
class LookupRow implements Continuation {
  readonly ids: number[] = [];
  readonly logprobs: number[] = [];
  isDone: boolean;

  constructor(
    /** Prompt and continuation. */
    readonly tokens: number[],
    private readonly limit: number,
    private readonly eosIds: ReadonlySet<number>,
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
    this.isDone = this.eosIds.has(id) || this.ids.length >= this.limit;
  }
}

/** The tokens, `most` at most, that followed the newest earlier place of the longest end of `tokens`, up to `longest` of them. */
export function lookedUp(tokens: readonly number[], longest: number, most: number): number[] {
  for (let size = Math.min(longest, tokens.length - 1); size > 0; size--) {
    const end = tokens.length - size;
    for (let begin = end - 1; begin >= 0; begin--) {
      let same = 0;
      while (same < size && tokens[begin + same] === tokens[end + same]) same++;
      if (same === size) return tokens.slice(begin + size, begin + size + most);
    }
  }
  return [];
}

/**
 * Takes the most likely token at every position, as GreedyDecoder does, several a call where the text repeats itself. Outputs
 * are [B, 1, T] and [B, 1].
 */
export class PromptLookupDecoder extends BaseDecoder.with({
  numDraftTokens: z.int().positive().default(8).describe('Tokens of a draft, at most.'),
  maxNgram: z.int().positive().default(3).describe('Last tokens that are looked up, at most.'),
}) {
  override get draftTokens(): number {
    return this.hp.numDraftTokens;
  }

  override async decode(request: DecodeRequest): Promise<DecodeOutput> {
    const { seqlen, maxDecodeSteps, minDecodeSteps, numDraftTokens } = this.hp;
    const { positions } = await this.takePrompts(request);
    const { data, shape } = request.prefixIds;
    const rows = Array.from(positions, (position, row) => {
      const begin = row * shape[1]!;
      const limit = Math.min(maxDecodeSteps ?? seqlen, seqlen - 1 - position);
      return new LookupRow([...data.subarray(begin, begin + position + 1)], limit, this.eosIds);
    });
    while (rows.some(({ isDone }) => !isDone)) {
      const hasRoom = rows.every(({ tokens }) => tokens.length + numDraftTokens <= seqlen);
      const mayEnd = rows.every(({ ids, isDone }) => isDone || ids.length >= minDecodeSteps);
      await (hasRoom && mayEnd && request.extendDrafts
        ? this.takeDrafts(request, rows)
        : this.takeOne(request, rows));
    }
    return this.outputOf(
      request,
      rows.map((row) => [row]),
    );
  }

  /** A token of each row by its logits. */
  private async takeOne({ extendRows }: DecodeRequest, rows: readonly LookupRow[]): Promise<void> {
    const rule: SamplingRule = { ...GREEDY, adjustments: adjustmentsOf(this.adjustments) };
    const last = Int32Array.from(rows, ({ tokens }) => tokens.at(-1)!);
    const logits = await extendRows!(last, positionsOf(rows));
    const size = logits.length / rows.length;
    for (const [row, one] of rows.entries()) {
      if (one.isDone) continue;
      const own = logits.subarray(row * size, (row + 1) * size);
      const id = sampleId(own, rule, 0, { ids: one.tokens, promptLength: one.promptLength });
      one.accept(id, logProbability(own, id));
    }
  }

  /** Tokens of each row as long as its draft has them, and the one behind these. */
  private async takeDrafts({ extendDrafts }: DecodeRequest, rows: readonly LookupRow[]): Promise<void> {
    const { numDraftTokens, maxNgram } = this.hp;
    const size = numDraftTokens + 1;
    const drafts = rows.map(({ tokens, isDone }) =>
      isDone ? [] : lookedUp(tokens, maxNgram, numDraftTokens),
    );
    const ids = new Int32Array(rows.length * size);
    for (const [row, { tokens }] of rows.entries()) ids.set([tokens.at(-1)!, ...drafts[row]!], row * size);
    const { ids: likeliest, logprobs } = await extendDrafts!(ids, positionsOf(rows));
    for (const [row, one] of rows.entries()) {
      const draft = drafts[row]!;
      for (let i = 0; i <= draft.length && !one.isDone; i++) {
        const id = likeliest[row * size + i]!;
        one.accept(id, logprobs[row * size + i]!);
        if (id !== draft[i]) break;
      }
    }
  }
}

/** Positions of the last tokens. */
const positionsOf = (rows: readonly LookupRow[]): Int32Array =>
  Int32Array.from(rows, ({ tokens }) => tokens.length - 1);
