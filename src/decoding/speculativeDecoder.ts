/** @file Speculative decoding: a small model drafts, and the model keeps what it might have drawn itself. */
import { z } from 'zod';
import { foldIn } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { BaseLayer } from '../layers/index.js';
import type { DecodeRequest } from './decoder.js';
import { DraftDecoder, type DraftedRow, positionsOf, withDrafts } from './draftDecoder.js';
import { adjustmentsOf } from './logitAdjustments.js';
import { takeColumns, unitDouble } from './promptRows.js';
import {
  type Distribution,
  distributionOf,
  drawFrom,
  logProbability,
  type SamplingRule,
  sampleId,
} from './sampling.js';

/** Uses of the three random numbers of a position. */
const [DRAFT, KEEP, REPLACE] = [0, 1, 2];

/** A drafted token, and the distribution that it was drawn from. */
interface Drafted {
  readonly id: number;
  readonly from: Distribution;
}

/**
 * Draws as SampleDecoder does from the model's own distribution, several tokens a call (Leviathan et al., 2023): a drafted token
 * is kept with probability min(1, p / q) of its probabilities by the model and by the draft model; in the place of the first
 * that is not, one is drawn from max(0, p - q). With `temperature` 0 the text is that of GreedyDecoder. Outputs are [B, 1, T]
 * and [B, 1].
 */
