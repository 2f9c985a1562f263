/** @file SummaryWriter: one program's scalars and texts, to TensorBoard and to metrics.jsonl. */

import { EventFile } from './eventFile.js';
import type { MetricsFile, MetricsLine } from './metricsFile.js';

export interface SummaryWriterOptions {
  /** Where TensorBoard's files go, `<job_log_dir>/summaries/train`. */
  readonly directory: string;
  /** First field of each line in metrics.jsonl: `train`, `eval_test_<name>` … */
  readonly program: string;
  /** The run's metrics.jsonl, which all programs share; null writes event files only. */
  readonly metrics: MetricsFile | null;
  /** The step that a training run continues from; see EventFile. */
  readonly resumeStep?: number | undefined;
  /** Told of what goes wrong while the run goes on. */
  readonly notify?: ((message: string) => void) | undefined;
}

export class SummaryWriter {
  readonly #options: SummaryWriterOptions;
  #events: EventFile | undefined;

  constructor(options: SummaryWriterOptions) {
    this.#options = options;
  }

  /**
   * Writes the scalars of one step: an event with all of them, and a line `{"program", "step", …values, …notes}`.
   *
   * @param notes words for the line alone, such as how the peak of an MFU was found
   */
  scalars(step: number, values: Readonly<Record<string, number>>, notes: MetricsLine = {}): void {
    this.#eventFile().scalars(step, values);
    this.#options.metrics?.write({ program: this.#options.program, step, ...values, ...notes });
  }

  /** Writes a text (Markdown) for TensorBoard's text page. */
  text(step: number, tag: string, text: string): void {
    this.#eventFile().text(step, tag, text);
  }

  /** Closes the event file; metrics.jsonl is its owner's to close. */
  close(): void {
    this.#events?.close();
    this.#events = undefined;
  }

  /** Opened by the first summary, so that programs that write none leave no empty file. */
  #eventFile(): EventFile {
    const { directory, resumeStep, notify } = this.#options;
    return (this.#events ??= new EventFile(directory, { resumeStep, notify }));
  }
}
