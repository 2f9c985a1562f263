/** @file Hypotheses of a beam search on one prompt: live ones with rows of the model, ended ones by score. */
import type { ConstrainedText, TokenBits, TokenConstraint } from './constraints/index.js';
import type { Continuation } from './decoder.js';

/** How hypotheses of a convention are scored, and which of them end. */
interface Convention {
  /** Divisor of the sum of log-probabilities of `tokens` drawn tokens. */
  readonly norm: (tokens: number, alpha: number) => number;
  /** Whether every live hypothesis may end at each step, or only by a candidate among the `beamSize` best. */
  readonly endsAnywhere: boolean;
  /** Whether hypotheses end at the limit of tokens as by an end of a sequence. */
  readonly endsAtLimit: boolean;
  /** Candidates of each row that are compared. */
  readonly perBeam: (beamSize: number, tokensPerBeam: number | null, ends: number) => number;
}

/** Conventions of beam search by name. */
export const CONVENTIONS = {
  /** praxis/beam_search.py; its `length_norm` is that of Wu et al., 2016, over that of one token. */
  pax: {
    norm: (tokens, alpha) => ((tokens + 5) / 5) ** alpha,
    endsAnywhere: true,
    endsAtLimit: false,
    perBeam: (beamSize, tokensPerBeam) => tokensPerBeam ?? beamSize,
  },
  /** generation/utils.py of transformers, with early_stopping 'never' or true. */
  transformers: {
    norm: (tokens, alpha) => tokens ** alpha,
    endsAnywhere: false,
    endsAtLimit: true,
    perBeam: (beamSize, tokensPerBeam, ends) => tokensPerBeam ?? Math.max(2, 1 + ends) * beamSize,
  },
} as const satisfies Record<string, Convention>;

/** The fields of a search. */
export interface BeamSettings {
  readonly convention: keyof typeof CONVENTIONS;
  readonly beamSize: number;
  readonly lengthNormAlpha: number;
  readonly earlyExit: boolean;
  readonly minDecodeSteps: number;
  /** Candidates of a row that are compared. */
  readonly perBeam: number;
  /** Tokens of a continuation, at most. */
  readonly limit: number;
  readonly eosIds: readonly number[];
  /** Of continuations. */
  readonly constraint?: TokenConstraint | undefined;
}

/** The next tokens of a row: candidates, likeliest first, and the log-probabilities of `eosIds`. */
export interface NextTokens {
  readonly ids: ArrayLike<number>;
  readonly logprobs: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
}

/** A continuation without an end. */
interface Live extends Continuation {
  /** The row of the prompt, from 0, whose state it continues. */
  readonly row: number;
  /** Sum of the log-probabilities. */
  readonly sum: number;
  /** The text so far under a constraint. */
  readonly text?: ConstrainedText | undefined;
}

/** A continuation with its score. */
export interface Scored extends Continuation {
  readonly score: number;
}

const bestFirst = (a: { readonly score: number }, b: { readonly score: number }): number => b.score - a.score;

/** Beam search on one prompt. */
export class Hypotheses {
  /** By row: of fewer hypotheses than rows, the others are undefined. */
  private live: (Live | undefined)[];
  private ended: Scored[] = [];
  private steps = 0;

  constructor(private readonly settings: BeamSettings) {
    const { beamSize, limit, constraint } = settings;
    const first = { row: 0, sum: 0, ids: [], logprobs: [], text: constraint?.begin() };
    // The rows of a prompt are alike: one of them begins.
    this.live = Array.from({ length: beamSize }, (_, row) => (row === 0 && limit > 0 ? first : undefined));
  }

  /** Whether no further token changes the result. */
  get isDone(): boolean {
    const { earlyExit, limit, beamSize } = this.settings;
    const sums = this.live.flatMap((one) => (one ? [one.sum] : []));
    if (sums.length === 0 || this.steps >= limit) return true;
    if (this.ended.length < beamSize) return false;
    // Sums only fall; a longer continuation may have a larger divisor.
    const divisor = Math.max(this.norm(this.steps + 1), this.norm(limit));
    return earlyExit || Math.max(...sums) / divisor <= this.ended.at(-1)!.score;
  }

  private norm(tokens: number): number {
    const { convention, lengthNormAlpha } = this.settings;
    return CONVENTIONS[convention].norm(tokens, lengthNormAlpha);
  }

  /** The last token of each row; 0 where it has no hypothesis. */
  get lastIds(): number[] {
    return this.live.map((one) => one?.ids.at(-1) ?? 0);
  }

