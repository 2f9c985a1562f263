/** @file Continuations of the examples of one dataset. */
import { foldIn, type HostTensor, hashString, type PrngKey, prngKey } from '../compiler/index.js';
import {
  type Decodable,
  type DecodeOutput,
  type Int32Tensor,
  isDecodable,
  Stepper,
} from '../decoding/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import {
  type ExampleMetrics,
  type IdVocabulary,
  type InputSource,
  type LmBatch,
  nextBatch,
  TOKEN_UNIT,
  textAfter,
} from '../inputs/index.js';
import { compileOptions, type JobOptions } from '../runs/index.js';
import type { DecodedExample, DecodeResult, ProgramRun, Sample, SingleTask } from '../tasks/index.js';
import { expectedDecodeRuns } from './expectedRuns.js';
import type { ProgramDataset } from './programDataset.js';
import type { FlatParams } from './taskState.js';

/** The task's model, if it can be decoded. @param what the name of the decoder @throws ConfigError */
export function decodableModel({ model }: SingleTask, what: string): Decodable {
  if (isDecodable(model)) return model;
  throw new ConfigError(
    `${what}, and ${model.constructor.name} can't decode: it lacks initialDecodeState and extendStep (Decodable).`,
  );
}

/** Decodes one dataset again and again; its input and step are made at first use. */
export class DatasetDecoder {
  #stepper: Stepper | undefined;

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly model: Decodable,
    private readonly params: FlatParams,
    private readonly dataset: ProgramDataset,
  ) {}

  async close(): Promise<void> {
    await this.#stepper?.dispose();
    this.#stepper = undefined;
  }

  /** Batches of a decode: `evalLoopNumBatches`, or, where that is null, one, and all where metrics are of all; -1: all. */
  private get limit(): number {
    return (
      this.dataset.settings.evalLoopNumBatches ?? (this.dataset.open().predictMetrics() === null ? 1 : -1)
    );
  }

  /** Decodes the first `limit` batches. The same step produces the same text. */
  async decode({ throwIfStopped }: Pick<ProgramRun, 'throwIfStopped'>): Promise<DecodeResult> {
    const input = this.dataset.open();
    input.reset();
    // Training has changed the parameters.
    this.#stepper?.refresh();
    const { limit } = this;
    const seed = prngKey(this.task.hp.decode.hp.randomSeed);
    const stream = foldIn(seed, hashString(`decode_test_${this.dataset.name}`));
    const started = performance.now();
    const decoded: DecodedExample[] = [];
    for (let batch = 0; limit === -1 || batch < limit; batch++) {
      throwIfStopped();
      const next = await nextBatch(input);
      if (!next) break;
      decoded.push(...(await this.decodeBatch(input, next as LmBatch, foldIn(stream, batch))));
    }
    const { metrics, examples } = measure(input.predictMetrics(), decoded);
    const seconds = (performance.now() - started) / 1000;
    const drawn = (e: DecodedExample) =>
      (e.sampled ?? [e]).reduce((sum, s) => sum + s.decode_length - e.prefix_length, 0);
    const tokens = examples.reduce((sum, e) => sum + drawn(e), 0);
    const throughput = { unit: TOKEN_UNIT.unit, perSec: tokens / seconds };
    const [changes, skipped] = [this.dataset.takeChanges(), input.skipped.take()];
    return { metrics, examples, skipped, seconds, throughput, changes };
  }

  private async decodeBatch(input: InputSource, batch: LmBatch, key: PrngKey): Promise<DecodedExample[]> {
    const { decoder } = this.task.hp.decode.hp;
    const lengths = exampleLengths(batch);
    const prefixLengths = this.prefixLengths(batch, lengths, foldIn(key, 0));
    const prompt = this.promptOf(batch);
    const stepper = await this.stepperOf(decoder.numRows(lengths.data.length), prompt);
    stepper.reset();
    if (this.model.begin) await stepper.begin(prompt);
    const request = { prefixIds: batch.ids, prefixLengths, key: foldIn(key, 1) };
    const output = await decoder.decode({ ...request, ...stepper.calls });
    return describeExamples(input, batch, lengths, prefixLengths, output);
  }

  private get vocabulary(): IdVocabulary | null {
    return this.dataset.open().vocabularyFor('ids');
  }

  /** The arrays with which a decode begins, besides tokens. */
  private promptOf(batch: LmBatch): Record<string, HostTensor> {
    const arrays = batch as unknown as Readonly<Record<string, HostTensor | undefined>>;
    const { promptNames = [] } = this.model;
    return Object.fromEntries(
      promptNames.map((name) => {
        const array = arrays[name];
        if (array !== undefined) return [name, array];
        throw new ConfigError(
          `Dataset '${this.dataset.name}' has no '${name}', with which ${this.task.model.constructor.name} begins a decode.` +
            `${didYouMean(name, Object.keys(arrays))} It has: ${Object.keys(arrays).join(', ')}.`,
        );
      }),
    );
  }

  private async stepperOf(rows: number, prompt: Record<string, HostTensor>): Promise<Stepper> {
    if (this.#stepper?.rows === rows) return this.#stepper;
    await this.#stepper?.dispose();
    const { decoder } = this.task.hp.decode.hp;
    const runs = expectedDecodeRuns(this.options, this.task, this.limit);
    this.#stepper = await Stepper.create({
      model: this.model,
      params: this.params,
      rows,
      prompt,
      seqlen: decoder.hp.seqlen,
      rule: decoder.rule,
      mayDraw: (id) => decoder.eosIds.has(id) || (this.vocabulary?.hasText(id) ?? true),
      compileOptions: (name) => compileOptions(this.options, name, runs),
    });
    return this.#stepper;
  }

  /** Lengths of the prompts, [B]: as the task says; else the inputs of examples that have them, or drawn. */
  private prefixLengths(batch: LmBatch, lengths: Int32Tensor, key: PrngKey): Int32Tensor {
    const { decoder, prefixLength } = this.task.hp.decode.hp;
    const atMost = (limit: (row: number) => number): Int32Tensor => ({
      ...lengths,
      data: lengths.data.map((length, row) => Math.min(length, limit(row))),
    });
    if (prefixLength !== null) return atMost(() => prefixLength);
    const { inputsIndicator } = batch as LmBatch & { readonly inputsIndicator?: Int32Tensor };
    if (inputsIndicator === undefined) return decoder.drawPrefixLengths(lengths, key);
    const size = inputsIndicator.shape[1]!;
    // ids are a token behind the labels that inputsIndicator is about.
    return atMost((row) => 1 + runOfOnes(inputsIndicator.data.subarray(row * size, (row + 1) * size)));
  }
}

