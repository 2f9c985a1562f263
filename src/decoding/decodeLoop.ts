/** @file The decode loop: prompts and drawn tokens through a model's cache. */
import type { ConstrainedText, TokenBits, TokenConstraint } from './constraints/index.js';
import type { AllowedTokens, DecodingModel, DrawnIds, Prompts, RowTokens } from './decodingModel.js';
import type { TokensSoFar } from './logitAdjustments.js';
import { takeColumns } from './promptRows.js';
import { TokenScores, type Told } from './tokenScores.js';

/** Conditions on which a row ends. */
export interface StopRule {
  /** Length of a finished row, prompt included. */
  readonly seqlen: number;
  /** Tokens after the prompt, at most: of all rows or of each. */
  readonly maxDecodeSteps: number | Int32Array;
  /** Tokens that end a row once they are drawn. */
  readonly eosIds: ReadonlySet<number>;
  /** Of each row, tokens that end it once they are its last ones; [] for none. */
  readonly endSequences?: readonly (readonly number[])[] | undefined;
  /** Of continuations; ended rows are whole unless a limit cuts them. */
  readonly constraint?: TokenConstraint | undefined;
  /** Tokens of a continuation under a constraint before its end may be drawn where others may. */
  readonly minDecodeSteps: number;
}

/** Decoded rows. */
export interface DecodedRows {
  /** Prompt and continuation, 0 beyond the end, [rows, seqlen]. */
  readonly outputIds: Int32Array;
  /** Tokens of each row, prompt and end-of-sequence token included, [rows]. */
  readonly decodeLengths: Int32Array;
  readonly scores: TokenScores;
}

/** Fewest positions for which prefilling pays. */
const MIN_PREFILL = 8;
/** Tokens drawn per call: at first, and at most. */
const DRAWN_STEPS = { least: 16, most: 64 };

/** Draws the token of a row at `position + 1` from its logits, [V]. */
type SelectId = (
  logits: Float32Array,
  row: number,
  position: number,
  tokens: TokensSoFar,
  allowed?: TokenBits,
) => number;

/**
 * Draws several tokens of all rows within the model.
 *
 * @param starts position of each row at step 0.
 */
type ExtendDrawing = (
  ids: Int32Array,
  timeStep: number,
  count: number,
  starts: Int32Array,
  tokens: RowTokens,
  allowed?: AllowedTokens,
) => Promise<DrawnIds>;

/** How tokens are drawn. */
export interface Draws {
  readonly selectId: SelectId;
  /** Draws the same tokens at several positions, where the model can. */
  readonly extend?: ExtendDrawing | undefined;
  /** Scores of tokens besides log-probabilities; default none. */
  readonly told?: Told | undefined;
}

/** The tokens after some steps, by step and row. */
interface Drawn {
  readonly count: number;
  /** The token of a row, whose scores are written for `place`. */
  take(step: number, row: number, place: number): number;
}

class Rows {
  readonly outputIds: Int32Array;
  readonly scores: TokenScores;
  readonly decodeLengths: Int32Array;
  /** Tokens at the next step. */
  readonly current: Int32Array;
  /** Position of each row at step 0. */
  readonly starts: Int32Array;
  /** Tokens of each prompt: its first one at least. */
  readonly lengths: Int32Array;
  /** Continuations under a constraint. */
  private readonly texts: ConstrainedText[] | undefined;
  private readonly done: Uint8Array;
  private readonly prefixSize: number;
  running: number;

  constructor(
    private readonly prompts: Prompts,
    private readonly stop: StopRule,
    told: Told | undefined,
  ) {
    const rows = prompts.prefixLengths.data.length;
    const { seqlen } = stop;
    this.prefixSize = prompts.prefixIds.shape[1]!;
    this.outputIds = new Int32Array(rows * seqlen);
    this.scores = new TokenScores(rows * seqlen, told);
    this.decodeLengths = new Int32Array(rows).fill(seqlen);
    this.current = new Int32Array(rows);
    this.starts = new Int32Array(rows);
    this.lengths = prompts.prefixLengths.data.map((length) => Math.max(1, length));
    const { constraint } = stop;
    this.texts = constraint && Array.from({ length: rows }, () => constraint.begin());
    this.done = new Uint8Array(rows);
    this.running = rows;
    for (let row = 0; row < rows; row++) this.takePrompt(row, 0);
  }

  private takePrompt(row: number, position: number): void {
    const id = this.prompts.prefixIds.data[row * this.prefixSize + position]!;
    this.outputIds[row * this.stop.seqlen + position] = this.current[row] = id;
  }

  /** The first tokens of all prompts, as many as the largest of `counts`; those at `counts` become current. */
  takePrompts(counts: Int32Array): Int32Array {
    for (const [row, count] of counts.entries())
      for (let position = 1; position <= count; position++) this.takePrompt(row, position);
    return takeColumns(this.prompts.prefixIds, Math.max(...counts));
  }

  /** Puts step 0 of rows at positions of their own. */
  startAt(positions: Int32Array): void {
    const { seqlen } = this.stop;
    this.starts.set(positions);
    for (const [row, position] of positions.entries()) if (position === seqlen - 1) this.end(row, seqlen);
  }

  /** Tokens after the prompt of a row, at most. */
  private mostSteps(row: number): number {
    const { maxDecodeSteps } = this.stop;
    return typeof maxDecodeSteps === 'number' ? maxDecodeSteps : maxDecodeSteps[row]!;
  }

  /** Most tokens that can be drawn after `step` until the last row ends. */
  mostLeft(step: number): number {
    const { seqlen } = this.stop;
    const left = this.starts.map((start, row) => {
      const position = start + step;
      const steps = this.lengths[row]! + this.mostSteps(row) - 1 - position;
      return Math.min(seqlen - 1 - position, Math.max(1, steps));
    });
    return Math.max(...left);
  }

