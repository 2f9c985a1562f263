/** @file Failures outside of any awaited call: errors of timers and events, unhandled rejections, waiting for nothing. */

/** Watches for such failures from `listen` to `close`; the process outlives them meanwhile. The first one counts. */
export class StrayFailures {
  #failure: { readonly error: unknown } | undefined;
  /** Ends the call of `during` that is under way. */
  #fail: ((error: unknown) => void) | undefined;
  readonly #onError = (error: unknown): void => this.#take(error);
  readonly #onIdle = (): void => this.#take(this.stuck());

  /** @param stuck makes the error of a process that awaits a promise which nothing is left to settle */
  constructor(private readonly stuck: () => Error) {}

  listen(): void {
    // Unhandled rejections come here, too.
    process.on('uncaughtException', this.#onError);
    process.on('beforeExit', this.#onIdle);
  }

  close(): void {
    process.off('uncaughtException', this.#onError);
    process.off('beforeExit', this.#onIdle);
  }

  /** Takes a failure that someone else has found. */
  fail(error: unknown): void {
    this.#take(error);
  }

  /** @throws the failure, if there was one. */
  throwIfAny(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Runs `work`, which may have to be abandoned: one call at a time. @throws its error, or the failure that comes first */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.throwIfAny();
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#fail = reject;
        work().then(resolve, reject);
      });
    } finally {
      this.#fail = undefined;
    }
  }

  #take(error: unknown): void {
    this.#failure ??= { error };
    this.#fail?.(this.#failure.error);
  }
}
