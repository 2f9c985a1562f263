/** @file A trained run in use: continuations of prompts and predictions for batches, from one checkpoint. */
import type { CompileOptions, Engine } from '../compiler/index.js';
import { type Constraints, GREEDY, isDecodable } from '../decoding/index.js';
import { build } from '../hparams/index.js';
import { type BaseTokenizer, type Batch, InputError } from '../inputs/index.js';
import { type RestoredState, restoreParams, trainingDataset } from '../programs/index.js';
import { compileOptions, type JobOptions, keptProducts } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import type { ChatRenderer } from './chat/chatRenderer.js';
import type { ClassOutput } from './classOutput.js';
import { Completion, ofRequest } from './completion.js';
import type { DecodeLoad } from './decodeQueue.js';
import type { ExamplePrediction, ExamplePredictor, PredictOptions, RawExample } from './examplePredictor.js';
import {
  type GenerateOptions,
  type Generation,
  generationDefaults,
  generationOf,
  rowSettingsIn,
} from './generation.js';
import { RowScorer, SCORE } from './languageTasks/rowScorer.js';
import type { ScoredRow } from './languageTasks/scoredRows.js';
import type { Specs } from './predictions.js';
import { type Predictions, Predictor } from './predictor.js';
import { RequestError } from './requestError.js';
import { type RunDocument, readRunDocument } from './runDocument.js';
import { newExamplePredictor, specsByPath } from './runExamples.js';
import {
  type Continuing,
  continuing,
  type TextParts,
  type Translating,
  translating,
} from './textDecoders.js';

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
  /** Template of chats in Jinja. Default: that of training or of the imported model, or else the messages alone. */
  readonly chatTemplate?: string | undefined;
}

/** Options of reading a continuation. */
export interface ReadOptions {
  /** An abort ends it. */
  readonly signal?: AbortSignal | undefined;
}

