/** @file TensorBoard event files: Event messages in TFRecord frames. */

import { hostname } from 'node:os';
import { join } from 'node:path';
import { AppendedFile, ProtobufMessage, tfRecord } from '../files/index.js';
import { onPath } from './summaryError.js';
import { hparamsValue, type SummaryValue, summaryValue } from './summaryValues.js';

/** Field numbers of Event (event.proto). */
const EVENT = { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 } as const;
const SUMMARY_VALUE = 1;
const SESSION_START = 1;

let filesOfThisProcess = 0;

export interface EventFileOptions {
  /**
   * The step that a run resumes from. TensorBoard then drops later steps of earlier files in this directory, which the run
   * writes again.
   */
  readonly resumeStep?: number | undefined;
  /** The clock, in milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
  /** Receives problems while the run continues. */
  readonly notify?: ((message: string) => void) | undefined;
}

/**
 * A new event file in a directory. Each call writes one whole record at once, so a killed run leaves whole files; once
 * it is open, no failure to write ends the run: see AppendedFile.
 */
export class EventFile {
  readonly path: string;
  readonly #file: AppendedFile;
  readonly #now: () => number;

  /** @throws SummaryError when the directory cannot be written */
  constructor(directory: string, options: EventFileOptions = {}) {
    this.#now = options.now ?? Date.now;
    const seconds = String(Math.floor(this.#now() / 1000)).padStart(10, '0');
    const unique = `${process.pid}.${filesOfThisProcess++}`;
    this.path = join(directory, `events.out.tfevents.${seconds}.${hostname()}.${unique}`);
    const header = () => this.#record((event) => event.string(EVENT.fileVersion, 'brain.Event:2'));
    const { notify } = options;
    this.#file = onPath(this.path, () => new AppendedFile(this.path, { header, notify, isNew: true }));
    if (options.resumeStep !== undefined) {
      const step = options.resumeStep + 1;
      const start = new ProtobufMessage().int(1, SESSION_START);
      this.#write((event) => event.int(EVENT.step, step).message(EVENT.sessionLog, start));
    }
  }

  /** Writes the summaries of one step, by tag, as one event. */
  summaries(step: number, values: Readonly<Record<string, SummaryValue>>): void {
    const messages = Object.entries(values).map(([tag, value]) => summaryValue(tag, value));
    if (messages.length > 0) this.#values(step, messages);
  }

  /** Writes the hyperparameters of a run whose summaries are in the folders below this file's. */
  hparams(step: number, hparams: Readonly<Record<string, number | string>>): void {
    this.#values(step, [hparamsValue(hparams, this.#now() / 1000)]);
  }

  close(): void {
    onPath(this.path, () => this.#file.close());
  }

  #values(step: number, values: readonly ProtobufMessage[]): void {
    const summary = new ProtobufMessage();
    for (const value of values) summary.message(SUMMARY_VALUE, value);
    this.#write((event) => event.int(EVENT.step, step).message(EVENT.summary, summary));
  }

  #write(fill: (event: ProtobufMessage) => void): void {
    this.#file.append(this.#record(fill));
  }

  #record(fill: (event: ProtobufMessage) => void): Uint8Array {
    const event = new ProtobufMessage().double(EVENT.wallTime, this.#now() / 1000);
    fill(event);
    return tfRecord(event.bytes());
  }
}
