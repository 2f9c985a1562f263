/** @file goodput.jsonl: the wall time of a run by its use, over restarts, as every process that trains records it. */
import { closeSync, fstatSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { AppendedFile, explain, isThere, linesFromEnd, openRegularFile } from '../files/index.js';
import { JobError } from './jobErrors.js';

/** Uses of a process's time, each second of which has one. */
const spent = [
  'start',
  'restore',
  'first_batch',
  'compile',
  'step',
  'input_wait',
  'summaries',
  'evaluation',
  'save_stall',
] as const;

/** A use of the time of a process. */
export type TimeUse = (typeof spent)[number];
/** Uses of the time of a run: `lost_steps` took steps that a later process took again; `idle` is between processes. */
export type RunTimeUse = TimeUse | 'lost_steps' | 'idle';

/** Seconds by use. */
type Seconds<Use extends string> = Record<Use, number>;

const none = (): Seconds<TimeUse> => Object.fromEntries(spent.map((use) => [use, 0])) as Seconds<TimeUse>;

const schema = z.strictObject({
  /** When the process started, in milliseconds since 1970; names it. */
  process: z.number(),
  /** The step that it began at. */
  from: z.int(),
  step: z.int(),
  /** Seconds of the process so far. */
  seconds: z.partialRecord(z.enum(spent), z.number()),
});
type Line = z.output<typeof schema>;

/** Signs of life come after this share of the process's time, but neither more often nor less often than these seconds. */
const SIGN = { share: 0.005, least: 0.25, most: 60 };

/** The time of this process that an earlier job in it has used, in milliseconds. */
let usedBefore = 0;

/** The wall time of a process that trains: from its start on, each moment counts for one use. */
export class WallTime {
  readonly #began = usedBefore;
  readonly #process = Math.round(performance.timeOrigin + usedBefore);
  readonly #seconds = none();
  /** Uses that are open, the one that time counts for last. */
  readonly #open: { readonly use: TimeUse }[] = [];
  #since = usedBefore;
  #record: { readonly file: AppendedFile; readonly from: number; readonly before: Goodput } | undefined;
  #signed = usedBefore;

  /** Counts the time of `act` for a use, but for what `act` itself counts for another one. */
  async during<T>(use: TimeUse, act: () => Promise<T>): Promise<T> {
    // Evaluations wait for input and take steps, too, all of which is evaluation; what they compile is not.
    if (this.#use === 'evaluation' && use !== 'compile') return act();
    const opened = { use };
    this.#count();
    this.#open.push(opened);
    try {
      return await act();
    } finally {
      this.#count();
      // Not always the last one: acts may overlap.
      this.#open.splice(this.#open.indexOf(opened), 1);
    }
  }

  /** Begins to record in the run's directory: from here on the run is this process's. @throws JobError where it can't be written */
  begin(directory: string, step: number): void {
    const path = join(directory, 'goodput.jsonl');
    try {
      const before = isThere(path) ? readGoodput(directory, { process: this.#process, step }) : nothing();
      this.#record = { file: new AppendedFile(path), from: step, before };
    } catch (cause) {
      throw new JobError(`${path}: the run's time cannot be recorded here: ${explain(cause)}.`, { cause });
    }
    this.sign(step);
  }

  /** Records the time so far, if the last record is old. */
  pass(step: number): void {
    const now = performance.now();
    const wait = Math.min(SIGN.most, Math.max(SIGN.least, (SIGN.share * (now - this.#began)) / 1000));
    if (now - this.#signed >= 1000 * wait) this.sign(step);
  }

  /** Records the time so far. A step that is saved must be recorded, too: it tells which steps a restart loses. */
  sign(step: number): void {
    if (this.#record === undefined) return;
    this.#count();
    this.#signed = performance.now();
    const seconds = Object.fromEntries(spent.map((use) => [use, Math.round(this.#seconds[use] * 1e4) / 1e4]));
    const line = { process: this.#process, from: this.#record.from, step, seconds };
    this.#record.file.append(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  /** Seconds of the run by use so far, over all its processes. */
  get total(): Seconds<RunTimeUse> {
    this.#count();
    const total = { ...(this.#record?.before ?? nothing()).seconds };
    for (const use of spent) total[use] += this.#seconds[use];
    return total;
  }

  /** Records the last of the time; never throws. */
  close(step: number): void {
    this.sign(step);
    usedBefore = performance.now();
    try {
      this.#record?.file.close();
    } catch {
      // A full disk is told by those who have more to lose.
    }
    this.#record = undefined;
  }

  get #use(): TimeUse {
    return this.#open.at(-1)?.use ?? 'start';
  }

  #count(): void {
    const now = performance.now();
    this.#seconds[this.#use] += (now - this.#since) / 1000;
    this.#since = now;
  }
}

/** The wall time of a run, over its processes. */
export interface Goodput {
  readonly processes: number;
  /** That of the last record. */
  readonly step: number;
  /** Their sum is the time from the start of the first process to the last record of the last one. */
  readonly seconds: Seconds<RunTimeUse>;
}

const nothing = (): Goodput => ({ processes: 0, step: 0, seconds: { ...none(), lost_steps: 0, idle: 0 } });

/** Share of the wall time in which steps were taken that count, from 0 to 1. */
export function shareOf({ seconds }: Pick<Goodput, 'seconds'>): number {
  const total = Object.values(seconds).reduce((sum, each) => sum + each, 0);
  return total > 0 ? seconds.step / total : 0;
}

const sumOf = (line: Line): number =>
  Object.values(line.seconds).reduce<number>((sum, each) => sum + (each ?? 0), 0);

/** Reads the wall time of a run. @param next a process that goes on from a step, not in the file yet @throws for no regular file */
export function readGoodput(
  directory: string,
  next?: { readonly process: number; readonly step: number },
): Goodput {
  const { seconds } = nothing();
  let step: number | undefined;
  const processes = new Set<number>();
  // From the last line to the first: the start of the process behind, the step that the run went on from after this
  // process, and of this process all time of steps, until a line tells how much of it was up to that step.
  let behind = next?.process;
  let keptStep = next?.step ?? Number.POSITIVE_INFINITY;
  let first: Line | undefined;
  let lostOf: Line | undefined;
  for (const line of linesOf(directory)) {
    if (line.process !== first?.process) {
      if (first !== undefined) keptStep = Math.min(keptStep, first.from);
      processes.add(line.process);
      for (const use of spent) seconds[use] += line.seconds[use] ?? 0;
      if (behind !== undefined) seconds.idle += Math.max(0, (behind - line.process) / 1000 - sumOf(line));
      behind = line.process;
      lostOf = line.step > keptStep ? line : undefined;
    }
    if (lostOf !== undefined && (line.step <= keptStep || line.step === line.from)) {
      const lost = (lostOf.seconds.step ?? 0) - (line.seconds.step ?? 0);
      seconds.lost_steps += lost;
      seconds.step -= lost;
      lostOf = undefined;
    }
    first = line;
    step ??= line.step;
  }
  return { processes: processes.size, step: step ?? 0, seconds };
}

/** The lines of goodput.jsonl, the last one first; a torn line is left out. */
function* linesOf(directory: string): Generator<Line> {
  const file = openRegularFile(join(directory, 'goodput.jsonl'));
  try {
    for (const { text = '' } of linesFromEnd(file, fstatSync(file).size)) {
      const line = lineOf(text);
      if (line !== undefined) yield line;
    }
  } finally {
    closeSync(file);
  }
}

function lineOf(text: string): Line | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