/** Prompts of up to this many bytes are encoded in this thread: that takes less time than a message to another. */
const SHORT_PROMPT = 2048;
/** Bytes of a prompt for each token that there is room for, where the tokenizer sets no limit of its own. */
const MOST_TOKEN_BYTES = 1024;

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
  #continuing: Continuing | undefined;
  #translating: Translating | null | undefined;

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
    private readonly chatTemplate: string | undefined,
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
  }

  /** Reads a run's record and restores its parameters. @throws as `loadRun` */
  static async open(
    directory: string,
    { experiments, batchSize, parametersOf, chatTemplate, ...options }: LoadRunOptions,
  ): Promise<TrainedRun> {
    if (batchSize !== undefined && (!Number.isInteger(batchSize) || batchSize < 1))
      throw new RequestError(`loadRun: batchSize: expected an integer from 1, got ${batchSize}.`);
    const document = await readRunDocument(directory, experiments);
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
    return new TrainedRun(document, job, task, state, isAveraged, batchSize, chatTemplate);
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
    return this.#continues().tokenizer;
  }

  /**
   * Ids of a text as a prompt has them, the tokens before prompts included. A long one is encoded by a thread.
   *
   * @throws as `stream`, but not for the number of tokens
   */
  async encode(text: string): Promise<Int32Array> {
    this.#checkBytes(text);
    const isShort = Buffer.byteLength(text) <= SHORT_PROMPT;
    return this.#started(isShort ? this.tokenizer.encode(text) : await this.#encodeAside(text));
  }

  /** Text of ids of the model's tokenizer, or of its targets. @throws InputError for ids that have none */
  decode(ids: ArrayLike<number>): string {
    return (this.#translates()?.texts ?? this.tokenizer).decode(ids);
  }

  /** Bytes that an id adds to a text, of a character perhaps a part; undefined for one that adds none, or whose text alone is known. */
  tokenBytes(id: number): Uint8Array | undefined {
    return (this.#translates()?.texts ?? this.tokenizer).tokenBytes(id);
  }

  /** Rows of the batch of continuations, those that are busy, and continuations that wait for one. */
  get load(): DecodeLoad {
    return (this.#translates() ?? this.#continues()).queue.load;
  }

  /** Tokens of a prompt and its continuation together, or of a target, at most. @throws RequestError as `stream` */
  get maxTokens(): number {
    return (this.#translates() ?? this.#continues()).seqlen;
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
    const settings = this.#settings(options);
    const translating = this.#translates();
    if (translating) return this.#translation(translating, prompt, settings).endedBy(signal);
    this.#checkBytes(prompt);
    return this.#completion(this.tokenizer.encode(prompt), settings).endedBy(signal);
  }

  /**
   * As `stream`, with a long prompt encoded by a thread, so that this one continues meanwhile. A prompt is no path of a file;
   * it may be ids of a language model's tokenizer.
   *
   * @throws as `stream`
   */
  async begin(prompt: string | readonly number[], options: GenerateOptions = {}): Promise<Completion> {
    const settings = this.#settings(options);
    const translating = this.#translates();
    if (typeof prompt !== 'string') {
      if (translating) throw new RequestError(`${this.name} reads texts, and no token ids.`);
      return this.#completion(Int32Array.from(prompt), settings, false);
    }
    if (translating) return this.#translation(translating, prompt, settings, false);
    if (Buffer.byteLength(prompt) <= SHORT_PROMPT) return this.stream(prompt, options);
    this.#checkBytes(prompt);
    return this.#completion(await this.#encodeAside(prompt), settings);
  }

  /** Renders chats as prompts of the model. @throws RequestError as `stream` */
  get chat(): ChatRenderer {
    return (this.#translates() ?? this.#continues()).chat;
  }

  /** @throws RequestError for rules of drawing where the decoder has its own */
  #settings(options: GenerateOptions): Generation['hp'] {
    const { decoder } = this.task.hp.decode.hp;
    const rules = rowSettingsIn(options);
    if (decoder.rule === null && rules.length > 0)
      throw new RequestError(
        `${rules.join(', ')}: ${this.name} decodes with a ${decoder.constructor.name}, which draws by its own rule. ` +
          'Leave out such settings, or set task.decode.decoder.',
      );
    if (!decoder.drawsByRow && (options.constraint ?? undefined) !== undefined)
      throw new RequestError(
        `constraint: ${this.name} decodes with a ${decoder.constructor.name}, whose constraint is set by task.decode.decoder.constraint.`,
      );
    return generationOf(generationDefaults(this.task.hp.decode), options);
  }

  /** @throws RequestError for a prompt of more bytes than all tokens together can decode to, before it is encoded */
  #checkBytes(prompt: string): void {
    const { tokenizer, seqlen } = this.#continues();
    const bytes = Buffer.byteLength(prompt);
    const most = (seqlen - 1) * Math.min(tokenizer.maxTokenBytes, MOST_TOKEN_BYTES);
    // A short one is encoded, for its number of tokens.
    if (bytes <= Math.max(SHORT_PROMPT, most)) return;
    throw new RequestError(
      `The prompt has ${bytes} bytes; prompt and continuation together have ${seqlen} tokens at most, so expected ${most} bytes or fewer.`,
    );
  }

  async #encodeAside(prompt: string): Promise<Int32Array> {
    const { tokenizer, encoder } = this.#continues();
    try {
      return await encoder.encode(prompt);
    } catch (error) {
      if (error instanceof InputError) throw error;
      // A thread may lack classes that this one has.
      return tokenizer.encode(prompt);
    }
  }

  #translation(
    { texts, queue, constraints }: Translating,
    source: string,
    settings: Generation['hp'],
    readsFiles = true,
  ): Completion {
    const arrays = texts.sourceOf(source, readsFiles);
    // The queue tells the reader.
    arrays.catch(() => {});
    const drawing = this.#drawing(settings, constraints);
    const model = { ...drawing, decoder: texts.decoder(), enqueue: queue.add };
    return new Completion(Int32Array.from(texts.start), settings, model, arrays);
  }

  /** Ids with the tokens before prompts. */
  #started(encoded: Int32Array): Int32Array {
    const start = this.tokenizer.promptStart;
    // A prompt may have it in its text.
    const isStarted = start.every((id, i) => encoded[i] === id);
    return isStarted ? encoded : Int32Array.of(...start, ...encoded);
  }

  #completion(encoded: Int32Array, settings: Generation['hp'], isText = true): Completion {
    const { tokenizer, queue, constraints, seqlen } = this.#continues();
    const ids = isText ? this.#started(encoded) : encoded;
    if (ids.length === 0) {
      throw new RequestError(
        'The prompt is empty: the model continues text, and needs a token to begin with.',
      );
    }
    if (ids.length >= seqlen) {
      throw new RequestError(
        `The prompt has ${ids.length} tokens; prompt and continuation together have ${seqlen} at most, so expected ${seqlen - 1} or fewer.`,
      );
    }
    return new Completion(ids, settings, {
      ...this.#drawing(settings, constraints),
      decoder: tokenizer.decoder(ids),
      enqueue: queue.add,
    });
  }

  /** @throws RequestError for a constraint that cannot be compiled */
  #drawing({ constraint }: Generation['hp'], constraints: Constraints) {
    const { rule, eosIds: endIds, hp, drawsByRow } = this.task.hp.decode.hp.decoder;
    // A decoder of whole continuations holds to its constraint itself.
    const compiled = constraint && drawsByRow ? ofRequest(() => constraints.compile(constraint)) : undefined;
    return { rule: rule ?? GREEDY, endIds, minTokens: hp.minDecodeSteps, constraint: compiled };
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
    return isDecodable(model) && (model.begin === undefined || this.#translates() !== null);
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
    return (this.#translates() ?? this.#continues()).queue.prepare();
  }

  /** Ends requests in progress, and frees the compiled programs. */
  async dispose(): Promise<void> {
    await this.#continuing?.chat.close();
    await this.#translating?.chat.close();
    await this.#continuing?.encoder.close();
    await this.#continuing?.queue.dispose();
    await this.#translating?.queue.dispose();
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

  #continues(): Continuing {
    this.#continuing ??= continuing(this.#textParts);
    return this.#continuing;
  }

  /** Of an encoder-decoder whose input makes sources of texts; null for other models. */
  #translates(): Translating | null {
    if (this.#translating === undefined) this.#translating = translating(this.#textParts);
    return this.#translating;
  }

  get #textParts(): TextParts {
    return {
      ...{ document: this.document, options: this.#options, task: this.task, params: this.params },
      ...{ rows: this.#rows ?? 1, batchSpecs: this.batchSpecs, compileOptions: this.#compileOptions },
      chatTemplate: this.chatTemplate,
    };
  }
}
