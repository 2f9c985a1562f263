/** @file The decode loop: prompt and drawn tokens through a model, one position at a time. */
import type { HostTensor } from '../compiler/index.js';
import { logProbability } from './sampling.js';

/** A host tensor of whole numbers. */
export interface Int32Tensor extends HostTensor {
  readonly dtype: 'int32';
  readonly data: Int32Array;
}

/** A host tensor of real numbers. */
export interface Float32Tensor extends HostTensor {
  readonly dtype: 'float32';
  readonly data: Float32Array;
}

/**
 * One position of a model that keeps its own cache.
 *
 * @param ids tokens at position `timeStep`, [rows]; overwritten after the promise is fulfilled.
 * @param timeStep position in the sequence: 0, 1, 2 …
 * @returns logits of the next position, [rows * V], row by row; read before the next call.
 */
export type ExtendStep = (ids: Int32Array, timeStep: number) => Promise<Float32Array>;

/** What to continue. */
export interface Prompts {
  /** Tokens that begin each row, [rows, P]; what lies beyond a row's length is not read. */
  readonly prefixIds: Int32Tensor;
  /** Tokens of the prompt in each row, [rows]; a row always begins with its first token, even if 0 is given. */
  readonly prefixLengths: Int32Tensor;
}

/** When a row ends. */
export interface StopRule {
  /** Length of a finished row, prompt included. */
  readonly seqlen: number;
  /** Tokens after the prompt, at most. */
  readonly maxDecodeSteps: number;
  /** Tokens that end a row once they are drawn. */
  readonly eosIds: ReadonlySet<number>;
}

/** Rows as they were decoded. */
export interface DecodedRows {
  /** Prompt and what followed, 0 beyond the end, [rows, seqlen]. */
  readonly outputIds: Int32Array;
  /** Tokens of each row, prompt and end-of-sequence token included, [rows]. */
  readonly decodeLengths: Int32Array;
  /** Log-probability of each drawn token; 1 in the prompt and beyond the end, [rows, seqlen]. */
  readonly logprobs: Float32Array;
}

/**
 * Decodes rows until all have ended or are `seqlen` long. A prompt's tokens go through the model one by one; an
 * end-of-sequence token in the prompt ends nothing.
 *
 * @param selectId draws the token of a row at position `timeStep + 1` from its logits, [V].
 */
export async function decodeRows(
  { prefixIds, prefixLengths }: Prompts,
  { seqlen, maxDecodeSteps, eosIds }: StopRule,
  extendStep: ExtendStep,
  selectId: (logits: Float32Array, row: number, timeStep: number) => number,
): Promise<DecodedRows> {
  const rows = prefixLengths.data.length;
  const prefixSize = prefixIds.shape[1]!;
  const outputIds = new Int32Array(rows * seqlen);
  const logprobs = new Float32Array(rows * seqlen).fill(1);
  const decodeLengths = new Int32Array(rows).fill(seqlen);
  const done = new Uint8Array(rows);
  const current = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    outputIds[row * seqlen] = current[row] = prefixIds.data[row * prefixSize]!;
  }
  let running = rows;
  for (let step = 0; step < seqlen - 1 && running > 0; step++) {
    const logits = await extendStep(current, step);
    const vocabulary = logits.length / rows;
    for (let row = 0; row < rows; row++) {
      current[row] = 0;
      if (done[row]) continue;
      const at = row * seqlen + step + 1;
      const prefixLength = prefixLengths.data[row]!;
      if (step + 1 < prefixLength) {
        outputIds[at] = current[row] = prefixIds.data[row * prefixSize + step + 1]!;
        continue;
      }
      const rowLogits = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
      const id = selectId(rowLogits, row, step);
      outputIds[at] = current[row] = id;
      logprobs[at] = logProbability(rowLogits, id);
      if (eosIds.has(id) || step + 2 - prefixLength >= maxDecodeSteps) {
        done[row] = 1;
        decodeLengths[row] = step + 2;
        running--;
      }
    }
  }
  return { outputIds, decodeLengths, logprobs };
}
