/** @file Continuations of the examples of one dataset. */
import { foldIn, type HostTensor, hashString, type PrngKey, prngKey } from '../compiler/index.js';
import {
  Constraints,
  type Decodable,
  type DecodeOutput,
  type DecodingModel,
  type ExampleSettings,
  exampleSettings,
  type Float32Tensor,
  type Int32Tensor,
  isDecodable,
  Stepper,
  targetPath,
} from '../decoding/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import {
  arraysOf,
  type Batch,
  type ExampleMetrics,
  type IdVocabulary,
  type LmBatch,
  nextBatch,
  TOKEN_UNIT,
  textAfter,
  textOf,
} from '../inputs/index.js';
import { compileOptions, type JobOptions, slowUnit, timed } from '../runs/index.js';
import type { Decode, DecodedExample, DecodeResult, ProgramRun, Sample, SingleTask } from '../tasks/index.js';
import { draftModel } from './draftModel.js';
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
  #constraints: Constraints | undefined;

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly model: Decodable,
    private readonly params: FlatParams,
    private readonly dataset: ProgramDataset,
    /** How to decode, and how many tokens the job draws; by default, as the task does. */
    private readonly given?: { readonly decode: Decode; readonly runs?: number },
  ) {}

  private get decodeSettings(): Decode['hp'] {
    return (this.given?.decode ?? this.task.hp.decode).hp;
  }

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
    const seed = prngKey(this.decodeSettings.randomSeed);
    const stream = foldIn(seed, hashString(`decode_test_${this.dataset.name}`));
    const started = performance.now();
    const decoded: DecodedExample[] = [];
    for (let batch = 0; limit === -1 || batch < limit; batch++) {
      throwIfStopped();
      const next = await nextBatch(input);
      if (!next) break;
      decoded.push(...(await this.decodeBatch(next, foldIn(stream, batch))));
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

  /** Continues the examples of one batch by the parameters as they are. */
  async continueBatch(batch: Batch, key: PrngKey): Promise<DecodedExample[]> {
    this.#stepper?.refresh();
    return this.decodeBatch(batch, key);
  }

  private async decodeBatch(batch: Batch, key: PrngKey): Promise<DecodedExample[]> {
    const { decoder } = this.decodeSettings;
    const prompt = this.promptOf(batch);
    const tokens = this.tokensOf(batch);
    const lengths = exampleLengths(tokens);
    const prefixLengths = this.prefixLengths(tokens, lengths, foldIn(key, 0));
    const settings = exampleSettings(new Map(arraysOf(batch)));
    const stepper = await this.stepperOf(tokens.ids.shape as [number, number], prompt, settings);
    stepper.reset();
    if (this.model.begin) await stepper.begin(prompt);
    const { constraints } = this;
    const request = { prefixIds: tokens.ids, prefixLengths, settings, key: foldIn(key, 1), constraints };
    const output = await decoder.decode({ ...request, ...this.notingProgress(stepper.calls) });
    const sources = this.sourcesOf(batch);
    const { exampleIds } = batch as { readonly exampleIds?: Int32Tensor };
    const examples = { tokens, lengths, prefixLengths, sources, exampleIds };
    return describeExamples(examples, output, this.textOfTargets());
  }

  /** The calls of a decode, each of which says that the one before has finished. */
  private notingProgress(calls: DecodingModel): DecodingModel {
    const { progress } = this.options;
    if (progress === undefined) return calls;
    const noting = (call: unknown) => {
      if (typeof call !== 'function') return call;
      return (...args: readonly unknown[]) => {
        progress.finished();
        return call(...args);
      };
    };
    return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, noting(call)])) as never;
  }

  private get vocabulary(): IdVocabulary | null {
    return this.dataset.open().vocabularyFor(targetPath(this.model, 'ids'));
  }

  /** Compiler of constraints on the tokens of the vocabulary, where there is one. */
  private get constraints(): Constraints | undefined {
    const { vocabulary, model } = this;
    const { eosIds } = this.decodeSettings.decoder;
    if (vocabulary === null) return undefined;
    this.#constraints ??= new Constraints(model.vocabSize, (id) => vocabulary.tokenBytes(id), eosIds);
    return this.#constraints;
  }

  /** The arrays of the tokens that are continued. */
  private tokensOf(batch: Batch): LmBatch {
    const { nested } = this.model;
    return (nested === undefined ? batch : batch[nested.target]) as LmBatch;
  }

  /** Text of continued ids, without those that have none, such as the end of a sequence. */
  private textOfTargets(): (ids: Int32Array) => string {
    const { vocabulary } = this;
    const input = this.dataset.open();
    return (all) => {
      const ids = all.filter((id) => vocabulary?.hasText(id) ?? true);
      if (this.model.nested && vocabulary) return vocabulary.decode(ids);
      return input.idsToStrings({ shape: [1, ids.length], data: ids })[0]!;
    };
  }

  /** Texts of the sources, where tokens are continued beside others. */
  private sourcesOf(batch: Batch): readonly string[] | undefined {
    const { nested } = this.model;
    if (nested === undefined) return undefined;
    const source = batch[nested.source] as Pick<LmBatch, 'ids' | 'paddings'>;
    // Features have no text.
    if (!('ids' in source)) return undefined;
    const vocabulary = this.dataset.open().vocabularyFor(`${nested.source}.ids`);
    const size = source.ids.shape[1]!;
    return Array.from(exampleLengths(source).data, (length, row) => {
      return textOf(vocabulary, source.ids.data.subarray(row * size, row * size + length));
    });
  }

  /** The arrays with which a decode begins, besides tokens. */
  private promptOf(batch: Batch): Record<string, HostTensor> {
    const arrays = new Map(arraysOf(batch));
    const names = [...arrays.keys()];
    const { promptNames = [] } = this.model;
    return Object.fromEntries(
      promptNames.map((name) => {
        const array = arrays.get(name);
        if (array !== undefined) return [name, array];
        throw new ConfigError(
          `Dataset '${this.dataset.name}' has no '${name}', with which ${this.task.model.constructor.name} begins a decode.` +
            `${didYouMean(name, names)} It has: ${names.join(', ')}.`,
        );
      }),
    );
  }

  private async stepperOf(
    [batchSize, longest]: readonly [number, number],
    prompt: Record<string, HostTensor>,
    given: ExampleSettings,
  ): Promise<Stepper> {
    const { decoder } = this.decodeSettings;
    const rows = decoder.numRows(batchSize);
    const sharing = decoder.sharing(batchSize, longest);
    const rowSettings = decoder.ruleFields(given);
    if (this.#stepper?.fits({ rows, sharing, prompt, rowSettings })) return this.#stepper;
    await this.#stepper?.dispose();
    const runs = this.given?.runs ?? expectedDecodeRuns(this.options, this.task, this.limit);
    const settings = {
      ...{ model: this.model, params: this.params },
      ...{ rows, prompt, sharing, rowSettings },
      seqlen: decoder.hp.seqlen,
      rule: decoder.rule,
      candidates: decoder.candidates,
      draftTokens: decoder.draftTokens,
      draft: await draftModel(decoder),
      isConstrained: decoder.isConstrained,
      mayDraw: (id: number) => decoder.eosIds.has(id) || (this.vocabulary?.hasText(id) ?? true),
      compileOptions: (name: string) => compileOptions(this.options, name, runs),
    };
    this.#stepper = await timed(this.options, 'compile', () =>
      slowUnit(this.options, 'compilation of the decode', () => Stepper.create(settings)),
    );
    return this.#stepper;
  }

  /** Lengths of the prompts, [B]: as the task says; else one token behind a source, the inputs of examples that have them, or drawn. */
  private prefixLengths(batch: LmBatch, lengths: Int32Tensor, key: PrngKey): Int32Tensor {
    const { decoder, prefixLength } = this.decodeSettings;
    const atMost = (limit: (row: number) => number): Int32Tensor => ({
      ...lengths,
      data: lengths.data.map((length, row) => Math.min(length, limit(row))),
    });
    if (prefixLength !== null || this.model.nested) return atMost(() => prefixLength ?? 1);
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
function exampleLengths({ ids, paddings }: Pick<LmBatch, 'ids' | 'paddings'>): Int32Tensor {
  const [rows = 0, length = 0] = ids.shape;
  const data = new Int32Array(rows);
  for (let i = 0; i < rows * length; i++) if (paddings.data[i] === 0) data[Math.trunc(i / length)]! += 1;
  return { shape: [rows], dtype: 'int32', data };
}

/** Examples of a batch that are continued. */
interface Continued {
  readonly tokens: LmBatch;
  readonly lengths: Int32Tensor;
  readonly prefixLengths: Int32Tensor;
  readonly sources: readonly string[] | undefined;
  readonly exampleIds: Int32Tensor | undefined;
}

function describeExamples(
  { tokens, lengths, prefixLengths, sources, exampleIds }: Continued,
  output: DecodeOutput,
  text: (ids: Int32Array) => string,
): DecodedExample[] {
  const [rows = 0, exampleLength = 0] = tokens.ids.shape;
  const samples = output.decodeLengths.data.length / rows;
  const size = output.outputIds.shape.at(-1)!;
  const sampleAt = (index: number, prefixLength: number): Sample => {
    const length = output.decodeLengths.data[index]!;
    const ids = output.outputIds.data.slice(index * size, index * size + length);
    const decoded = text(ids);
    const { entropy, topIds, topLogprobs, scores } = output;
    /** The values of the continuation, `each` a token. */
    const told = ({ data }: { data: Int32Array | Float32Array }, each = 1) =>
      Array.from(data.slice((index * size + prefixLength) * each, (index * size + length) * each));
    const others = (tensor: Int32Tensor | Float32Tensor): number[][] => {
      const each = tensor.shape.at(-1)!;
      const all = told(tensor, each);
      return Array.from({ length: all.length / each }, (_, i) => all.slice(i * each, (i + 1) * each));
    };
    return {
      decoded,
      decoded_substr: textAfter(text(ids.slice(0, prefixLength)), decoded),
      decoded_ids: [...ids],
      logprobs: told(output.logprobs),
      ...(entropy && { entropy: told(entropy) }),
      ...(topIds && topLogprobs && { top_ids: others(topIds), top_logprobs: others(topLogprobs) }),
      ...(scores && { score: scores.data[index]! }),
      decode_length: length,
    };
  };
  // Rows of padding, which complete the last batch, are not examples.
  const wanted = Array.from({ length: rows }, (_, row) => row).filter((row) => lengths.data[row]! > 0);
  return wanted.map((row) => {
    const prefixLength = prefixLengths.data[row]!;
    const start = row * exampleLength;
    const ids = tokens.ids.data.slice(start, start + lengths.data[row]!);
    const sampled = Array.from({ length: samples }, (_, s) => sampleAt(row * samples + s, prefixLength));
    return {
      ...(sources && { source: sources[row]! }),
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
