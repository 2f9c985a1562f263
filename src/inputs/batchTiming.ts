/** @file Timing of batches: the share of time that an input spends making them. */

/** Minimum length of a measurement; long, since programs take several batches at once. */
const WINDOW = { batches: 8, milliseconds: 300 };
/** Share above which a thread pays: it costs as much as many batches to start, and competes for the training cores. */
const SLOW_SHARE = 0.02;

/** Measures the time between `begin` and `end`, while a batch is made, against the time between batches. */
export class BatchTiming {
  /** Number of batches so far. */
  made = 0;
  /** Whether the last batches' share is worth a thread. */
  isSlow = false;
  #began = 0;
  #window = { began: 0, made: 0, making: 0 };

  /** @param now the clock, in milliseconds. */
  constructor(private readonly now: () => number = () => performance.now()) {}

  begin(): void {
    this.#began = this.now();
  }

  end(): void {
    const now = this.now();
    // The first batch reads the data.
    if (this.made++ === 0) this.#window = { began: now, made: 1, making: 0 };
    else this.#window.making += now - this.#began;
    const { began, made, making } = this.#window;
    if (this.made - made < WINDOW.batches || now - began < WINDOW.milliseconds) return;
    this.isSlow = making > SLOW_SHARE * (now - began);
    this.#window = { began: now, made: this.made, making: 0 };
  }
}
