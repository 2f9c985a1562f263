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

/** The served run, and the bounds of its work. */
export interface ComputationOptions {
  readonly run: TrainedRun;
  readonly activeRequests: ActiveRequests;
  /** Continuations or examples that are computed or wait at once. */
  readonly maxWaiting: number;
}

/** @throws HttpError 404 for another model than the one that is served */
function checkModel(model: string | undefined, { name }: TrainedRun): void {
  if (model === undefined || model === name) return;
  const message = `The model '${model}' is not served; the server has '${name}'.`;
  throw new HttpError(404, message, { param: 'model', code: 'model_not_found' });
}

/** @throws HttpError 429 where more are under way or wait than may */
function checkRoom(what: string, count: number, more: number, { maxWaiting }: ComputationOptions): void {
  if (count + more <= maxWaiting) return;
  const message = `${count} ${what} or wait, of at most ${maxWaiting}. Try again later.`;
  throw new HttpError(429, message, { code: 'overloaded' });
}

/** Continuations under way. */
export class Completions {
  readonly #current = new Set<Completion>();
  /** Those whose prompts are being encoded. */
  #beginning = 0;

  constructor(private readonly options: ComputationOptions) {}

  get count(): number {
    return this.#beginning + this.#current.size;
  }

  /** Makes the continuations of each prompt of a request; they end with its client's connection. */
  async begin(
    prompts: readonly Prompt[],
    settings: RequestSettings,
    connection: Socket,
  ): Promise<Completion[]> {
    const { run, activeRequests } = this.options;
    checkModel(settings.model, run);
    const all = prompts.flatMap((prompt) => new Array<Prompt>(settings.samples).fill(prompt));
    checkRoom('continuations are decoded', this.count, all.length, this.options);
    const begun = await this.#make(all, settings);
    const done = activeRequests.begin(connection, (error) => {
      for (const completion of begun) error === undefined ? completion.cancel() : completion.fail(error);
    });
    const ends = begun.map(async (completion) => {
      if (completion.finishReason !== undefined) return;
      this.#current.add(completion);
      await completion.ended;
      this.#current.delete(completion);
    });
    void Promise.all(ends).then(done);
    return begun;
  }

  async #make(prompts: readonly Prompt[], { samples, options }: RequestSettings): Promise<Completion[]> {
    // Without a seed, equal prompts draw texts of their own. With one, the samples of each prompt do.
    const seedOf = (index: number) =>
      options.seed === undefined ? randomInt(2 ** 31) : options.seed + (index % samples);
    this.#beginning += prompts.length;
    try {
      return await Promise.all(
        prompts.map((prompt, i) => this.options.run.begin(prompt, { ...options, seed: seedOf(i) })),
      );
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
    { model, instances }: PredictRequest,
    connection: Socket,
    param = 'instances',
  ): Promise<ExamplePrediction[]> {
    const { run, activeRequests } = this.options;
    checkModel(model, run);
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
