/** @file A trained run in use: continuations of prompts and predictions for batches, from one checkpoint. */
import type { CompileOptions, Engine } from '../compiler/index.js';
import { isDecodable } from '../decoding/index.js';
import { build } from '../hparams/index.js';
import type { BaseTokenizer, Batch } from '../inputs/index.js';
import { type RestoredState, restoreParams, trainingDataset } from '../programs/index.js';
import { compileOptions, type JobOptions, keptProducts } from '../runs/index.js';
import { SCORE, type ScoredRow, type SingleTask } from '../tasks/index.js';
import type { ChatRenderer } from './chat/chatRenderer.js';
import type { ClassOutput } from './classOutput.js';
import type { Completion } from './completion.js';
import type { DecodeLoad } from './decodeQueue.js';
import type { ExamplePrediction, ExamplePredictor, PredictOptions, RawExample } from './examplePredictor.js';
import type { GenerateOptions } from './generation.js';
import { RowScorer } from './languageTasks/rowScorer.js';
import type { Specs } from './predictions.js';
import { type Predictions, Predictor } from './predictor.js';
import { RequestError } from './requestError.js';
import { roundCaches } from './roundCaches.js';
import { type RunDocument, readRunDocument } from './runDocument.js';
import { newExamplePredictor, specsByPath } from './runExamples.js';
import { RunTexts } from './runTexts.js';

/** Options of `loadRun`. */
export interface LoadRunOptions {
  /**
   * The checkpoint: a step, `best` by the metric that training tracked, or the path of another run or of one checkpoint.
   * Default: the newest.
   */
  readonly checkpoint?: number | string | undefined;
  /**
   * Continuations that are decoded at once, default 1; further ones wait. Also the rows of the batches of `predict` on
   * examples, by default those of the dataset.
   */
  readonly batchSize?: number | undefined;
  /** Directories to look for the experiment's module in. Default: ./experiments, then the package's. */
  readonly experiments?: readonly string[] | undefined;
  /** Default: `auto`. */
  readonly engine?: Engine;
  /** Default: the number of cores. */
  readonly numThreads?: number | undefined;
  /**
   * The program whose parameters are taken: `eval` takes their moving average if `task.train.evalUseEmaStates`, `decode` if
   * `decodeUseEmaStates`. Default: `decode` for a language model, `eval` for others.
   */
  readonly parametersOf?: 'eval' | 'decode' | undefined;
  /**
   * Bits of the elements that full caches have of keys and values: 8, for a quarter of float32's memory. Default: as the
   * experiment says, those of the layer's dtype.
   */
  readonly cacheBits?: 8 | undefined;
  /**
   * Tokens that all continuations together may have, prompts included; a further one waits until its longest has room. No fewer
   * than `maxTokens`. Default: `batchSize` times `maxTokens`.
   */
  readonly cacheTokens?: number | undefined;
  /** Template of chats in Jinja. Default: that of training or of the imported model, or else the messages alone. */
  readonly chatTemplate?: string | undefined;
}

/** Options of reading a continuation. */
export interface ReadOptions {
  /** An abort ends it. */
  readonly signal?: AbortSignal | undefined;
}

/** A trained run. Made by `loadRun`. */
export class TrainedRun {
  readonly task: SingleTask;
  /** Shapes and dtypes of the arrays of training's batches by path; undefined if the input does not declare them, or there is none. */
  readonly batchSpecs: Specs | undefined;
  readonly #options: JobOptions;
  readonly #predictor: Predictor;
  readonly #rows: number | undefined;
  #scores: Predictor | undefined;
  #examples: ExamplePredictor | undefined;
  readonly #texts: RunTexts;

