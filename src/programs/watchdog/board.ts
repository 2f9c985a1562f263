/** @file Shared memory by which a job's thread tells the watchdog's what it does. */

/** Durations of the last steps, of which the median is taken. */
const DURATIONS = 64;
const TEXT_BYTES = 240;

/** Places of counters. */
const [BEATS, STEPS, STEP, PATIENCE, TEXT] = [0, 1, 2, 3, 4];

/** Length of the memory in bytes: five counters, padded, then durations, then text. */
const COUNTERS_BYTES = 32;
const BOARD_BYTES = COUNTERS_BYTES + 8 * DURATIONS + TEXT_BYTES;

/** What a job does, as its last note says. */
export interface Noted {
  readonly unit: string;
  /** Finished steps. */
  readonly step: number;
  /** How many times the usual limit the unit may take. */
  readonly patience: number;
}

/** One thread writes, another one reads. */
export class Board {
  readonly #counters: Int32Array;
  readonly #durations: Float64Array;
  readonly #text: Uint8Array;

  constructor(readonly memory = new SharedArrayBuffer(BOARD_BYTES)) {
    this.#counters = new Int32Array(memory, 0, COUNTERS_BYTES / 4);
    this.#durations = new Float64Array(memory, COUNTERS_BYTES, DURATIONS);
    this.#text = new Uint8Array(memory, COUNTERS_BYTES + 8 * DURATIONS);
  }

  /** Notes progress. */
  beat(): void {
    Atomics.add(this.#counters, BEATS, 1);
  }

  get beats(): number {
    return Atomics.load(this.#counters, BEATS);
  }

  /** Notes the time of a call that takes steps. */
  addDuration(seconds: number): void {
    const count = this.#counters[STEPS]!;
    this.#durations[count % DURATIONS] = seconds;
    Atomics.store(this.#counters, STEPS, count + 1);
  }

  /** Median of the last durations; undefined before the first one. */
  median(): number | undefined {
    const count = Math.min(Atomics.load(this.#counters, STEPS), DURATIONS);
    const sorted = this.#durations.slice(0, count).sort();
    return sorted[count >> 1];
  }

  note({ unit, step, patience }: Noted): void {
    const { written } = new TextEncoder().encodeInto(unit, this.#text);
    this.#counters[STEP] = step;
    this.#counters[PATIENCE] = patience;
    Atomics.store(this.#counters, TEXT, written);
  }

  noted(): Noted {
    const unit = new TextDecoder().decode(this.#text.slice(0, Atomics.load(this.#counters, TEXT)));
    return { unit, step: this.#counters[STEP]!, patience: this.#counters[PATIENCE]! };
  }
}
