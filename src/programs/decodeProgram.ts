/** @file DecodeProgram: continues the examples of one dataset and writes them down (paxml's decode programs). */
import { join } from 'node:path';
import {
  type BoundCall,
  compile,
  foldIn,
  type HostTensor,
  hashString,
  type PrngKey,
  prngKey,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../compiler/index.js';
import type { DecodeOutput, ExtendStep, Int32Tensor } from '../decoding/index.js';
import { makeDirectory, writeWhole } from '../files/index.js';
import { type Config, ConfigError } from '../hparams/index.js';
import type { BaseInput, InputSource, LmBatch } from '../inputs/index.js';
import { runInContext } from '../layers/index.js';
import { LanguageModel } from '../models/index.js';
import type { SingleTask } from '../tasks/index.js';
import { JobError } from './errors.js';
import { nextBatch } from './evalProgram.js';
import { type FlatParams, paramSpecs, paramViews } from './flatParams.js';
import { openDataset } from './openDataset.js';
import { compileOptions, type JobOptions } from './options.js';

/** One continuation. */
export interface Sample {
  /** Prompt and continuation. */
  readonly decoded: string;
  /** The continuation alone. */
  readonly decoded_substr: string;
  readonly decoded_ids: readonly number[];
  /** Log-probability of each token of the continuation. */
  readonly logprobs: readonly number[];
  readonly decode_length: number;
}

/** A decoded example, as a line of decoder_out_<step>_shard_0.jsonl has it (field names are Pax's). */
export interface DecodedExample extends Sample {
  readonly prefix: string;
  readonly prefix_length: number;
  /** The example that the prompt is the beginning of. */
  readonly original: string;
  readonly ids: readonly number[];
  /** Where the decoder draws several: all of them, the one above included. */
  readonly sampled?: readonly Sample[];
}

/** What a decode gave. */
export interface DecodeResult {
  readonly examples: readonly DecodedExample[];
  /** The file that holds them. */
  readonly path: string;
  readonly seconds: number;
  /** Tokens drawn. */
  readonly tokens: number;
}

/** Decodes one dataset whenever it is asked to; input and step are made at the first time. */
export class DecodeProgram {
  /** Where its summaries go: `decode_test_<dataset>`. */
  readonly name: string;
  readonly datasetName: string;
  private readonly model: LanguageModel;
  #input: InputSource | undefined;
  #stepper: Stepper | undefined;

  /** @throws ConfigError where the task's model can't be decoded. */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
    private readonly dataset: Config<BaseInput>,
  ) {
    this.datasetName = dataset.name ?? 'input';
    this.name = `decode_test_${this.datasetName}`;
    if (!(task.model instanceof LanguageModel)) {
      throw new ConfigError(
        `decodeDatasets() has '${this.datasetName}', and ${task.model.constructor.name} can't decode: only LanguageModel can.`,
      );
    }
    this.model = task.model;
  }

  /** Decodes `evalLoopNumBatches` batches (-1: all) from the first one on. The same step gives the same text. */
  async run(step: number, isStopped: () => boolean): Promise<DecodeResult | undefined> {
    const input = (this.#input ??= openDataset(this.options, this.dataset));
    input.reset();
    const { evalLoopNumBatches: limit } = this.dataset;
    const stream = foldIn(prngKey(this.task.hp.decode.hp.randomSeed), hashString(this.name));
    const started = performance.now();
    const examples: DecodedExample[] = [];
    for (let batch = 0; limit === -1 || batch < limit; batch++) {
      if (isStopped()) return undefined;
      const next = await nextBatch(input);
      if (!next) break;
      examples.push(...(await this.decodeBatch(input, next as LmBatch, foldIn(stream, batch))));
    }
    const path = this.write(step, examples);
    const seconds = (performance.now() - started) / 1000;
    const drawn = (e: DecodedExample) =>
      (e.sampled ?? [e]).reduce((sum, s) => sum + s.decode_length - e.prefix_length, 0);
    return { examples, path, seconds, tokens: examples.reduce((sum, e) => sum + drawn(e), 0) };
  }

  async close(): Promise<void> {
    await this.#input?.close();
  }

  private async decodeBatch(input: InputSource, batch: LmBatch, key: PrngKey): Promise<DecodedExample[]> {
    const { decoder } = this.task.hp.decode.hp;
    const lengths = exampleLengths(batch);
    const prefixLengths = this.prefixLengths(lengths, foldIn(key, 0));
    const rows = decoder.numRows(lengths.data.length);
    if (this.#stepper?.rows !== rows) {
      this.#stepper = await Stepper.create(this.options, this.model, this.params, rows, decoder.hp.seqlen);
    }
    this.#stepper.reset();
    const output = await decoder.decode({
      prefixIds: batch.ids,
      prefixLengths,
      extendStep: this.#stepper.extendStep,
      key: foldIn(key, 1),
    });
    return describeExamples(input, batch, lengths, prefixLengths, output);
  }

  private prefixLengths(lengths: Int32Tensor, key: PrngKey): Int32Tensor {
    const { decoder, prefixLength } = this.task.hp.decode.hp;
    if (prefixLength === null) return decoder.drawPrefixLengths(lengths, key);
    return { ...lengths, data: lengths.data.map((length) => Math.min(length, prefixLength)) };
  }

  private write(step: number, examples: readonly DecodedExample[]): string {
    const directory = join(this.options.jobLogDir, 'decoder_out', this.datasetName);
    const path = join(directory, `decoder_out_${step}_shard_0.jsonl`);
    try {
      makeDirectory(directory);
      writeWhole(path, examples.map((e) => `${JSON.stringify(e)}\n`).join(''));
    } catch (cause) {
      throw new JobError(`${path}: can't be written: ${(cause as Error).message}`, { cause });
    }
    return path;
  }
}

/** Tokens of each row that are not padding, [B]. */
function exampleLengths({ ids, paddings }: LmBatch): Int32Tensor {
  const [rows = 0, length = 0] = ids.shape;
  const data = new Int32Array(rows);
  for (let i = 0; i < rows * length; i++) if (paddings.data[i] === 0) data[Math.trunc(i / length)]! += 1;
  return { shape: [rows], dtype: 'int32', data };
}

function describeExamples(
  input: InputSource,
  batch: LmBatch,
  lengths: Int32Tensor,
  prefixLengths: Int32Tensor,
  output: DecodeOutput,
): DecodedExample[] {
  const [rows = 0, exampleLength = 0] = batch.ids.shape;
  const samples = output.decodeLengths.data.length / rows;
  const size = output.outputIds.shape.at(-1)!;
  const text = (ids: ArrayLike<number>) => input.idsToStrings({ shape: [1, ids.length], data: ids })[0]!;
  const sampleAt = (index: number, prefixLength: number): Sample => {
    const length = output.decodeLengths.data[index]!;
    const ids = output.outputIds.data.slice(index * size, index * size + length);
    return {
      decoded: text(ids),
      decoded_substr: text(ids.slice(prefixLength)),
      decoded_ids: [...ids],
      logprobs: [...output.logprobs.data.slice(index * size + prefixLength, index * size + length)],
      decode_length: length,
    };
  };
  // Rows of padding fill up the last batch; they are no examples.
  const wanted = Array.from({ length: rows }, (_, row) => row).filter((row) => lengths.data[row]! > 0);
  return wanted.map((row) => {
    const prefixLength = prefixLengths.data[row]!;
    const start = row * exampleLength;
    const ids = batch.ids.data.slice(start, start + lengths.data[row]!);
    const sampled = Array.from({ length: samples }, (_, s) => sampleAt(row * samples + s, prefixLength));
    return {
      prefix: text(ids.slice(0, prefixLength)),
      prefix_length: prefixLength,
      original: text(ids),
      ids: [...ids],
      ...sampled[0]!,
      ...(samples > 1 && { sampled }),
    };
  });
}

interface StepOutputs {
  readonly logits: HostTensor;
}

/** The model's extendStep, compiled, with two sets of state that take turns as source and target. */
class Stepper {
  private turn = 0;

  private constructor(
    readonly rows: number,
    private readonly ids: Int32Array,
    private readonly timeStep: Int32Array,
    private readonly states: readonly Record<string, Float32Array | Int32Array | Uint8Array>[],
    private readonly calls: readonly BoundCall[],
  ) {}

  static async create(
    options: JobOptions,
    model: LanguageModel,
    params: FlatParams,
    rows: number,
    seqlen: number,
  ): Promise<Stepper> {
    const specs = model.initialDecodeState(rows, Math.max(1, seqlen));
    const inputs = {
      params: paramSpecs(params),
      ids: { shape: [rows], dtype: 'int32' },
      timeStep: { shape: [], dtype: 'int32' },
      state: specs,
    };
    const step = (given: StepInputs) => {
      const decodeState = { ...given.state };
      const context = { theta: given.params, doEval: true, decodeState };
      const logits = runInContext(context, () => model.extendStep(given.ids, given.timeStep));
      return { logits, state: decodeState };
    };
    const executable = await compile(
      step,
      inputs as Tree<TensorSpec>,
      compileOptions(options, 'decode_step'),
    );
    const [ids, timeStep] = [new Int32Array(rows), new Int32Array(1)];
    const states = [newState(specs), newState(specs)];
    const calls = [0, 1].map((source) =>
      executable.bind({
        inputs: { params: paramViews(params), ids, timeStep, state: states[source]! },
        outputs: { logits: null, state: states[1 - source]! },
      }),
    );
    return new Stepper(rows, ids, timeStep, states, calls);
  }

  /** Empties the cache. */
  reset(): void {
    for (const array of Object.values(this.states[this.turn]!)) array.fill(0);
  }

  readonly extendStep: ExtendStep = async (ids, timeStep) => {
    this.ids.set(ids);
    this.timeStep[0] = timeStep;
    const { logits } = (await this.calls[this.turn]!.run()) as unknown as StepOutputs;
    this.turn = 1 - this.turn;
    return logits.data as Float32Array;
  };
}

interface StepInputs {
  readonly params: Record<string, Tensor>;
  readonly ids: Tensor;
  readonly timeStep: Tensor;
  readonly state: Record<string, Tensor>;
}

function newState(specs: Record<string, TensorSpec>): Record<string, Float32Array | Int32Array | Uint8Array> {
  const arrays = { float32: Float32Array, int32: Int32Array, bool: Uint8Array };
  return Object.fromEntries(
    Object.entries(specs).map(([name, { shape, dtype }]) => [
      name,
      new arrays[dtype](shape.reduce((size, dim) => size * dim, 1)),
    ]),
  );
}