  private constructor(
    /** Name, configs and commit, as the run recorded them. */
    readonly document: RunDocument,
    options: JobOptions,
    task: SingleTask,
    /** The parameters of the checkpoint. */
    readonly params: RestoredState,
    /** Whether they are the moving average of training's. */
    readonly isAveraged: boolean,
    rows: number | undefined,
    texts: Pick<LoadRunOptions, 'chatTemplate' | 'cacheTokens'>,
  ) {
    this.task = task;
    this.#options = options;
    this.#rows = rows;
    // Imported models may have no data.
    this.batchSpecs = document.datasets.length > 0 ? specsByPath(trainingDataset(document)) : undefined;
    this.#predictor = new Predictor({
      ...{ model: task.model, params, trained: this.batchSpecs },
      compileOptions: this.#compileOptions,
    });
    this.#texts = new RunTexts({
      ...{ document, options, task, params, batchSpecs: this.batchSpecs, rows: rows ?? 1, ...texts },
      compileOptions: this.#compileOptions,
    });
  }

  /** Reads a run's record and restores its parameters. @throws as `loadRun` */
  static async open(
    directory: string,
    {
      experiments,
      batchSize,
      parametersOf,
      chatTemplate,
      cacheBits,
      cacheTokens,
      ...options
    }: LoadRunOptions,
  ): Promise<TrainedRun> {
    if (batchSize !== undefined && (!Number.isInteger(batchSize) || batchSize < 1))
      throw new RequestError(`loadRun: batchSize: expected an integer from 1, got ${batchSize}.`);
    const document = await readRunDocument(directory, experiments);
    if (cacheBits !== undefined) roundCaches(document, cacheBits);
    const job: JobOptions = {
      ...document,
      ...options,
      ...keptProducts(directory),
      decodeDatasets: [],
      jobLogDir: directory,
      mode: 'decode',
      overrides: [],
      classVars: '',
    };
    const task = build(document.task);
    const program = parametersOf ?? (isDecodable(task.model) ? 'decode' : 'eval');
    const isAveraged = task.hp.train.usesEmaStates(program);
    const state = await restoreParams(job, task, isAveraged);
    const texts = { chatTemplate, cacheTokens };
    return new TrainedRun(document, job, task, state, isAveraged, batchSize, texts);
  }

  /** Full name of the experiment. */
  get name(): string {
    return this.document.name;
  }

  /** The step of the checkpoint. */
  get step(): number {
    return this.params.step;
  }

  /** The tokenizer of training. @throws RequestError where its input has none */
  get tokenizer(): BaseTokenizer {
    return this.#texts.tokenizer;
  }

  /**
   * Ids of a text as a prompt has them, the tokens before prompts included. A long one is encoded by a thread.
   *
   * @throws as `stream`, but not for the number of tokens
   */
  encode(text: string): Promise<Int32Array> {
    return this.#texts.encode(text);
  }

  /** Text of ids of the model's tokenizer, or of its targets. @throws InputError for ids that have none */
  decode(ids: ArrayLike<number>): string {
    return this.#texts.reader.decode(ids);
  }

  /** Bytes that an id adds to a text, of a character perhaps a part; undefined for one that adds none, or whose text alone is known. */
  tokenBytes(id: number): Uint8Array | undefined {
    return this.#texts.reader.tokenBytes(id);
  }

  /** Rows of the batch of continuations, those that are busy, and continuations that wait for one. */
  get load(): DecodeLoad {
    return this.#texts.decoding.queue.load;
  }

  /** Tokens of a prompt and its continuation together, or of a target, at most. @throws RequestError as `stream` */
  get maxTokens(): number {
    return this.#texts.decoding.seqlen;
  }

  /** The continuation of a prompt, without the prompt; of an encoder-decoder, the target of a source. @throws as `stream` */
  async generate(prompt: string, options: GenerateOptions = {}, reading: ReadOptions = {}): Promise<string> {
    const pieces: string[] = [];
    for await (const piece of this.stream(prompt, options, reading)) pieces.push(piece);
    return pieces.join('');
  }

  /**
   * The continuation of a prompt by pieces of text, each given as soon as its tokens are drawn. Up to `batchSize`
   * continuations are decoded together; others wait. Leaving the loop ends the decoding, as an abort does, whose reason the
   * loop then throws.
   *
   * @throws ConfigError for options that don't fit; RequestError for a prompt without tokens or too long, and for a
   *   model or an input that has no text; InputError for characters that the tokenizer lacks.
   */
  stream(prompt: string, options: GenerateOptions = {}, { signal }: ReadOptions = {}): Completion {
    return this.#texts.stream(prompt, options).endedBy(signal);
  }

  /**
   * As `stream`, with a long prompt encoded by a thread, so that this one continues meanwhile. A prompt is no path of a file;
   * it may be ids of a language model's tokenizer.
   *
   * @throws as `stream`
   */
  begin(prompt: string | readonly number[], options: GenerateOptions = {}): Promise<Completion> {
    return this.#texts.begin(prompt, options);
  }

  /**
   * As `begin`, of several prompts with the same options but for their seeds.
   *
   * @throws as `stream`
   */
  beginAll(
    prompts: readonly (string | readonly number[])[],
    options: GenerateOptions,
    seedOf: (index: number) => number,
  ): Promise<Completion[]> {
    return this.#texts.beginAll(prompts, options, seedOf);
  }

  /** Renders chats as prompts of the model. @throws RequestError as `stream` */
  get chat(): ChatRenderer {
    return this.#texts.decoding.chat;
  }

  /**
   * The model's predictions for a batch, by name: the result of `computePredictions`, on the host. A single tensor is
   * called `predictions`. A batch may have any number of rows, and may lack arrays (labels, say): predictions that
   * depend on them are left out.
   *
   * @throws RequestError for arrays or shapes that training's batches don't have, and if no prediction can be
   * computed.
   */
  predict(batch: Batch): Promise<Predictions>;
  /**
   * Predictions for examples as files have them, in order and of any number: records, texts, paths or bytes of files.
   * They are preprocessed like those of the first dataset that is not for training, without augmentations; only fields
   * that predictions need are read, so labels may be absent.
   *
   * @param options `readsFiles`: whether a text may be the path of a file, as by default. `signal`: an abort ends the
   * call with its reason, between two batches.
   * @throws RequestError for an example that does not fit, with its number; and if no prediction can be computed.
   */
  predict(examples: readonly RawExample[], options?: PredictOptions): Promise<ExamplePrediction[]>;
  async predict(
    given: Batch | readonly RawExample[],
    options: PredictOptions = {},
  ): Promise<Predictions | ExamplePrediction[]> {
    if (!Array.isArray(given)) return this.#predictor.predict(given as Batch);
    return this.#ofExamples().predict(given as readonly RawExample[], options);
  }

  /**
   * Log-likelihoods in nats of the last tokens of rows, behind those before them.
   *
   * @throws RequestError for a model that predicts no next tokens
   */
  logLikelihoods(rows: readonly ScoredRow[]): Promise<number[]> {
    this.#scores ??= new Predictor({
      ...{ model: this.task.model, params: this.params, trained: undefined, outputs: [SCORE] },
      compileOptions: this.#compileOptions,
    });
    return new RowScorer(this.#scores, this.maxTokens).score(rows);
  }

  /** The prediction that is logits of classes; undefined where the model is no classifier. */
  get classOutput(): ClassOutput | undefined {
    return this.continuesText ? undefined : this.#ofExamples().classOutput;
  }

  /** Whether the model continues texts, or translates them: `generate` and `stream` are for it, and `predict` for all others. */
  get continuesText(): boolean {
    const { model } = this.task;
    return isDecodable(model) && (model.begin === undefined || this.#texts.translates);
  }

  /** Whether predictions of examples are vectors by which their meanings compare: `outputs.embeddings` of each. */
  get embeds(): boolean {
    return !this.continuesText && this.#ofExamples().embeds;
  }

  /** Tokens that are read of texts, ends included; those that are cut off do not count. @throws as `predict` */
  countTokens(texts: readonly string[]): Promise<number> {
    return this.#ofExamples().countTokens(texts);
  }

  /** Compiles the programs of continuations or predictions ahead of the first one. @throws as `stream`, `predict` */
  prepare(): Promise<void> {
    if (!this.continuesText) return this.#ofExamples().prepare();
    return this.#texts.decoding.queue.prepare();
  }

  /** Ends requests in progress, and frees the compiled programs. */
  async dispose(): Promise<void> {
    await this.#texts.dispose();
    await this.#predictor.dispose();
    await this.#scores?.dispose();
  }

  #ofExamples(): ExamplePredictor {
    this.#examples ??= newExamplePredictor({
      ...{ document: this.document, directory: this.#options.jobLogDir, model: this.task.model },
      ...{ params: this.params, predictor: this.#predictor, rows: this.#rows },
    });
    return this.#examples;
  }

  readonly #compileOptions = (name: string): CompileOptions => compileOptions(this.#options, name);
}
