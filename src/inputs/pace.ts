/** @file Share of a program's time that is spent on making batches. */

/** Batches that are looked at together are at least so many, and milliseconds: programs take several at once. */
const WINDOW = { batches: 8, milliseconds: 300 };
/** Starting a thread costs as much as many batches, and the thread takes from the cores that train. */
const SLOW_SHARE = 0.02;

/** Measures the making of batches, between `begin` and `end`, against all that goes on from one to the next. */
export class Pace {
  /** Batches so far. */
  made = 0;
  /** Whether making the last of them took a part of the time that is worth a thread. */
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