/** Metrics of the continuations, and the examples with the texts that these compare. */
function measure(
  predictions: ExampleMetrics<ArrayLike<number>> | null,
  examples: readonly DecodedExample[],
): Pick<DecodeResult, 'metrics' | 'examples'> {
  if (predictions === null) return { metrics: {}, examples };
  const ids = examples.map(({ example_id = -1 }) => example_id);
  const continuations = examples.map(({ decoded_ids, prefix_length }) => decoded_ids.slice(prefix_length));
  predictions.add(ids, continuations);
  const { metrics, compared } = predictions.result();
  const completed = examples.map((example, i) => {
    const values = compared.get(ids[i]!);
    if (values === undefined) return example;
    return { ...example, seqio_targets: values.target, seqio_postprocessed_predictions: values.output };
  });
  return { metrics, examples: completed };
}

/** Number of ones before the first other value. */
function runOfOnes(values: Int32Array): number {
  const end = values.findIndex((value) => value !== 1);
  return end < 0 ? values.length : end;
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
  const { exampleIds } = batch as LmBatch & { readonly exampleIds?: Int32Tensor };
  const samples = output.decodeLengths.data.length / rows;
  const size = output.outputIds.shape.at(-1)!;
  const vocabulary = input.vocabularyFor('ids');
  const text = (all: Int32Array) => {
    // The end of a sequence may be an id without text.
    const ids = all.filter((id) => vocabulary?.hasText(id) ?? true);
    return input.idsToStrings({ shape: [1, ids.length], data: ids })[0]!;
  };
  const sampleAt = (index: number, prefixLength: number): Sample => {
    const length = output.decodeLengths.data[index]!;
    const ids = output.outputIds.data.slice(index * size, index * size + length);
    const decoded = text(ids);
    return {
      decoded,
      decoded_substr: textAfter(text(ids.slice(0, prefixLength)), decoded),
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
      ...(exampleIds !== undefined && { example_id: exampleIds.data[row]! }),
      ids: [...ids],
      ...sampled[0]!,
      ...(samples > 1 && { sampled }),
    };
  });
}
