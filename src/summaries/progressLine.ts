/** @file The console line of a run: rewritten in place on a terminal, plain lines now and then in a log. */

import { styleText } from 'node:util';
import { printable } from '../system/index.js';
import { formatDuration } from '../system/text/index.js';
import { formatThroughput, type Throughput } from './throughput.js';

/** The stream of the line, such as `process.stderr`. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressOptions {
  readonly stream: ProgressStream & NodeJS.WritableStream;
  readonly totalSteps: number;
  /** Seconds between lines in a log, default 10. */
  readonly everySeconds?: number | undefined;
  /** Further lines in a log, at multiples of this step. */
  readonly everySteps?: number | undefined;
  /** The clock, in milliseconds. */
  readonly now?: (() => number) | undefined;
}

/** Figures after a step; unknown ones are left out of the line. */
export interface ProgressReport {
  /** Finished steps. */
  readonly step: number;
  readonly loss?: number | undefined;
  readonly throughput?: Throughput | undefined;
  /** A fraction. */
  readonly mfu?: number | undefined;
  /** Share of the time that steps wait for their batches. */
  readonly inputWait?: number | undefined;
  /** Its tag in summaries; default: `input_wait`. */
  readonly waitTag?: string;
  /** Examples left out. */
  readonly skipped?: number | undefined;
}

/** Least share of waiting that is worth the room. */
const SHOWN_WAIT = 0.05;

/** Least milliseconds between redraws of a terminal; faster only flickers. */
const REDRAW_MILLISECONDS = 100;
const TO_LINE_START_AND_CLEAR = '\r\u001b[2K';

export class ProgressLine {
  readonly #options: ProgressOptions;
  readonly #now: () => number;
  #first: { readonly step: number; readonly time: number } | undefined;
  #last = { step: -1, time: Number.NEGATIVE_INFINITY };
  #onScreen = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Reports a finished step. Cheap where nothing is due: may be called for every step. */
  update(report: ProgressReport): void {
    const time = this.#now();
    this.#first ??= { step: report.step, time };
    if (!this.#isDue(report.step, time)) return;
    this.#last = { step: report.step, time };
    const { stream } = this.#options;
    const line = this.#line(report, this.#secondsLeft(report.step, time));
    stream.write(stream.isTTY ? `${TO_LINE_START_AND_CLEAR}${line}` : `${line}\n`);
    this.#onScreen = stream.isTTY === true;
  }

  /** Writes lines that stay, above the live line. */
  message(text: string): void {
    this.#options.stream.write(`${this.#onScreen ? TO_LINE_START_AND_CLEAR : ''}${printable(text)}\n`);
    this.#onScreen = false;
  }

  /** Ends the live line; further output starts on a new one. */
  finish(): void {
    if (this.#onScreen) this.#options.stream.write('\n');
    this.#onScreen = false;
  }

  #isDue(step: number, time: number): boolean {
    const { stream, totalSteps, everySeconds = 10, everySteps } = this.#options;
    if (step === this.#last.step) return false;
    if (step >= totalSteps) return true;
    if (stream.isTTY) return time - this.#last.time >= REDRAW_MILLISECONDS;
    if (everySteps !== undefined && step % everySteps === 0) return true;
    return time - this.#last.time >= everySeconds * 1000;
  }

  /** Estimated from the steps since the first report, since compiling and the like will not come again. */
  #secondsLeft(step: number, time: number): number | undefined {
    const first = this.#first!;
    const left = this.#options.totalSteps - step;
    if (step <= first.step || left <= 0) return undefined;
    return (((time - first.time) / (step - first.step)) * left) / 1000;
  }

  #line(report: ProgressReport, secondsLeft: number | undefined): string {
    const { stream, totalSteps } = this.#options;
    const total = String(totalSteps);
    const parts: [text: string, format: 'bold' | 'dim' | 'reset'][] = [
      [`step ${String(report.step).padStart(total.length)}/${total}`, 'bold'],
    ];
    if (report.loss !== undefined) parts.push([`loss ${report.loss.toFixed(4)}`, 'reset']);
    if (report.throughput !== undefined) parts.push([formatThroughput(report.throughput), 'reset']);
    if (report.mfu !== undefined) parts.push([`MFU ${(100 * report.mfu).toFixed(1)}%`, 'reset']);
    const { inputWait = 0, waitTag = 'input_wait', skipped = 0 } = report;
    if (inputWait >= SHOWN_WAIT)
      parts.push([`${waitTag.replace('_', ' ')} ${Math.round(100 * inputWait)}%`, 'reset']);
    if (skipped > 0) parts.push([`skipped ${skipped}`, 'reset']);
    if (secondsLeft !== undefined) parts.push([`${formatDuration(secondsLeft)} left`, 'dim']);
    // A line that wraps could not be rewritten: the last fields go first.
    const width = stream.isTTY ? (stream.columns ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    while (parts.length > 1 && parts.map(([text]) => text).join('  ').length >= width) parts.pop();
    return parts.map(([text, format]) => this.#styled(text, format)).join('  ');
  }

  #styled(text: string, format: 'bold' | 'dim' | 'reset'): string {
    const { stream } = this.#options;
    // Asked here too: a log is plain even where FORCE_COLOR is set.
    return stream.isTTY && format !== 'reset' ? styleText(format, text, { stream }) : text;
  }
}
