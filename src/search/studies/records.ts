/** @file Records of a study: one file a process, to which it appends; all of them, merged by trial number. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isThere } from '../../files/index.js';
import type { Trial } from '../trial.js';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const common = { trial: z.int().nonnegative(), attempt: z.int().positive() };

const recordSchema = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('proposed'),
    ...common,
    values: z.record(z.string(), scalar),
    steps: z.int().positive().optional(),
    from: z.int().nonnegative().optional(),
    /** Of its run, where that is not in this study. */
    directory: z.string().optional(),
  }),
  z.object({
    event: z.literal('told'),
    ...common,
    state: z.enum(['done', 'stopped', 'infeasible', 'failed']),
    rewards: z.array(z.number()).optional(),
    metrics: z.record(z.string(), z.number()).optional(),
    /** Why it has no rewards, or ended early. */
    reason: z.string().optional(),
    seconds: z.number().optional(),
    tries: z.int().positive().optional(),
  }),
]);

/** A line of a record. */
type StudyRecord = z.output<typeof recordSchema>;

/** A trial of a study. */
export interface StudyTrial extends Trial {
  readonly reason?: string;
  readonly metrics?: Readonly<Record<string, number>>;
  readonly seconds?: number;
  /** Of its run, where that is in an earlier study. */
  readonly directory?: string;
}

type Proposed = Extract<StudyRecord, { event: 'proposed' }>;
type Told = Extract<StudyRecord, { event: 'told' }>;

/** All records of a directory, of which each refresh reads what is new. */
export class StudyRecords {
  readonly #offsets = new Map<string, number>();
  readonly #proposed = new Map<number, Proposed>();
  readonly #told = new Map<number, Told>();
  /** How many lines said the end of a trial. */
  #ends = 0;

  constructor(private readonly directory: string) {}

  /** Reads what processes have appended. A line that is cut off, where one was killed, is left out. */
  refresh(): void {
    if (!isThere(this.directory)) return;
    for (const name of readdirSync(this.directory)) {
      if (!name.endsWith('.jsonl')) continue;
      const lines = this.#newLines(name);
      for (const line of lines) this.#add(line);
    }
  }

  #newLines(name: string): string[] {
    const file = openSync(join(this.directory, name), 'r');
    try {
      let from = this.#offsets.get(name) ?? 0;
      const parts: Buffer[] = [];
      const buffer = Buffer.alloc(1 << 16);
      for (;;) {
        const length = readSync(file, buffer, 0, buffer.length, from);
        if (length === 0) break;
        parts.push(Buffer.from(buffer.subarray(0, length)));
        from += length;
      }
      const bytes = Buffer.concat(parts);
      const end = bytes.lastIndexOf(10) + 1;
      this.#offsets.set(name, from - (bytes.length - end));
      return bytes.subarray(0, end).toString().split('\n').slice(0, -1);
    } finally {
      closeSync(file);
    }
  }

  /** Of two records of a trial, that of the first attempt counts: whichever file is read first. */
  #add(line: string): void {
    const record = parsed(line);
    if (record === undefined) return;
    if (record.event === 'told') this.#ends++;
    const records: Map<number, StudyRecord> = record.event === 'told' ? this.#told : this.#proposed;
    const known = records.get(record.trial);
    if (known === undefined || record.attempt < known.attempt) records.set(record.trial, record);
  }

  /** Trials that were proposed, by number. */
  get trials(): StudyTrial[] {
    const all = Array.from(
      this.#proposed.values(),
      ({ trial: number, values, steps, from, directory }): StudyTrial => {
        const { state = 'running', rewards, reason, metrics, seconds } = this.#told.get(number) ?? {};
        return {
          ...{ number, values, state },
          ...(steps !== undefined && { steps }),
          ...(from !== undefined && { from }),
          ...(directory !== undefined && { directory }),
          ...(rewards && { rewards }),
          ...(reason !== undefined && { reason }),
          ...(metrics && { metrics }),
          ...(seconds !== undefined && { seconds }),
        };
      },
    );
    return all.sort((a, b) => a.number - b.number);
  }

  isTold(number: number): boolean {
    return this.#told.has(number);
  }

  proposalOf(number: number): Proposed | undefined {
    return this.#proposed.get(number);
  }

  /** Trials whose end was told more than once, less those told once: 0 in a whole study. */
  get repeats(): number {
    return this.#ends - this.#told.size;
  }
}

function parsed(line: string): StudyRecord | undefined {
  try {
    return recordSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
