/** @file The decode loop: prompts and drawn tokens through a model's cache. */
import type { DecodingModel, DrawnIds, Prompts } from './decodingModel.js';
import { takeColumns } from './promptRows.js';
import { logProbability } from './sampling.js';

/** Conditions on which a row ends. */
export interface StopRule {
  /** Length of a finished row, prompt included. */
  readonly seqlen: number;
  /** Tokens after the prompt, at most. */
  readonly maxDecodeSteps: number;
  /** Tokens that end a row once they are drawn. */
  readonly eosIds: ReadonlySet<number>;
}

/** Decoded rows. */
export interface DecodedRows {
  /** Prompt and continuation, 0 beyond the end, [rows, seqlen]. */
  readonly outputIds: Int32Array;
  /** Tokens of each row, prompt and end-of-sequence token included, [rows]. */
  readonly decodeLengths: Int32Array;
  /** Log-probability of each drawn token; 1 in the prompt and beyond the end, [rows, seqlen]. */
  readonly logprobs: Float32Array;
}

/** Fewest positions for which prefilling pays. */
const MIN_PREFILL = 8;
/** Tokens drawn per call: at first, and at most. */
const DRAWN_STEPS = { least: 16, most: 64 };

/** Draws the token of a row at `position + 1` from its logits, [V]. */
type SelectId = (logits: Float32Array, row: number, position: number) => number;

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
) => Promise<DrawnIds>;

/** How tokens are drawn. */
export interface Draws {
  readonly selectId: SelectId;
  /** Draws the same tokens at several positions, where the model can. */
  readonly extend?: ExtendDrawing | undefined;
}

/** Told of each drawn token as soon as it is there. @returns whether the row ends with it */
export type OnToken = (row: number, id: number) => boolean;

/** The tokens after some steps, by step and row. */
interface Drawn {
  readonly count: number;
  at(step: number, row: number): { readonly id: number; readonly logprob: number };
}

class Rows {
  readonly outputIds: Int32Array;
  readonly logprobs: Float32Array;
  readonly decodeLengths: Int32Array;
  /** Tokens at the next step. */
  readonly current: Int32Array;
  /** Position of each row at step 0. */
  readonly starts: Int32Array;
  /** Tokens of each prompt: its first one at least. */
  readonly lengths: Int32Array;
  private readonly done: Uint8Array;
  private readonly prefixSize: number;
  running: number;

  constructor(
    private readonly prompts: Prompts,
    private readonly stop: StopRule,
    private readonly onToken: OnToken,
  ) {
    const rows = prompts.prefixLengths.data.length;
    const { seqlen } = stop;
    this.prefixSize = prompts.prefixIds.shape[1]!;
    this.outputIds = new Int32Array(rows * seqlen);
    this.logprobs = new Float32Array(rows * seqlen).fill(1);
    this.decodeLengths = new Int32Array(rows).fill(seqlen);
    this.current = new Int32Array(rows);
    this.starts = new Int32Array(rows);
    this.lengths = prompts.prefixLengths.data.map((length) => Math.max(1, length));
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

  /** Most tokens that can be drawn after `step` until the last row ends. */
  mostLeft(step: number): number {
    const { seqlen, maxDecodeSteps } = this.stop;
    const left = this.starts.map((start, row) => {
      const position = start + step;
      return Math.min(seqlen - 1 - position, Math.max(1, this.lengths[row]! + maxDecodeSteps - 1 - position));
    });
    return Math.max(...left);
  }

  /** Tokens that each row has drawn before `step`, at least; below 0 where one is in its prompt. */
  drawnBefore(step: number): number {
    return Math.min(...this.starts.map((start, row) => start + step + 1 - this.lengths[row]!));
  }

  /** Takes the tokens drawn after `step`. */
  accept(step: number, drawn: (row: number) => { id: number; logprob: number }): void {
    const { seqlen, eosIds, maxDecodeSteps } = this.stop;
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
      const { id, logprob } = drawn(row);
      this.outputIds[at] = this.current[row] = id;
      this.logprobs[at] = logprob;
      const isEnded = this.onToken(row, id);
      const length = next + 1;
      if (isEnded || eosIds.has(id) || length - prefixLength >= maxDecodeSteps || length === seqlen)
        this.end(row, length);
    }
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
  if (extend) {
    const before = rows.drawnBefore(step);
    // Doubling wastes at most as many tokens as were drawn before the rows ended.
    const atOnce = Math.min(Math.max(DRAWN_STEPS.least, before), DRAWN_STEPS.most);
    // Within prompts the next tokens are not those that are drawn.
    const count = before < 0 ? 1 : Math.min(atOnce, rows.mostLeft(step));
    const { ids, logprobs } = await extend(rows.current, step, count, rows.starts);
    const at = (index: number, row: number) => {
      const place = index * size + row;
      return { id: ids[place]!, logprob: logprobs[place]! };
    };
    return { count, at };
  }
  const logits = await model.extendStep(rows.current, step);
  const vocabulary = logits.length / size;
  return {
    count: 1,
    at: (_, row) => {
      const rowLogits = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
      const id = selectId(rowLogits, row, rows.starts[row]! + step);
      return { id, logprob: logProbability(rowLogits, id) };
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
  onToken: OnToken = () => false,
): Promise<DecodedRows> {
  const rows = new Rows(prompts, stop, onToken);
  let step = await takePrompts(model, rows);
  while (step < stop.seqlen - 1 && rows.running > 0) {
    const drawn = await draw(model, rows, step, draws);
    for (let i = 0; i < drawn.count && rows.running > 0; i++, step++)
      rows.accept(step, (row) => drawn.at(i, row));
  }
  const { outputIds, decodeLengths, logprobs } = rows;
  return { outputIds, decodeLengths, logprobs };
}