  /** The tokens so far. */
  get tokens(): RowTokens {
    return { ids: this.outputIds, promptLengths: this.lengths };
  }

  /** Those of a row up to `position`. */
  tokensOf(row: number, position: number): TokensSoFar {
    const begin = row * this.stop.seqlen;
    return { ids: this.outputIds.subarray(begin, begin + position + 1), promptLength: this.lengths[row]! };
  }

  /** The tokens that each row may draw after `step`; undefined without a constraint. */
  allowedAt(step: number): AllowedTokens | undefined {
    return this.texts?.map((text, row) => {
      const steps = this.starts[row]! + step + 1 - this.prompts.prefixLengths.data[row]!;
      return this.done[row] || steps < 0 ? undefined : text.allowed(steps >= this.stop.minDecodeSteps);
    });
  }

  /** Tokens that each row has drawn before `step`, at least; below 0 where one is in its prompt. */
  drawnBefore(step: number): number {
    return Math.min(...this.starts.map((start, row) => start + step + 1 - this.lengths[row]!));
  }

  /** Takes the tokens drawn after `step`. */
  accept(step: number, drawn: (row: number, place: number) => number): void {
    const { seqlen } = this.stop;
    for (let row = 0; row < this.current.length; row++) {
      this.current[row] = 0;
      if (this.done[row]) continue;
      const prefixLength = this.prompts.prefixLengths.data[row]!;
      const next = this.starts[row]! + step + 1;
      if (next < prefixLength) {
        this.takePrompt(row, next);
        continue;
      }
      const at = row * seqlen + next;
      const id = drawn(row, at);
      this.outputIds[at] = this.current[row] = id;
      const length = next + 1;
      const isLast = length - prefixLength >= this.mostSteps(row) || length === seqlen;
      if (isLast || this.isEnd(row, length) || this.isWhole(row, id)) this.end(row, length);
    }
  }

  /** Whether a constraint has nothing behind the token that a row has drawn. */
  private isWhole(row: number, id: number): boolean {
    if (this.texts === undefined) return false;
    this.texts[row] = this.texts[row]!.with(id);
    return this.texts[row]!.isOver;
  }

  /** Whether the last of a row's tokens ends it. */
  private isEnd(row: number, length: number): boolean {
    const { seqlen, eosIds, endSequences } = this.stop;
    const end = row * seqlen + length;
    if (endSequences === undefined) return eosIds.has(this.outputIds[end - 1]!);
    const sequence = endSequences[row]!;
    if (sequence.length === 0 || sequence.length > length) return false;
    return sequence.every((id, i) => this.outputIds[end - sequence.length + i] === id);
  }

  private end(row: number, length: number): void {
    this.done[row] = 1;
    this.decodeLengths[row] = length;
    this.running--;
  }
}

async function draw(
  model: DecodingModel,
  rows: Rows,
  step: number,
  { selectId, extend }: Draws,
): Promise<Drawn> {
  const size = rows.current.length;
  const allowed = rows.allowedAt(step);
  if (extend) {
    const before = rows.drawnBefore(step);
    // Doubling wastes at most as many tokens as were drawn before the rows ended.
    const atOnce = Math.min(Math.max(DRAWN_STEPS.least, before), DRAWN_STEPS.most);
    // Within prompts the next tokens are not those that are drawn; a constraint has to know each.
    const count = before < 0 || allowed ? 1 : Math.min(atOnce, rows.mostLeft(step));
    const drawn = await extend(rows.current, step, count, rows.starts, rows.tokens, allowed);
    return {
      count,
      take: (index, row, place) => {
        rows.scores.copy(place, drawn, index * size + row);
        return drawn.ids[index * size + row]!;
      },
    };
  }
  const logits = await model.extendStep(rows.current, step);
  const vocabulary = logits.length / size;
  return {
    count: 1,
    take: (_, row, place) => {
      const rowLogits = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
      const position = rows.starts[row]! + step;
      const id = selectId(rowLogits, row, position, rows.tokensOf(row, position), allowed?.[row]);
      rows.scores.compute(place, rowLogits, id);
      return id;
    },
  };
}

/** Gives the model the tokens of prompts that it takes at once. @returns the step that comes after them */
async function takePrompts(
  { wholePrompts, prefill, prefillBlock = 1 }: DecodingModel,
  rows: Rows,
): Promise<number> {
  const before = rows.lengths.map((length) => length - 1);
  if (wholePrompts) {
    rows.startAt(before);
    await prefill!(rows.takePrompts(before), Math.max(...before), before);
    return 0;
  }
  const least = Math.min(...before);
  const shared = least - (least % prefillBlock);
  if (!prefill || shared < MIN_PREFILL) return 0;
  await prefill(rows.takePrompts(before.fill(shared)), shared);
  return shared;
}

/**
 * Decodes rows until all have ended or are `seqlen` long. An end-of-sequence token in the prompt ends nothing.
 */
export async function decodeRows(
  prompts: Prompts,
  stop: StopRule,
  model: DecodingModel,
  draws: Draws,
): Promise<DecodedRows> {
  const rows = new Rows(prompts, stop, draws.told);
  let step = await takePrompts(model, rows);
  while (step < stop.seqlen - 1 && rows.running > 0) {
    const drawn = await draw(model, rows, step, draws);
    for (let i = 0; i < drawn.count && rows.running > 0; i++, step++)
      rows.accept(step, (row, place) => drawn.take(i, row, place));
  }
  const { outputIds, decodeLengths, scores } = rows;
  return { outputIds, decodeLengths, scores };
}
