/** @file Queue of completions, of which those that wait together are decoded in one batch. */
import type { CompileOptions } from '../compiler/index.js';
import { type HostTensor, newHostArray } from '../compiler/index.js';
import { type BaseDecoder, type Decodable, decodeRows, PREFILL_STEPS, Stepper } from '../decoding/index.js';
import type { FlatParams } from '../programs/index.js';
import { bytesOf, withinMemory } from './batchMemory.js';
import type { Completion } from './completion.js';
import type { Specs } from './predictions.js';
import { RequestError } from './requestError.js';
import type { Source } from './sourceTexts.js';

/** The model of a queue, and the size of its batches. */
export interface DecodeQueueOptions {
  readonly model: Decodable;
  readonly params: FlatParams;
  /** A decoder that draws by rules of its own, one completion after the other; null: each completion has its rule. */
  readonly decoder: BaseDecoder | null;
  /** Completions that are decoded at once. */
  readonly rows: number;
  /** Tokens of a prompt and its continuation, at most. */
  readonly seqlen: number;
  /** Specs of the arrays of the completions' sources, where they have some. */
  readonly source?: Specs | undefined;
  /** Whether an id has text or ends a sequence; others are never drawn. */
  readonly mayDraw: (id: number) => boolean;
  readonly compileOptions: (name: string) => CompileOptions;
}

/** Tokens that a run is expected to draw, of which each takes a run of the decoding step. */
const TOKENS = 10_000;

/** Positions that are prefilled at once: any number where a prompt has the batch to itself. */
const blockOf = (rows: number): number => (rows === 1 ? 1 : PREFILL_STEPS);

/** Whole blocks of a prompt that are prefilled; the last token of a prompt is never among them. */
const blocksOf = ({ promptIds }: Completion, rows: number): number =>
  Math.floor((promptIds.length - 1) / blockOf(rows));

/**
 * Decodes completions, first come, first served. Rows of a batch are at the same position, so a batch begins once the
 * one before has ended, with the first that waits and those whose prompts have as many whole blocks: so the text of a
 * completion does not depend on those beside it.
 */
export class DecodeQueue {
  readonly #waiting: Completion[] = [];
  #batch: readonly Completion[] = [];
  #working: Promise<void> | undefined;
  #stepper: Promise<Stepper> | undefined;

  constructor(private readonly options: DecodeQueueOptions) {}

  /** Decodes a completion as soon as there is room. */
  readonly add = (completion: Completion): void => {
    this.#waiting.push(completion);
    this.#working ??= this.#work();
  };

  /** Compiles the decoding step. */
  async prepare(): Promise<void> {
    await this.#step();
  }

  /** Ends running and waiting completions with an error, and frees the programs. */
  async dispose(): Promise<void> {
    for (const completion of [...this.#batch, ...this.#waiting.splice(0)])
      completion.fail(new RequestError('The run was disposed of before the continuation had ended.'));
    await this.#working;
    await (await this.#stepper)?.dispose();
  }

  async #work(): Promise<void> {
    // Requests in the same iteration of the event loop are decoded together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      this.#batch = batch;
      try {
        await this.#decode(batch);
        for (const completion of batch) completion.end();
      } catch (error) {
        for (const completion of batch) completion.fail(error);
      }
    }
    this.#working = undefined;
  }

  #takeBatch(): Completion[] {
    const rows = this.options.decoder ? 1 : this.options.rows;
    const wanted = this.#waiting.splice(0).filter(({ finishReason }) => finishReason === undefined);
    const [first] = wanted;
    const blocks = first && blocksOf(first, rows);
    const batch = wanted.filter((completion) => blocksOf(completion, rows) === blocks).slice(0, rows);
    const taken = new Set(batch);
    this.#waiting.push(...wanted.filter((completion) => !taken.has(completion)));
    return batch;
  }

