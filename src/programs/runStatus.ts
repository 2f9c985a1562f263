/** @file status.json: state and duration of a training run, as the run itself records them. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isThere, readRegularFile } from '../files/index.js';
import { writeJobFile } from './jobDirectory.js';

const schema = z.strictObject({
  /** A run that is still `running` when no process holds its lock was killed. */
  state: z.enum(['running', 'finished', 'stopped', 'failed']),
  /** Signal, reason of a program that ended training, or first line of the error. */
  reason: z.string().optional(),
  /** Start of the last process that trained. */
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  /** Duration of the processes before the last one. */
  secondsBefore: z.number().nonnegative(),
});

/** Content of status.json. */
export type RunStatus = Readonly<z.output<typeof schema>>;

/** The end of a process that trained. */
export type RunEnd = Pick<RunStatus, 'reason'> & { readonly state: Exclude<RunStatus['state'], 'running'> };

/** @throws where there is no status.json, or it is damaged. */
export function readStatus(directory: string): RunStatus {
  return schema.parse(JSON.parse(readRegularFile(join(directory, 'status.json')).toString()));
}

/** Seconds of all processes that trained in a directory. @param now the end of a process that is still running */
export function durationOf(
  directory: string,
  { startedAt, endedAt, secondsBefore }: RunStatus,
  now?: Date,
): number {
  const start = Date.parse(startedAt);
  const end = endedAt === undefined ? (now?.getTime() ?? lastWritten(directory)) : Date.parse(endedAt);
  return secondsBefore + Math.max(0, end - start) / 1000;
}

/** The last sign of life of a killed run, in milliseconds. */
function lastWritten(directory: string): number {
  return statSync(join(directory, 'metrics.jsonl'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Records the state of a run in its directory, which this process has locked. */
export class StatusRecord {
  readonly #secondsBefore: number;
  #startedAt: string | undefined;
  readonly #openedAt = new Date().toISOString();

  /**
   * Records a run that has nothing yet at once. The record of another one stays until `begin`, since a command that is
   * refused changes nothing about the run.
   *
   * @throws JobError where the file can't be written.
   */
  constructor(private readonly directory: string) {
    const earlier = earlierStatus(directory);
    this.#secondsBefore = earlier === undefined ? 0 : durationOf(directory, earlier);
    if (!isThere(join(directory, 'experiment.json'))) this.begin();
  }

  /** Records that training runs. @throws JobError where the file can't be written */
  begin(): void {
    this.#startedAt = this.#openedAt;
    this.#write({ state: 'running' });
  }

  /** Records the end of a run that has begun. @throws JobError where the file can't be written */
  end(end: RunEnd): void {
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

  #write(status: Pick<RunStatus, 'state' | 'reason' | 'endedAt'>): void {
    const { state, ...rest } = status;
    const file: RunStatus = {
      state,
      startedAt: this.#startedAt!,
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
