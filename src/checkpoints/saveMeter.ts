/** @file Count of saves, of the time they take from training and of the bytes that they write. */

/** Saves since they were taken last. */
export interface SaveStatistics {
  /** Saves that training has begun. */
  readonly saves: number;
  /** Seconds that `save` kept training waiting, for the save before and for the copy of the state. */
  readonly stallSeconds: number;
  /** Seconds and bytes of writing, of the saves that are on the disk. */
  readonly writeSeconds: number;
  readonly bytes: number;
}

const NO_SAVES: SaveStatistics = { saves: 0, stallSeconds: 0, writeSeconds: 0, bytes: 0 };

export class SaveMeter {
  #sum = NO_SAVES;

  /** Adds a save that training has begun, which it waited for since `began`, in milliseconds of the process. */
  begun(began: number): void {
    const { saves, stallSeconds } = this.#sum;
    const seconds = (performance.now() - began) / 1000;
    this.#sum = { ...this.#sum, saves: saves + 1, stallSeconds: stallSeconds + seconds };
  }

  /** Adds a save that is on the disk. */
  written(save: { readonly seconds: number; readonly bytes: number }): void {
    const { writeSeconds, bytes } = this.#sum;
    this.#sum = { ...this.#sum, writeSeconds: writeSeconds + save.seconds, bytes: bytes + save.bytes };
  }

  /** The sums, which begin again. */
  take(): SaveStatistics {
    const taken = this.#sum;
    this.#sum = NO_SAVES;
    return taken;
  }
}
