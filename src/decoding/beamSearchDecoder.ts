/** @file Beam search, with Pax's fields (praxis/beam_search.py, praxis/flat_beam_search.py). */
import { z } from 'zod';
import { ConfigError } from '../hparams/index.js';
import { allowedLogits } from './constraints/index.js';
import { BaseDecoder, type DecodeOutput, type DecodeRequest } from './decoder.js';
import type { AllowedTokens, Candidates } from './decodingModel.js';
import { CONVENTIONS, Hypotheses, type NextTokens } from './hypotheses.js';
import { logProbability, topK } from './sampling.js';
import type { CandidateRule } from './stepPrograms.js';

/**
 * Keeps the `beamSize` likeliest continuations of each prompt from token to token (Sutskever et al., 2014, section 3.2), and
 * gives those with the best scores, best first: sums of log-probabilities over a norm of the length. Outputs are
 * [B, beamSize, …]. Continuations that end come before those that the limit cuts.
 */
export class BeamSearchDecoder extends BaseDecoder.with({
  beamSize: z.int().positive().default(1).describe('Continuations of each prompt that are kept.'),
  tokensPerBeam: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      'Next tokens of each continuation that are compared; null for as many as the convention compares.',
    ),
  lengthNormAlpha: z.number().default(0.8).describe('Exponent of the norm of a length; 0 for none.'),
  earlyExit: z
    .boolean()
    .default(false)
    .describe(
      'Whether a search ends once beamSize continuations have ended, rather than once none can be better.',
    ),
  convention: z
    .enum(['pax', 'transformers'])
    .default('pax')
    .describe(
      'Norm of n tokens: ((n + 5) / 5)^alpha, and any continuation may end at each token (pax); or n^alpha, and only those end that are among the beamSize best (transformers).',
    ),
}) {
  override numRows(batchSize: number): number {
    return batchSize * this.hp.beamSize;
  }

  override get candidates(): CandidateRule {
    const ids = [...this.eosIds];
    // Ends that come too early are left out.
    return { count: this.perBeam + (this.hp.minDecodeSteps > 0 ? ids.length : 0), ids };
  }

  /** Next tokens of each continuation that are compared. */
  private get perBeam(): number {
    const { beamSize, tokensPerBeam, convention } = this.hp;
    return CONVENTIONS[convention].perBeam(beamSize, tokensPerBeam, this.eosIds.size);
  }

  /** Tokens after a prompt, at most. @throws ConfigError where it is not set */
  protected get mostSteps(): number {
    const { maxDecodeSteps } = this.hp;
    if (maxDecodeSteps !== null) return maxDecodeSteps;
    throw new ConfigError(
      `${this.constructor.name}.maxDecodeSteps: expected the most tokens after a prompt, which a beam search needs, got null.`,
    );
  }

  override async decode(request: DecodeRequest): Promise<DecodeOutput> {
    const { beamSize, seqlen } = this.hp;
    this.checkRequest(request);
    const { mostSteps } = this;
    const { ids, positions: starts } = await this.takePrompts(request);
    const constraint = this.constraintOn(request);
    const settings = { ...this.hp, eosIds: [...this.eosIds], perBeam: this.perBeam, constraint };
    const searches = Array.from({ length: starts.length / beamSize }, (_, prompt) => {
      const limit = Math.min(mostSteps, seqlen - 1 - starts[prompt * beamSize]!);
      return new Hypotheses({ ...settings, limit });
    });
    let [current, positions] = [ids, starts];
    while (searches.some(({ isDone }) => !isDone)) {
      const allowed = constraint && searches.flatMap((search) => search.allowed);
      const next = nextTokens(await this.extend(request, current, positions, allowed), starts.length);
      const origins = searches.flatMap((search, prompt) => {
        const first = prompt * beamSize;
        if (search.isDone) return Array.from({ length: beamSize }, (_, i) => first + i);
        return search.advance(next.slice(first, first + beamSize)).map((row) => first + row);
      });
      request.reorder!(origins, Math.max(...positions) + 1);
      positions = starts.map((start, row) => start + searches[Math.floor(row / beamSize)]!.length);
      // Rows of searches that have ended stay within the sequence.
      positions = positions.map((position) => Math.min(position, seqlen - 1));
      current = Int32Array.from(searches.flatMap(({ lastIds }) => lastIds));
    }
    const best = searches.map((search) => search.best);
    const scores = Float32Array.from(best.flat(), ({ score }) => score);
    return {
      ...this.outputOf(request, best),
      scores: { shape: [best.length, beamSize], dtype: 'float32', data: scores },
    };
  }

  /** The next tokens by the program that gives them, or by logits. */
  private async extend(
    request: DecodeRequest,
    ids: Int32Array,
    positions: Int32Array,
    allowed: AllowedTokens | undefined,
  ): Promise<Candidates> {
    const { extendCandidates, extendRows } = request;
    if (extendCandidates) return extendCandidates(ids, positions, allowed);
    const logits = await extendRows!(ids, positions);
    const vocabulary = logits.length / ids.length;
    const { count, ids: ends } = this.candidates;
    const rows = Array.from(ids, (_, row) => logits.subarray(row * vocabulary, (row + 1) * vocabulary));
    const mayDraw = rows.map((own, row) => (allowed?.[row] ? allowedLogits(own, allowed[row]!) : own));
    const likeliest = mayDraw.map((row) => [...topK(row, count)]);
    const logprobOf = (row: number, id: number): number =>
      mayDraw[row]![id]! === Number.NEGATIVE_INFINITY
        ? Number.NEGATIVE_INFINITY
        : logProbability(rows[row]!, id);
    const logprobs = (of: (row: number) => readonly number[]) =>
      Float32Array.from(rows.flatMap((_, row) => of(row).map((id) => logprobOf(row, id))));
    return {
      ids: Int32Array.from(likeliest.flat()),
      logprobs: logprobs((row) => likeliest[row]!),
      logprobsOf: logprobs(() => ends),
    };
  }
}

/** Beam search without a limit of its own: of tokens there are as many as seqlen allows. */
export class FlatBeamSearchDecoder extends BeamSearchDecoder {
  protected override get mostSteps(): number {
    return this.hp.maxDecodeSteps ?? this.hp.seqlen;
  }
}

/** Candidates by row. */
function nextTokens({ ids, logprobs, logprobsOf }: Candidates, rows: number): NextTokens[] {
  const [count, ends] = [ids.length / rows, logprobsOf.length / rows];
  return Array.from({ length: rows }, (_, row) => ({
    ids: ids.slice(row * count, (row + 1) * count),
    logprobs: logprobs.slice(row * count, (row + 1) * count),
    ends: logprobsOf.slice(row * ends, (row + 1) * ends),
  }));
}
