/** @file Profiles: times of programs and phases, collected while they run. */
import type { Runner } from '../program/backend.js';
import type { Precision } from '../program/precision.js';
import type { Part } from './part.js';

/** A thread's activity between two times, in seconds of one clock. */
export interface Span {
  readonly thread: number;
  /** Null while waiting for other threads. */
  readonly part: Part | null;
  readonly from: number;
  readonly to: number;
}

/** Total time of a part. */
export interface PartTime {
  readonly part: Part;
  /** Summed over all threads. */
  seconds: number;
  /** Number of executions. */
  count: number;
}

/** Numbers per span, as the runtime writes them: thread, step, part, from, to. */
const WORDS = 5;

/** How often each part ran: a thread runs the parts of a step once, or once for each block of rows, between two waits. */
class Visits {
  private readonly current = new Map<number, { readonly step: number; readonly parts: Set<number> }>();
  private readonly byStep = new Map<number, Map<number, Map<number, number>>>();

  add(thread: number, step: number, part: number): void {
    if (part < 0) {
      this.current.delete(thread);
      return;
    }
    let visit = this.current.get(thread);
    if (visit?.step !== step) {
      visit = { step, parts: new Set() };
      this.current.set(thread, visit);
    }
    if (visit.parts.has(part)) return;
    visit.parts.add(part);
    const parts = this.byStep.get(step) ?? new Map<number, Map<number, number>>();
    const threads = parts.get(part) ?? new Map<number, number>();
    threads.set(thread, (threads.get(thread) ?? 0) + 1);
    this.byStep.set(step, parts.set(part, threads));
  }

  /** The count of the thread that ran the part most often: not every one has a share. */
  *counts(): Generator<[step: number, part: number, count: number]> {
    for (const [step, parts] of this.byStep)
      for (const [part, threads] of parts) yield [step, part, Math.max(...threads.values())];
  }
}

/** Profile of one program. */
export class ProgramProfile {
  runs = 0;
  /** From call to result. */
  seconds = 0;
  /** From the first thread's start to the last one's end; 0 for engines that report no spans. */
  insideSeconds = 0;
  /** Summed over threads, at barriers and at both ends of runs. */
  waitingSeconds = 0;
  private steps: PartTime[][] = [];
  private last: Float64Array = new Float64Array(0);

  constructor(
    readonly name: string,
    readonly runner: Runner,
    readonly precision: Precision,
    /** Threads that the engine reports; 0 if none. */
    readonly threads: number,
    private readonly parts: readonly (readonly Part[])[],
  ) {
    this.restart();
  }

  /** Discards all runs. */
  restart(): void {
    this.runs = this.seconds = this.insideSeconds = this.waitingSeconds = 0;
    this.steps = this.parts.map((parts) => parts.map((part) => ({ part, seconds: 0, count: 0 })));
    this.last = new Float64Array(0);
  }

  /**
   * Adds a call of `times` runs.
   *
   * @param spans thread, step, part (-1: waiting), from, to of each span; a thread's spans have no gaps.
   */
  add(seconds: number, times: number, spans: Float64Array = new Float64Array(0)): void {
    this.runs += times;
    this.seconds += seconds;
    if (spans.length === 0) return;
    this.last = spans;
    const ends = new Map<number, { from: number; to: number }>();
    const visits = new Visits();
    for (let i = 0; i < spans.length; i += WORDS) {
      const [thread, step, part] = [spans[i]!, spans[i + 1]!, spans[i + 2]!];
      const [from, to] = [spans[i + 3]!, spans[i + 4]!];
      const end = ends.get(thread);
      if (end === undefined) ends.set(thread, { from, to });
      else end.to = to;
      visits.add(thread, step, part);
      if (part < 0) this.waitingSeconds += to - from;
      else this.steps[step]![part]!.seconds += to - from;
    }
    for (const [step, part, count] of visits.counts()) this.steps[step]![part]!.count += count;
    const all = [...ends.values()];
    const inside = Math.max(...all.map(({ to }) => to)) - Math.min(...all.map(({ from }) => from));
    this.insideSeconds += inside;
    for (const { from, to } of all) this.waitingSeconds += inside - (to - from);
  }

  /** The times of all parts, in program order. */
  get times(): readonly Readonly<PartTime>[] {
    return this.steps.flat();
  }

  /** The spans of the last reported run. */
  *lastRun(): Generator<Span> {
    const { last } = this;
    for (let i = 0; i < last.length; i += WORDS) {
      const part = last[i + 2]! < 0 ? null : this.parts[last[i + 1]!]![last[i + 2]!]!;
      yield { thread: last[i]!, part, from: last[i + 3]!, to: last[i + 4]! };
    }
  }
}

/** Collects the profiles of the programs compiled with it, and phases of the surrounding job. */
export class Profiler {
  readonly programs: ProgramProfile[] = [];
  /** Seconds by phase. */
  readonly phases = new Map<string, number>();
  private started = performance.now();

  /** Seconds since the start. */
  get seconds(): number {
    return (performance.now() - this.started) / 1000;
  }

  /** Creates the profile of a program. */
  open(
    name: string,
    runner: Runner,
    precision: Precision,
    threads = 0,
    parts: readonly (readonly Part[])[] = [],
  ): ProgramProfile {
    const profile = new ProgramProfile(name, runner, precision, threads, parts);
    this.programs.push(profile);
    return profile;
  }

  /** Runs an action and adds its time to a phase. */
  async phase<T>(name: string, act: () => T | Promise<T>): Promise<T> {
    const before = performance.now();
    try {
      return await act();
    } finally {
      this.phases.set(name, (this.phases.get(name) ?? 0) + (performance.now() - before) / 1000);
    }
  }

  /** Restarts after warm-up. */
  restart(): void {
    this.phases.clear();
    this.started = performance.now();
    for (const program of this.programs) program.restart();
  }
}
