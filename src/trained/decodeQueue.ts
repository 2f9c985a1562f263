/** @file Queues of completions: in rows of one batch, which they join and leave between steps; or one after the other. */
import type { CompileOptions } from '../compiler/index.js';
import {
  type BaseDecoder,
  bytesOf,
  type Constraints,
  type Decodable,
  Stepper,
  type StepperOptions,
} from '../decoding/index.js';
import { draftModel, type FlatParams } from '../programs/index.js';
import { withinMemory } from './batchMemory.js';
import type { Completion } from './completion.js';
import type { Specs } from './predictions.js';
import { RequestError } from './requestError.js';
import { RowBatch, type Waiting } from './rowBatch.js';

/** The model of a queue, and the size of its batches. */
export interface DecodeQueueOptions {
  readonly model: Decodable;
  readonly params: FlatParams;
  /** Completions that are decoded at once. */
  readonly rows: number;
  /** Tokens of a prompt and its continuation, at most. */
  readonly seqlen: number;
  /** Tokens that all rows have at once, at most; default: as many as rows have places for. */
  readonly cacheTokens?: number | undefined;
  /** Specs of the arrays of the completions' sources, where they have some. */
  readonly source?: Specs | undefined;
  /** Whether an id has text or ends a sequence; others are never drawn. */
  readonly mayDraw: (id: number) => boolean;
  readonly compileOptions: (name: string) => CompileOptions;
}

/** Rows of a queue's batch, those that are busy, and completions that wait for one; tokens that rows have, and their places. */
export interface DecodeLoad {
  readonly rows: number;
  readonly busy: number;
  readonly waiting: number;
  readonly tokens: number;
  readonly places: number;
}

/** Results of steps. */
type StepOptions = Pick<StepperOptions, 'rule' | 'candidates' | 'draftTokens' | 'isConstrained'>;

/** Tokens that a run is expected to draw, of which each takes a run of the decoding step. */
const TOKENS = 10_000;

/** Base of the queues: decodes completions, first come, first served, as soon as there is room. */
export abstract class DecodeQueue {
  readonly #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;
  #stepper: Promise<Stepper> | undefined;

  constructor(protected readonly options: DecodeQueueOptions) {}

  /** Rows of the decoding step. */
  protected abstract get rows(): number;
  /** Whether each row of the step is at a position of its own. */
  protected abstract readonly rowsApart: boolean;
  /** Results of the step: logits, unless a decoder draws by a rule of its own. */
  protected get stepOptions(): StepOptions {
    return { rule: null };
  }
  /** The model that drafts, where a decoder has one. */
  protected async draft(): Promise<StepperOptions['draft']> {
    return undefined;
  }
  /** Completions that are being decoded. */
  protected abstract get running(): readonly Completion[];
  /** Decodes some tokens of those that run, and begins with those that wait. */
  protected abstract advance(stepper: Stepper): Promise<void>;

  /** Decodes a completion once its source is there. One whose text has none ends with the error. */
  readonly add = (completion: Completion): void => {
    if (completion.source === undefined) this.#enqueue({ completion });
    else
      completion.source.then(
        (source) => this.#enqueue({ completion, source }),
        (error) => completion.fail(error),
      );
  };