  /** The tokens that each row may draw; undefined where it has no hypothesis, or no constraint. */
  get allowed(): (TokenBits | undefined)[] {
    const mayEnd = this.steps >= this.settings.minDecodeSteps;
    return this.live.map((one) => one?.text?.allowed(mayEnd));
  }

  /** Tokens drawn so far. */
  get length(): number {
    return this.steps;
  }

  /**
   * Takes the next tokens of all rows.
   *
   * @returns for each row the one whose state it continues
   */
  advance(next: readonly NextTokens[]): number[] {
    const { convention, eosIds, limit, beamSize, minDecodeSteps, perBeam } = this.settings;
    const { endsAnywhere, endsAtLimit } = CONVENTIONS[convention];
    const mayEnd = this.steps >= minDecodeSteps;
    this.steps++;
    const isLast = this.steps === limit;
    const isEnd = ({ ids }: Live): boolean => eosIds.includes(ids.at(-1)!);
    const candidates = this.live
      .flatMap((one, row) => {
        if (!one) return [];
        const all = candidatesOf(one, row, next[row]!);
        return (mayEnd ? all : all.filter((other) => !isEnd(other))).slice(0, perBeam);
      })
      .sort((a, b) => b.sum - a.sum);
    const best = candidates.slice(0, beamSize);
    const ends = endsAnywhere
      ? this.everyEnd(next, mayEnd)
      : best.filter((one) => isEnd(one) || (isLast && endsAtLimit));
    this.take(ends);
    const going = isLast && endsAtLimit ? [] : candidates.filter((one) => !isEnd(one));
    return this.place(this.withTexts(going.slice(0, beamSize)));
  }

  /** Takes those behind which a constraint has nothing, and gives the others with their texts. */
  private withTexts(going: readonly Live[]): readonly Live[] {
    if (this.settings.constraint === undefined) return going;
    const read = going.map((one) => ({ ...one, text: this.live[one.row]!.text!.with(one.ids.at(-1)!) }));
    this.take(read.filter(({ text }) => text.isOver));
    return read.filter(({ text }) => !text.isOver);
  }

  /** Each live hypothesis with its likeliest end. */
  private everyEnd(next: readonly NextTokens[], mayEnd: boolean): Live[] {
    const { eosIds } = this.settings;
    if (!mayEnd || eosIds.length === 0) return [];
    return this.live.flatMap((one, row) => {
      if (!one) return [];
      const { ends } = next[row]!;
      const best = eosIds.map((_, i) => i).reduce((a, b) => (ends[b]! > ends[a]! ? b : a));
      if (ends[best] === Number.NEGATIVE_INFINITY) return [];
      return [extended(one, row, eosIds[best]!, ends[best]!)];
    });
  }

  private take(ends: readonly Live[]): void {
    const scored = ends.map((one) => ({ ...one, score: one.sum / this.norm(this.steps) }));
    this.ended = [...this.ended, ...scored].sort(bestFirst).slice(0, this.settings.beamSize);
  }

  /** Gives hypotheses rows: that of the state that they continue to the best of these, so that few states are copied. */
  private place(going: readonly Live[]): number[] {
    const rows: (Live | undefined)[] = this.live.map(() => undefined);
    const moved = going.filter((one) => {
      if (rows[one.row]) return true;
      rows[one.row] = one;
      return false;
    });
    for (const [row, kept] of rows.entries()) if (!kept) rows[row] = moved.shift();
    const origins = rows.map((one, row) => one?.row ?? row);
    this.live = rows.map((one, row) => one && { ...one, row });
    return origins;
  }

  /** The best continuations, best first; behind those that have ended the live ones. */
  get best(): Scored[] {
    const { beamSize } = this.settings;
    const live = this.live.flatMap((one) =>
      one ? [{ ...one, score: one.sum / this.norm(Math.max(1, this.steps)) }] : [],
    );
    const found = [...this.ended, ...live.sort(bestFirst)].slice(0, beamSize);
    // A small vocabulary has fewer continuations than beams.
    const none = { ids: [], logprobs: [], score: Number.NEGATIVE_INFINITY };
    return [...found, ...new Array<Scored>(beamSize - found.length).fill(none)];
  }
}

const extended = ({ ids, logprobs, sum }: Live, row: number, id: number, logprob: number): Live => ({
  row,
  ids: [...ids, id],
  logprobs: [...logprobs, logprob],
  sum: sum + logprob,
});

/** A hypothesis with each of the next tokens that are possible. */
function candidatesOf(one: Live, row: number, { ids, logprobs }: NextTokens): Live[] {
  const possible = Array.from(ids, (_, i) => i).filter((i) => logprobs[i]! > Number.NEGATIVE_INFINITY);
  return possible.map((i) => extended(one, row, ids[i]!, logprobs[i]!));
}