export class SpeculativeDecoder extends DraftDecoder.with({
  draftTpl: sub(BaseLayer, null).describe('The model that drafts, of the same token ids.'),
  draftCheckpoint: z.string().describe("Run directory, or checkpoint, that has the draft model's variables."),
  numDraftTokens: z.int().positive().default(4).describe('Tokens of a draft, at most.'),
  temperature: z.number().nonnegative().default(1).describe('Divides the logits; 0 is greedy.'),
  k: z.int().nonnegative().default(40).describe('Draws from the k most likely tokens; 0 for all.'),
  p: z
    .number()
    .positive()
    .max(1)
    .nullable()
    .default(null)
    .describe(
      'Draws from the fewest likely tokens whose probabilities sum to p or more (nucleus); null for all.',
    ),
}) {
  override get draft() {
    const { draftTpl: model, draftCheckpoint: checkpoint } = this.hp;
    return { model, checkpoint };
  }

  #made: SamplingRule | undefined;

  get #rule(): SamplingRule {
    const { temperature, k, p } = this.hp;
    this.#made ??= { temperature, k, p, adjustments: adjustmentsOf(this.adjustments) };
    return this.#made;
  }

  protected override mayDraft(request: DecodeRequest, rows: readonly DraftedRow[]): boolean {
    return request.draft !== undefined && super.mayDraft(request, rows);
  }

  protected override async beginDrafts({ draft, prefixIds, prefixLengths }: DecodeRequest): Promise<void> {
    if (draft === undefined) return;
    const last = prefixLengths.data.map((length) => Math.max(1, length) - 1);
    const count = Math.max(...last);
    if (count > 0) await draft.prefill!(takeColumns(prefixIds, count), count, last);
  }

  /** The number in [0, 1) for the token of a row at `position`: the same whatever was drafted there before. */
  #number({ key }: DecodeRequest, { index }: DraftedRow, position: number, use: number): number {
    return unitDouble(foldIn(foldIn(key, index), 3 * position + use));
  }

  protected override drawOne(logits: Float32Array, row: DraftedRow, request: DecodeRequest): number {
    const { tokens: ids, promptLength, text } = row;
    const number = this.#number(request, row, ids.length, DRAFT);
    return sampleId(logits, this.#rule, number, { ids, promptLength }, this.allowedAfter(text, row));
  }

  protected override async takeDrafts(request: DecodeRequest, rows: readonly DraftedRow[]): Promise<void> {
    const { numDraftTokens } = this.hp;
    const drafts = await this.#drafts(request, rows);
    const ids = withDrafts(
      rows,
      drafts.map((draft) => draft.map(({ id }) => id)),
      numDraftTokens,
    );
    const logits = await request.extendDraftLogits!(ids, positionsOf(rows));
    const size = logits.length / ids.length;
    for (const [row, one] of rows.entries()) {
      const logitsAt = (place: number): Float32Array => {
        const begin = (row * (numDraftTokens + 1) + place) * size;
        return logits.subarray(begin, begin + size);
      };
      if (!one.isDone) this.#keep(request, one, drafts[row]!, logitsAt);
    }
  }

  /** Drafts of all rows. */
  async #drafts(request: DecodeRequest, rows: readonly DraftedRow[]): Promise<Drafted[][]> {
    const { extendRows } = request.draft!;
    const drafts = rows.map((): Drafted[] => []);
    // A draft that was kept whole has ended with a token that the draft model has not read. Others read theirs again.
    if (rows.some(({ isBehind }) => isBehind)) {
      const places = positionsOf(rows).map((position) => Math.max(0, position - 1));
      await extendRows!(
        places.map((place, row) => rows[row]!.tokens[place]!),
        places,
      );
    }
    const current = Int32Array.from(rows, ({ tokens }) => tokens.at(-1)!);
    /** Continuations with their drafts. */
    const texts = rows.map(({ text }) => text);
    for (let step = 0; step < this.hp.numDraftTokens; step++) {
      const positions = positionsOf(rows).map((position) => position + step);
      const logits = await extendRows!(current, positions);
      const size = logits.length / rows.length;
      for (const [row, one] of rows.entries()) {
        if (one.isDone || texts[row]?.isOver) continue;
        const before = [...one.tokens, ...drafts[row]!.map(({ id }) => id)];
        const given = { ids: before, promptLength: one.promptLength };
        const allowed = this.allowedAfter(texts[row], one, drafts[row]!.length);
        const own = logits.subarray(row * size, (row + 1) * size);
        const from = distributionOf(own, this.#rule, given, allowed);
        const id = drawFrom(from, this.#number(request, one, before.length, DRAFT));
        drafts[row]!.push({ id, from });
        texts[row] = texts[row]?.with(id);
        current[row] = id;
      }
    }
    return drafts;
  }

  /** Takes the tokens of a draft that are kept, and one more. @param logitsAt those of the model after each place */
  #keep(
    request: DecodeRequest,
    row: DraftedRow,
    draft: readonly Drafted[],
    logitsAt: (place: number) => Float32Array,
  ): void {
    row.isBehind = false;
    for (let place = 0; place <= draft.length && !row.isDone; place++) {
      const logits = logitsAt(place);
      const { tokens, promptLength } = row;
      const allowed = this.allowedAfter(row.text, row);
      const target = distributionOf(logits, this.#rule, { ids: tokens, promptLength }, allowed);
      const drafted = draft[place];
      const number = (use: number) => this.#number(request, row, tokens.length, use);
      const isKept =
        drafted !== undefined &&
        number(KEEP) * probabilityOf(drafted.from, drafted.id) < probabilityOf(target, drafted.id);
      const id = isKept ? drafted.id : drawFrom(without(target, drafted?.from), number(REPLACE));
      row.accept(id, logProbability(logits, id));
      if (!isKept) {
        row.isBehind = place === draft.length;
        return;
      }
    }
  }
}

function probabilityOf({ ids, weights, total }: Distribution, id: number): number {
  const place = ids.indexOf(id);
  return place < 0 ? 0 : weights[place]! / total;
}

/** max(0, p - q) of two distributions; p where there is no q, or where rounding leaves nothing. */
function without(p: Distribution, q: Distribution | undefined): Distribution {
  if (q === undefined) return p;
  const drafted = new Map(Array.from(q.ids, (id, i) => [id, q.weights[i]! / q.total]));
  const weights = p.weights.map((weight, i) => Math.max(0, weight / p.total - (drafted.get(p.ids[i]!) ?? 0)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? { ids: p.ids, weights, total } : p;
}
