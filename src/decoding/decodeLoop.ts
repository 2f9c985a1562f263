/** @file The decode loop: prompts and drawn tokens through a model's cache. */
import type { DecodingModel, ExtendGreedily, Prompts } from './decodingModel.js';
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

/** Draws the token of a row at position `timeStep + 1` from its logits, [V]. */
type SelectId = (logits: Float32Array, row: number, timeStep: number) => number;

/** How tokens are drawn. */
export interface Draws {
  readonly selectId: SelectId;
  /** Draws the same tokens at several positions, where the model can. */
  readonly extend?: ExtendGreedily | undefined;
}

/** Told of each drawn token as soon as it is there. @returns whether the row ends with it */
export type OnToken = (row: number, id: number) => boolean;

/** The tokens after some positions, by position and row. */
interface Drawn {
  readonly count: number;
  at(position: number, row: number): { readonly id: number; readonly logprob: number };
}

class Rows {
  readonly outputIds: Int32Array;
  readonly logprobs: Float32Array;
  readonly decodeLengths: Int32Array;
  /** Tokens at the next position. */
  readonly current: Int32Array;
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
    this.done = new Uint8Array(rows);
    this.running = rows;
    for (let row = 0; row < rows; row++) this.takePrompt(row, 0);
  }

  private takePrompt(row: number, position: number): void {
    const id = this.prompts.prefixIds.data[row * this.prefixSize + position]!;
    this.outputIds[row * this.stop.seqlen + position] = this.current[row] = id;
  }

  /** Tokens of the shortest and of the longest prompt; each has its first token at least. */
  promptLengths(): [number, number] {
    const lengths = this.prompts.prefixLengths.data.map((length) => Math.max(1, length));
    return [Math.min(...lengths), Math.max(...lengths)];
  }

  /** The tokens of all rows at positions 0 to count - 1; the next ones become current. */
  takePrompts(count: number): Int32Array {
    const ids = new Int32Array(this.current.length * count);
    for (let row = 0; row < this.current.length; row++) {
      const start = row * this.prefixSize;
      ids.set(this.prompts.prefixIds.data.subarray(start, start + count), row * count);
      for (let position = 1; position <= count; position++) this.takePrompt(row, position);
    }
    return ids;
  }

  /** Most tokens that can be drawn after `step` until the last row ends. */
  mostLeft(step: number): number {
    const { seqlen, maxDecodeSteps } = this.stop;
    const [, longest] = this.promptLengths();
    return Math.min(seqlen - 1 - step, Math.max(1, longest + maxDecodeSteps - 1 - step));
  }

  /** Takes the tokens drawn after position `step`. */
  accept(step: number, drawn: (row: number) => { id: number; logprob: number }): void {
    const { seqlen, eosIds, maxDecodeSteps } = this.stop;
    for (let row = 0; row < this.current.length; row++) {
      this.current[row] = 0;
      if (this.done[row]) continue;
      const prefixLength = this.prompts.prefixLengths.data[row]!;
      if (step + 1 < prefixLength) {
        this.takePrompt(row, step + 1);
        continue;
      }
      const at = row * seqlen + step + 1;
      const { id, logprob } = drawn(row);
      this.outputIds[at] = this.current[row] = id;
      this.logprobs[at] = logprob;
      const isEnded = this.onToken(row, id);
      if (isEnded || eosIds.has(id) || step + 2 - prefixLength >= maxDecodeSteps) {
        this.done[row] = 1;
        this.decodeLengths[row] = step + 2;
        this.running--;
      }
    }
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
    const [, longest] = rows.promptLengths();
    // Doubling wastes at most as many tokens as were drawn before the rows ended.
    const atOnce = Math.min(Math.max(DRAWN_STEPS.least, step + 1 - longest), DRAWN_STEPS.most);
    // Within prompts the next tokens are not those that are drawn.
    const count = step + 1 < longest ? 1 : Math.min(atOnce, rows.mostLeft(step));
    const { ids, logprobs } = await extend(rows.current, step, count);
    const at = (position: number, row: number) => {
      const index = position * size + row;
      return { id: ids[index]!, logprob: logprobs[index]! };
    };
    return { count, at };
  }
  const logits = await model.extendStep(rows.current, step);
  const vocabulary = logits.length / size;
  return {
    count: 1,
    at: (_, row) => {
      const rowLogits = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
      const id = selectId(rowLogits, row, step);
      return { id, logprob: logProbability(rowLogits, id) };
    },
  };
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
  const { prefillBlock = 1 } = model;
  let step = 0;
  const least = rows.promptLengths()[0] - 1;
  const shared = least - (least % prefillBlock);
  if (model.prefill && shared >= MIN_PREFILL) {
    await model.prefill(rows.takePrompts(shared), shared);
    step = shared;
  }
  while (step < stop.seqlen - 1 && rows.running > 0) {
    const drawn = await draw(model, rows, step, draws);
    for (let i = 0; i < drawn.count && rows.running > 0; i++, step++)
      rows.accept(step, (row) => drawn.at(i, row));
  }
  const { outputIds, decodeLengths, logprobs } = rows;
  return { outputIds, decodeLengths, logprobs };
}