  async #newStep(): Promise<Stepper> {
    const { model, params, decoder, seqlen, mayDraw, source } = this.options;
    const rows = decoder ? decoder.numRows(1) : this.options.rows;
    const logits = { shape: [rows, model.vocabSize] };
    const state = Object.values(model.initialDecodeState(rows, seqlen, source && rowsOf(source, rows)));
    const what = `the keys, values and logits of as many texts of ${seqlen} tokens`;
    const compileOptions = (name: string) => ({ ...this.options.compileOptions(name), runs: TOKENS });
    return withinMemory({ batchSize: rows, what, bytes: bytesOf([...state, logits]) }, () =>
      Stepper.create({
        ...{ model, params, rows, seqlen, mayDraw, compileOptions, prompt: source },
        rule: null,
      }),
    );
  }

  #step(): Promise<Stepper> {
    this.#stepper ??= this.#newStep().catch((error) => {
      // A failed compilation is tried again with the next batch.
      this.#stepper = undefined;
      throw error;
    });
    return this.#stepper;
  }

  async #decode(given: readonly Completion[]): Promise<void> {
    const { rows, seqlen, decoder, source } = this.options;
    const sources = await sourcesOf(given);
    const batch = given.filter(({ finishReason }) => finishReason === undefined);
    if (batch.length === 0) return;
    const stepper = await this.#step();
    stepper.reset();
    if (source)
      await stepper.begin(
        joined(Array.from({ length: decoder ? 1 : rows }, (_, row) => sources.get(batch[row] ?? batch[0]!)!)),
      );
    if (decoder) return decodeWhole(decoder, stepper, batch[0]!);
    // Rows beyond the batch repeat its first prompt, and end with their first token.
    const promptOf = (row: number) => (batch[row] ?? batch[0]!).promptIds;
    const prompts = Array.from({ length: rows }, (_, row) => promptOf(row));
    const size = Math.max(...prompts.map(({ length }) => length));
    const ids = new Int32Array(rows * size);
    for (const [row, prompt] of prompts.entries()) ids.set(prompt, row * size);
    const lengths = Int32Array.from(prompts, ({ length }) => length);
    await decodeRows(
      {
        prefixIds: { shape: [rows, size], dtype: 'int32', data: ids },
        prefixLengths: { shape: [rows], dtype: 'int32', data: lengths },
      },
      { seqlen, maxDecodeSteps: seqlen, eosIds: new Set() },
      {
        ...{ extendStep: stepper.extendStep, prefill: stepper.prefill, prefillBlock: blockOf(rows) },
        wholePrompts: stepper.calls.wholePrompts,
      },
      { selectId: (logits, row) => batch[row]?.select(logits) ?? 0 },
      (row, id) => batch[row]?.accept(id) ?? true,
    );
  }
}

/** Decodes a completion by a decoder of its own rules, whose tokens are known once the whole is. */
async function decodeWhole(decoder: BaseDecoder, stepper: Stepper, completion: Completion): Promise<void> {
  const { promptIds, key } = completion;
  const count = promptIds.length;
  const { outputIds, decodeLengths } = await decoder.decode({
    prefixIds: { shape: [1, count], dtype: 'int32', data: promptIds },
    prefixLengths: { shape: [1], dtype: 'int32', data: Int32Array.of(count) },
    key,
    ...stepper.calls,
  });
  // The best of several comes first.
  for (const id of outputIds.data.subarray(count, decodeLengths.data[0])) if (completion.accept(id)) return;
}

/** The sources of completions. One whose text has none ends with the error. */
async function sourcesOf(batch: readonly Completion[]): Promise<Map<Completion, Source>> {
  const sources = new Map<Completion, Source>();
  for (const completion of batch) {
    try {
      if (completion.source) sources.set(completion, await completion.source);
    } catch (error) {
      completion.fail(error);
    }
  }
  return sources;
}

/** Specs with another number of rows. */
const rowsOf = (specs: Specs, rows: number): Specs =>
  Object.fromEntries(
    Object.entries(specs).map(([path, { shape, dtype }]) => [
      path,
      { shape: [rows, ...shape.slice(1)], dtype },
    ]),
  );

/** Arrays of one row each as those of several. */
function joined(rows: readonly Source[]): Record<string, HostTensor> {
  return Object.fromEntries(
    Object.entries(rows[0]!).map(([path, { shape, dtype, data: first }]) => {
      const data = newHostArray(dtype, rows.length * first.length);
      for (const [row, source] of rows.entries()) data.set(source[path]!.data as never, row * first.length);
      return [path, { shape: [rows.length, ...shape.slice(1)], dtype, data } as HostTensor];
    }),
  );
}
