/** @file Bound of a series by the mean and the standard deviation of its last values. */

/** Half-width of the band that is never an outlier, relative to the mean: a series may have no noise at all. */
const LEAST_BAND = 1e-3;

/**
 * The value above which the next one of a series is an outlier: the mean of the last `window` values and `sigma` standard
 * deviations, as in OLMo-core's SkipStepOptimizer. There is no bound before half of the window is filled. An outlier enters the
 * window as the bound, so that one huge value does not lift the bound above all that follow, while a new level does in time.
 */
export class OutlierBound {
  #values: number[] = [];

  /** @param window at least 2. */
  constructor(
    private readonly sigma: number,
    private readonly window: number,
  ) {}

  /** Infinity where there is none. */
  get bound(): number {
    const { length } = this.#values;
    if (length < Math.max(2, this.window / 2)) return Number.POSITIVE_INFINITY;
    const mean = this.#values.reduce((sum, value) => sum + value, 0) / length;
    const squares = this.#values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    return mean + Math.max(this.sigma * Math.sqrt(squares / (length - 1)), LEAST_BAND * Math.abs(mean));
  }

  /** Adds a value, unless it is not finite. */
  add(value: number): void {
    if (!Number.isFinite(value)) return;
    this.#values.push(Math.min(value, this.bound));
    if (this.#values.length > this.window) this.#values.shift();
  }

  /** The values, for `restore`. */
  get state(): readonly number[] {
    return [...this.#values];
  }

  restore(state: readonly number[]): void {
    this.#values = state.slice(-this.window);
  }
}
