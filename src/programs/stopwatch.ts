/** @file Elapsed time without pauses. */

/** Seconds spent, without pauses; it does not run until `start`. */
export class Stopwatch {
  #elapsed = 0;
  #since: number | undefined;

  start(): void {
    this.#since ??= performance.now();
  }

  pause(): void {
    this.#elapsed = this.seconds * 1000;
    this.#since = undefined;
  }

  get seconds(): number {
    return (this.#elapsed + (this.#since === undefined ? 0 : performance.now() - this.#since)) / 1000;
  }
}
