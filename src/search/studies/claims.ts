/** @file Claims of trials: exclusive creations of files, so that each trial has one process, on whichever host. */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeDirectory } from '../../files/index.js';
import { acquireLock, type Lock, lockHolder } from '../../system/index.js';

/** More than a process takes from making a claim to writing its name there. */
const WRITING_MS = 5000;

/**
 * The claims of a study as a process sees them. Each process holds a lock as long as it lives; a claim names its process,
 * and that of a process that has ended is orphaned: any other may claim the next attempt.
 */
export class Claims {
  readonly #claims: string;
  readonly #processes: string;
  #lock: Lock | undefined;

  private constructor(
    directory: string,
    /** Name of this process in the study. */
    readonly name: string,
  ) {
    this.#claims = join(directory, 'claims');
    this.#processes = join(directory, 'processes');
  }

  /** Joins the processes of a study. */
  static async open(directory: string): Promise<Claims> {
    const random = Math.random().toString(36).slice(2, 8);
    const claims = new Claims(directory, `${hostname()}-${process.pid}-${random}`);
    makeDirectory(claims.#claims);
    makeDirectory(claims.#processes);
    claims.#lock = await acquireLock(claims.#lockOf(claims.name));
    return claims;
  }

  #lockOf(name: string): string {
    return join(this.#processes, `${name}.lock`);
  }

  /** File of this process's records. */
  get records(): string {
    return join(this.#processes, `${this.name}.jsonl`);
  }

  /** Claims an attempt of a trial. @returns whether no other process has. */
  take(trial: number, attempt: number): boolean {
    let file: number;
    try {
      file = openSync(join(this.#claims, `${trial}.${attempt}`), 'wx');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
    writeSync(file, this.name);
    closeSync(file);
    return true;
  }

  /** The last attempt of each claimed trial, by number. */
  attempts(): Map<number, number> {
    const attempts = new Map<number, number>();
    for (const name of readdirSync(this.#claims)) {
      const [trial, attempt] = name.split('.').map(Number) as [number, number];
      attempts.set(trial, Math.max(attempt, attempts.get(trial) ?? 0));
    }
    return attempts;
  }

  /** Whether the process of a claim has ended; of one without a name, whether it has had the time to write it. */
  async isOrphaned(trial: number, attempt: number): Promise<boolean> {
    const path = join(this.#claims, `${trial}.${attempt}`);
    const name = readFileSync(path, 'utf8');
    if (name === this.name) return false;
    if (name === '') return Date.now() - statSync(path).mtimeMs > WRITING_MS;
    return (await lockHolder(this.#lockOf(name))) === undefined;
  }

  /** Leaves the study. */
  close(): void {
    this.#lock?.release();
  }
}
