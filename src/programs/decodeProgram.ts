/** @file DecodeProgram: continuations of the examples of one dataset, written to a file (paxml's decode programs). */
import { join } from 'node:path';
import { foldIn, hashString, type PrngKey, prngKey } from '../compiler/index.js';
import { type DecodeOutput, GreedyDecoder, type Int32Tensor } from '../decoding/index.js';
import { type Config, ConfigError } from '../hparams/index.js';
import { type BaseInput, type InputSource, type LmBatch, nextBatch, TOKEN_UNIT } from '../inputs/index.js';
import { LanguageModel } from '../models/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { expectedDecodeRuns } from './expectedRuns.js';
import { writeJobFile } from './jobDirectory.js';
import { compileOptions, type JobOptions } from './options.js';
import { ProgramDataset } from './programDataset.js';
import type { DecodedExample, DecodeResult, Sample } from './results.js';
import type { Run } from './run.js';
import { Stepper } from './stepper.js';
import type { FlatParams } from './taskState.js';

/** Decodes one dataset; input and step are made on first use. */
export class DecodeProgram implements Program<Run> {
  readonly phase = 'decoding';
  /** `decode_test_<dataset>`. */
  readonly name: string;
  readonly datasetName: string;
  readonly dataset: ProgramDataset;
  private readonly model: LanguageModel;
  #stepper: Stepper | undefined;

  /** @throws ConfigError where the task's model can't be decoded. */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
    dataset: Config<BaseInput>,
  ) {
    this.datasetName = dataset.name ?? 'input';
    this.name = `decode_test_${this.datasetName}`;
    this.dataset = new ProgramDataset(options, task, dataset, this.name);
    if (!(task.model instanceof LanguageModel)) {
      throw new ConfigError(
        `decodeDatasets() has '${this.datasetName}', and ${task.model.constructor.name} can't decode: only LanguageModel can.`,
      );
    }
    this.model = task.model;
  }

  isDue(step: number, isLast: boolean): boolean {
    const { decodeIntervalSteps, decodeStartAfterNSteps } = this.task.hp.train.hp;
    if (isLast) return true;
    return decodeIntervalSteps !== null && step % decodeIntervalSteps === 0 && step >= decodeStartAfterNSteps;
  }

  async run(run: Run): Promise<undefined> {
    run.reporter.decoded(this.name, run.step, await this.decode(run));
  }

  async close(): Promise<void> {
    await this.dataset.close();
    await this.#stepper?.dispose();
    this.#stepper = undefined;
  }

  /** Decodes the first `evalLoopNumBatches` batches (null: one; -1: all). The same step produces the same text. */
  private async decode(run: Run): Promise<DecodeResult> {
    const input = this.dataset.open();
    input.reset();
    // Training has changed the parameters.
    this.#stepper?.refresh();
    const limit = this.dataset.config.evalLoopNumBatches ?? 1;
    const stream = foldIn(prngKey(this.task.hp.decode.hp.randomSeed), hashString(this.name));
    const started = performance.now();
    const examples: DecodedExample[] = [];
    for (let batch = 0; limit === -1 || batch < limit; batch++) {
      run.throwIfStopped();
      const next = await nextBatch(input);
      if (!next) break;
      examples.push(...(await this.decodeBatch(input, next as LmBatch, foldIn(stream, batch))));
    }
    const path = this.write(run.step, examples);
    const seconds = (performance.now() - started) / 1000;
    const drawn = (e: DecodedExample) =>
      (e.sampled ?? [e]).reduce((sum, s) => sum + s.decode_length - e.prefix_length, 0);
    const tokens = examples.reduce((sum, e) => sum + drawn(e), 0);
    const throughput = { unit: TOKEN_UNIT.unit, perSec: tokens / seconds };
    const [changes, skipped] = [this.dataset.takeChanges(), input.skipped.take()];
    return { examples, path, skipped, seconds, throughput, changes };
  }

  private async decodeBatch(input: InputSource, batch: LmBatch, key: PrngKey): Promise<DecodedExample[]> {
    const { decoder } = this.task.hp.decode.hp;
    const lengths = exampleLengths(batch);
    const prefixLengths = this.prefixLengths(lengths, foldIn(key, 0));
    const stepper = await this.stepperOf(decoder.numRows(lengths.data.length));
    stepper.reset();
    const { extendStep, extendGreedily, prefill } = stepper;
    const output = await decoder.decode({
      prefixIds: batch.ids,
      prefixLengths,
      extendStep,
      extendGreedily,
      prefill,
      key: foldIn(key, 1),
    });
    return describeExamples(input, batch, lengths, prefixLengths, output);
  }

  private async stepperOf(rows: number): Promise<Stepper> {
    if (this.#stepper?.rows === rows) return this.#stepper;
    await this.#stepper?.dispose();
    const { decoder } = this.task.hp.decode.hp;
    const runs = expectedDecodeRuns(this.options, this.task, this.dataset.config);
    this.#stepper = await Stepper.create({
      model: this.model,
      params: this.params,
      rows,
      seqlen: decoder.hp.seqlen,
      isGreedy: decoder instanceof GreedyDecoder,
      compileOptions: (name) => compileOptions(this.options, name, runs),
    });
    return this.#stepper;
  }

  private prefixLengths(lengths: Int32Tensor, key: PrngKey): Int32Tensor {
    const { decoder, prefixLength } = this.task.hp.decode.hp;
    if (prefixLength === null) return decoder.drawPrefixLengths(lengths, key);
    return { ...lengths, data: lengths.data.map((length) => Math.min(length, prefixLength)) };
  }

  private write(step: number, examples: readonly DecodedExample[]): string {
    const directory = join(this.options.jobLogDir, 'decoder_out', this.datasetName);
    const path = join(directory, `decoder_out_${step}_shard_0.jsonl`);
    writeJobFile(path, examples.map((e) => `${JSON.stringify(e)}\n`).join(''));
    return path;
  }
}

/** Number of non-padding tokens of each row, [B]. */
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
  // Rows of padding, which complete the last batch, are not examples.
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