  #enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#working ??= this.#work();
  }

  /** The next that waits and is not cancelled yet; none where there is no room for it. */
  protected next(hasRoom: (completion: Completion) => boolean = () => true): Waiting | undefined {
    while (this.#waiting[0]?.completion.finishReason !== undefined) this.#waiting.shift();
    const [next] = this.#waiting;
    return next && hasRoom(next.completion) ? this.#waiting.shift() : undefined;
  }

  /** Completions that were cancelled count until their row or place is free. */
  get load(): DecodeLoad {
    const { running, rows, cacheTokens } = this;
    const tokens = running.reduce((sum, { promptIds, tokens }) => sum + promptIds.length + tokens, 0);
    return { rows, busy: running.length, waiting: this.#waiting.length, tokens, places: cacheTokens };
  }

  /** Tokens that all rows have at once, at most. */
  protected get cacheTokens(): number {
    const places = this.rows * this.options.seqlen;
    return Math.min(places, this.options.cacheTokens ?? places);
  }

  /** Compiles the programs. */
  async prepare(): Promise<void> {
    const stepper = await this.#step();
    if (this.rowsApart) await stepper.prepareRows();
  }

  /** Ends running and waiting completions with an error, and frees the programs. */
  async dispose(): Promise<void> {
    this.#failAll(new RequestError('The run was disposed of before the continuation had ended.'));
    await this.#working;
    await (await this.#stepper)?.dispose();
  }

  #failAll(error: unknown): void {
    const waiting = this.#waiting.splice(0).map(({ completion }) => completion);
    for (const completion of [...this.running, ...waiting]) completion.fail(error);
  }

  async #work(): Promise<void> {
    // Requests in the same iteration of the event loop begin together.
    await Promise.resolve();
    while (this.running.length > 0 || this.#waiting.length > 0) {
      try {
        await this.advance(await this.#step());
      } catch (error) {
        this.#failAll(error);
      }
    }
    this.#working = undefined;
  }

  async #newStep(): Promise<Stepper> {
    const { rows, rowsApart } = this;
    const { model, params, seqlen, mayDraw, source } = this.options;
    const logits = { shape: [rows, model.vocabSize] };
    // A prompt is computed beside the rows of others.
    const states = rowsApart && rows > 1 ? rows + 1 : rows;
    const state = Object.values(model.initialDecodeState(states, seqlen, source && rowsOf(source, states)));
    // Of tokens, there are as many as may be held, and a prompt on its way to a row.
    const held = Math.min(1, (this.cacheTokens + (states - rows) * seqlen) / (states * seqlen));
    const [ofTokens, others] = [true, false].map((isPerToken) =>
      bytesOf(state.filter((spec) => (spec.isPerToken === true) === isPerToken)),
    ) as [number, number];
    const bytes = held * ofTokens + others + bytesOf([logits]);
    const what =
      this.cacheTokens < rows * seqlen
        ? `the keys and values of ${this.cacheTokens.toLocaleString('en-US')} tokens, and logits,`
        : `the keys, values and logits of as many texts of ${seqlen} tokens`;
    const compileOptions = (name: string) => ({ ...this.options.compileOptions(name), runs: TOKENS });
    const draft = await this.draft();
    return withinMemory({ batchSize: rows, what, bytes }, () =>
      Stepper.create({
        ...{ model, params, rows, rowsApart, seqlen, mayDraw, compileOptions, prompt: source },
        ...this.stepOptions,
        draft,
      }),
    );
  }

  #step(): Promise<Stepper> {
    this.#stepper ??= this.#newStep().catch((error) => {
      // A failed compilation is tried again with the next completion.
      this.#stepper = undefined;
      throw error;
    });
    return this.#stepper;
  }
}

/** Decodes completions in the rows of one batch, which they join and leave between steps. */
export class RowQueue extends DecodeQueue {
  protected override readonly rowsApart = true;
  #batch: RowBatch | undefined;

  protected override get rows(): number {
    return this.options.rows;
  }

  protected override get running(): readonly Completion[] {
    return this.#batch?.completions ?? [];
  }

  protected override async advance(stepper: Stepper): Promise<void> {
    const batch = (this.#batch ??= new RowBatch(stepper, this.options.seqlen, this.cacheTokens));
    await batch.advance(() => this.next((completion) => batch.hasRoom(completion)));
  }
}

/** Decodes completions one after the other, by a decoder of rules of its own, whose tokens are known once the whole is. */
export class WholeQueue extends DecodeQueue {
  protected override readonly rowsApart = false;
  #completion: Completion | undefined;

  constructor(
    options: DecodeQueueOptions,
    private readonly decoder: BaseDecoder,
    private readonly constraints: Constraints,
  ) {
    super(options);
  }

  protected override get rows(): number {
    return this.decoder.numRows(1);
  }

  protected override get stepOptions(): StepOptions {
    const { rule, candidates, draftTokens, isConstrained } = this.decoder;
    return { rule, candidates, draftTokens, isConstrained };
  }

  protected override draft(): Promise<StepperOptions['draft']> {
    return draftModel(this.decoder);
  }

  protected override get running(): Completion[] {
    return this.#completion ? [this.#completion] : [];
  }

  protected override async advance(stepper: Stepper): Promise<void> {
    const next = this.next();
    if (next === undefined) return;
    const { completion } = next;
    this.#completion = completion;
    try {
      await this.#decode(stepper, next);
      completion.end();
    } catch (error) {
      completion.fail(error);
    }
    stepper.reset();
    this.#completion = undefined;
  }

  async #decode(stepper: Stepper, { completion, source }: Waiting): Promise<void> {
    if (source) await stepper.begin(source);
    const { promptIds, key } = completion;
    const count = promptIds.length;
    const { outputIds, decodeLengths } = await this.decoder.decode({
      prefixIds: { shape: [1, count], dtype: 'int32', data: promptIds },
      prefixLengths: { shape: [1], dtype: 'int32', data: Int32Array.of(count) },
      ...{ key, constraints: this.constraints },
      ...stepper.calls,
    });
    // The best of several comes first.
    for (const id of outputIds.data.subarray(count, decodeLengths.data[0])) if (completion.accept(id)) return;
  }
}

/** Specs with another number of rows. */
const rowsOf = (specs: Specs, rows: number): Specs =>
  Object.fromEntries(
    Object.entries(specs).map(([path, { shape, dtype }]) => [
      path,
      { shape: [rows, ...shape.slice(1)], dtype },
    ]),
  );
