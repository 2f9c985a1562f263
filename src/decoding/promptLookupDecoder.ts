/** @file Prompt lookup: greedy decoding that takes what followed the last tokens before as a draft (Saxena, 2023). */
import { z } from 'zod';
import { type ConstrainedText, isAllowed, type TokenBits } from './constraints/index.js';
import type { DecodeRequest } from './decoder.js';
import { DraftDecoder, type DraftedRow, positionsOf, withDrafts } from './draftDecoder.js';
import { adjustmentsOf } from './logitAdjustments.js';
import { GREEDY } from './sampledIds.js';
import { sampleId } from './sampling.js';

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
export class PromptLookupDecoder extends DraftDecoder.with({
  maxNgram: z.int().positive().default(3).describe('Last tokens that are looked up, at most.'),
}) {
  protected override drawOne(logits: Float32Array, row: DraftedRow): number {
    const { tokens: ids, promptLength, text } = row;
    const rule = { ...GREEDY, adjustments: adjustmentsOf(this.adjustments) };
    return sampleId(logits, rule, 0, { ids, promptLength }, this.allowedAfter(text, row));
  }

  protected override mayDraft(request: DecodeRequest, rows: readonly DraftedRow[]): boolean {
    const mayEnd = rows.every(({ ids, isDone }) => isDone || ids.length >= this.hp.minDecodeSteps);
    return mayEnd && super.mayDraft(request, rows);
  }

  /** Takes tokens of each row as long as its draft has them, and the one behind these. */
  protected override async takeDrafts(
    { extendDrafts }: DecodeRequest,
    rows: readonly DraftedRow[],
  ): Promise<void> {
    const { numDraftTokens, maxNgram } = this.hp;
    const size = numDraftTokens + 1;
    const allowed: (TokenBits | undefined)[] = new Array(rows.length * size);
    const drafts = rows.map(({ tokens, isDone, text }, row) => {
      if (isDone) return [];
      const draft = lookedUp(tokens, maxNgram, numDraftTokens);
      return text ? allowedDraft(text, draft, (at, bits) => (allowed[row * size + at] = bits)) : draft;
    });
    const ids = withDrafts(rows, drafts, numDraftTokens);
    const { ids: likeliest, logprobs } = await extendDrafts!(ids, positionsOf(rows), allowed);
    for (const [row, one] of rows.entries()) {
      const draft = drafts[row]!;
      for (let i = 0; i <= draft.length && !one.isDone; i++) {
        const place = row * (numDraftTokens + 1) + i;
        const id = likeliest[place]!;
        one.accept(id, logprobs[place]!);
        if (id !== draft[i]) break;
      }
    }
  }
}

/**
 * A draft up to its first token that a constraint does not allow.
 *
 * @param tell is given the tokens that are allowed at each place, that behind the draft included.
 */
function allowedDraft(
  text: ConstrainedText,
  draft: readonly number[],
  tell: (at: number, allowed: TokenBits) => void,
): number[] {
  let [at, so] = [0, text];
  for (; ; at++) {
    const allowed = so.allowed();
    tell(at, allowed);
    const id = draft[at];
    if (id === undefined || !isAllowed(allowed, id)) break;
    so = so.with(id);
    if (so.isOver) break;
  }
  return draft.slice(0, at);
}
