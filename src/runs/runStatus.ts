/** @file status.json: state and duration of a training run, as the run itself records them. */
import { join } from 'node:path';
import { z } from 'zod';
import { isThere, readJsonFile } from '../files/index.js';
import { lockHolder } from '../system/index.js';
import { writeJobFile } from './jobDirectory.js';

const schema = z.strictObject({
  /** A run that is still `running` when no process holds its lock was killed. */
  state: z.enum(['running', 'finished', 'stopped', 'failed']),
  /** Signal, reason of a program that ended training, or first line of the error. */
  reason: z.string().optional(),
  /** Start of the last process that trained. */
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  /** Duration of the last process: up to its end, or to its last sign of life. Older records lack it. */
  seconds: z.number().nonnegative().optional(),
  /** Duration of the processes before the last one. */
  secondsBefore: z.number().nonnegative(),
});

/** Content of status.json. */
export type RunStatus = Readonly<z.output<typeof schema>>;

/** The end of a process that trained. */
export type RunEnd = Pick<RunStatus, 'reason'> & { readonly state: Exclude<RunStatus['state'], 'running'> };

/** @throws where there is no status.json, or it is damaged. */
export function readStatus(directory: string): RunStatus {
  return readJsonFile(join(directory, 'status.json'), schema);
}

/** Whether a process trains in a directory, or has ended there by itself. One that was killed or stopped is absent. */
export async function trainingState(directory: string): Promise<'running' | 'finished' | 'absent'> {
  if ((await lockHolder(join(directory, '.train.lock'))) !== undefined) return 'running';
  try {
    return readStatus(directory).state === 'finished' ? 'finished' : 'absent';
  } catch {
    return 'absent';
  }
}

/** Seconds of all processes that trained, each by a clock that nobody sets. */
export function durationOf({ startedAt, endedAt, seconds, secondsBefore }: RunStatus): number {
  const byDates = endedAt === undefined ? 0 : (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
  return secondsBefore + (seconds ?? Math.max(0, byDates));
}

/** Between signs of life of a process that trains. */
const SIGN_EVERY_MS = 10_000;

/** Records the state of a run in its directory, which this process has locked. */
export class StatusRecord {
  readonly #secondsBefore: number;
  #startedAt: string | undefined;
  readonly #openedAt = new Date().toISOString();
  // Dates follow whoever sets the clock, and must not be subtracted.
  readonly #opened = performance.now();
  #signs: NodeJS.Timeout | undefined;

  /**
   * Records a run that has nothing yet at once. The record of another one stays until `begin`, since a command that is
   * refused changes nothing about the run.
   *
   * @throws JobError where the file can't be written.
   */
  constructor(private readonly directory: string) {
    const earlier = earlierStatus(directory);
    this.#secondsBefore = earlier === undefined ? 0 : durationOf(earlier);
    if (!isThere(join(directory, 'experiment.json'))) this.begin();
  }

  /** Records that training runs. @throws JobError where the file can't be written */
  begin(): void {
    this.#startedAt = this.#openedAt;
    this.#write({ state: 'running' });
    this.#signs ??= setInterval(() => this.#giveSign(), SIGN_EVERY_MS).unref();
  }

  /** Records the end of a run that has begun. @throws JobError where the file can't be written */
  end(end: RunEnd): void {
    clearInterval(this.#signs);
    if (this.#startedAt !== undefined) this.#write({ ...end, endedAt: new Date().toISOString() });
  }

  /** Records an error, which stays the one to be reported where it can't be recorded. */
  fail(error: unknown): void {
    const message = error instanceof Error ? error.message || error.name : String(error);
    try {
      this.end({ state: 'failed', reason: message.split('\n')[0]! });
    } catch {
      // The disk may be what failed.
    }
  }

  /** Keeps the duration so far, for a process may be killed. */
  #giveSign(): void {
    try {
      // A directory that was removed is not made again for it.
      if (isThere(join(this.directory, 'status.json'))) this.#write({ state: 'running' });
    } catch {
      // A full disk is told by those who have more to lose.
    }
  }

  #write(status: Pick<RunStatus, 'state' | 'reason' | 'endedAt'>): void {
    const { state, ...rest } = status;
    const file: RunStatus = {
      state,
      startedAt: this.#startedAt!,
      seconds: Math.round(performance.now() - this.#opened) / 1000,
      secondsBefore: this.#secondsBefore,
      ...rest,
    };
    writeJobFile(join(this.directory, 'status.json'), `${JSON.stringify(file, null, 1)}\n`);
  }
}

/** A missing or damaged record must not stop a run. */
function earlierStatus(directory: string): RunStatus | undefined {
  try {
    return readStatus(directory);
  } catch {
    return undefined;
  }
}
