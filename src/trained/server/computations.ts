/** @file Continuations and predictions of requests under way: their number is bounded, and they end with their client. */
import { randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Completion } from '../completion.js';
import type { ExamplePrediction } from '../examplePredictor.js';
import { RequestError } from '../requestError.js';
import type { TrainedRun } from '../trainedRun.js';
import type { ActiveRequests } from './activeRequests.js';
import type { Prompt } from './completionBody.js';
import { HttpError } from './httpError.js';
import type { PredictRequest } from './predictBody.js';
import type { RequestSettings } from './requestFields.js';
import type { ServerMetrics } from './serverMetrics.js';

/** The bounds of a server's work. */
export interface ComputationOptions {
  readonly activeRequests: ActiveRequests;
  /** Continuations or examples that are computed or wait at once. */
  readonly maxWaiting: number;
}

/** Those of continuations. */
export interface CompletionsOptions extends ComputationOptions {
  /** Seconds after which a request is given up. */
  readonly maxSeconds: number;
  readonly metrics: ServerMetrics;
}

/** @throws HttpError 429 where more are under way or wait than may */
function checkRoom(what: string, count: number, more: number, { maxWaiting }: ComputationOptions): void {
  if (count + more <= maxWaiting) return;
  const message = `${count} ${what} or wait, of at most ${maxWaiting}. Try again later.`;
  throw new HttpError(429, message, { code: 'overloaded' });
}

const tooLong = (seconds: number): HttpError =>
  new HttpError(503, `The request was not answered within ${seconds} s. Try again later.`, {
    code: 'timeout',
  });

/** Continuations under way. */
export class Completions {
  readonly #current = new Set<Completion>();
  /** Those whose prompts are being encoded. */
  #beginning = 0;

  constructor(private readonly options: CompletionsOptions) {}

  get count(): number {
    return this.#beginning + this.#current.size;
  }

  /** Makes the continuations of each prompt of a request; they end with its client's connection, or when its time is over. */
  async begin(
    run: TrainedRun,
    prompts: readonly Prompt[],
    settings: RequestSettings,
    connection: Socket,
  ): Promise<Completion[]> {
    const { activeRequests, maxSeconds, metrics } = this.options;
    const began = performance.now();
    const all = prompts.flatMap((prompt) => new Array<Prompt>(settings.samples).fill(prompt));
    checkRoom('continuations are decoded', this.count, all.length, this.options);
    const begun = await this.#make(run, all, settings);
    for (const completion of begun) void metrics.follow(completion, began);
    const end = (error: HttpError | undefined) => {
      for (const completion of begun) error === undefined ? completion.cancel() : completion.fail(error);
    };
    const stopped = activeRequests.begin(connection, end);
    const timer = setTimeout(() => end(tooLong(maxSeconds)), maxSeconds * 1000);
    const done = () => {
      clearTimeout(timer);
      stopped();
    };
    const ends = begun.map(async (completion) => {
      if (completion.finishReason !== undefined) return;
      this.#current.add(completion);
      await completion.ended;
      this.#current.delete(completion);
    });
    void Promise.all(ends).then(done);
    return begun;
  }

  async #make(
    run: TrainedRun,
    prompts: readonly Prompt[],
    { samples, options }: RequestSettings,
  ): Promise<Completion[]> {
    // Without a seed, equal prompts draw texts of their own. With one, the samples of each prompt do.
    const seedOf = (index: number) =>
      options.seed === undefined ? randomInt(2 ** 31) : options.seed + (index % samples);
    this.#beginning += prompts.length;
    try {
      return await run.beginAll(prompts, options, seedOf);
    } finally {
      this.#beginning -= prompts.length;
    }
  }
}

/** Examples under way. */
export class PredictedExamples {
  #count = 0;

  constructor(private readonly options: ComputationOptions) {}

  get count(): number {
    return this.#count;
  }

  /**
   * Predictions for the examples of a request. A batch that is computed as its client leaves is computed to its end.
   *
   * @param param the field that has the examples.
   */
  async predict(
    run: TrainedRun,
    { instances }: Pick<PredictRequest, 'instances'>,
    connection: Socket,
    param = 'instances',
  ): Promise<ExamplePrediction[]> {
    const { activeRequests } = this.options;
    checkRoom('examples are predicted', this.count, instances.length, this.options);
    this.#count += instances.length;
    const stopping = new AbortController();
    const stopped = new Promise<never>((_, reject) => {
      stopping.signal.addEventListener('abort', () => reject(stopping.signal.reason));
    });
    const done = activeRequests.begin(connection, (error) =>
      stopping.abort(error ?? new HttpError(400, 'The client has left.')),
    );
    // A path would let clients read this machine's files.
    const settings = { readsFiles: false, signal: stopping.signal };
    const predicting = run.predict(instances, settings).finally(() => {
      done();
      this.#count -= instances.length;
    });
    try {
      return await Promise.race([predicting, stopped]);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      throw new HttpError(400, error.message.replace(/^predict: /, ''), { param });
    }
  }
}
