/** @file Pool of checking processes: an experiment that crashes or hangs one becomes a finding. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import type { FoundExperiment } from '../../registry/scan.js';
import { Child, ChildError } from '../child.js';
import { atEnd } from '../cleanup.js';
import { type Answer, type Findings, type Level, levels, type Problem, type Question } from './levels.js';

/** Options of a check run. */
export interface RunOptions {
  readonly level: Level;
  readonly changes: Question['changes'];
  /** Whether to ignore settings of constants that an experiment lacks. */
  readonly lenient: boolean;
  /** Time limit per experiment in seconds; for the first of a file, it includes loading. */
  readonly timeout: number;
  /** Called for each finished experiment. */
  readonly done?: (checked: Checked) => void;
}

/** Findings about an experiment. */
export interface Checked {
  readonly found: FoundExperiment;
  readonly findings: Findings;
  /** The highest level passed; undefined if none was. */
  readonly reached: Level | undefined;
  readonly seconds: number;
}

/** Experiments per process, all of one file: starting a process takes as long as checking a few. */
const experimentsPerProcess = 8;
/** Seconds for a process to start; a busy machine takes a while to load the library. */
const startTimeout = 120;

/** Experiments waiting for a check. */
class Queue {
  private readonly waiting: FoundExperiment[];
  private readonly taken = new Set<string>();

  constructor(experiments: readonly FoundExperiment[]) {
    this.waiting = [...experiments];
  }

  /** The next one: from the file that is already loaded, else from one that no other process has loaded. */
  take(loaded: string | undefined): FoundExperiment | undefined {
    const { waiting, taken } = this;
    const next =
      waiting.find(({ file }) => file === loaded) ??
      waiting.find(({ file }) => !taken.has(file)) ??
      waiting[0];
    if (next) {
      taken.add(next.file);
      waiting.splice(waiting.indexOf(next), 1);
    }
    return next;
  }
}

/** Files that crash or hang the process that loads them, with the problem. */
type BadFiles = Map<string, Problem>;

/** Outcome of checking an experiment. */
interface Outcome {
  readonly findings: Findings;
  readonly reached: Level | undefined;
  /** Why the process ended during the check; undefined if it is still running. */
  readonly ended: ChildError['reason'] | undefined;
}

/** Runs one checking process after another on experiments from the queue. */
class Worker {
  private child: Child<Question, Answer> | undefined;
  private loaded: string | undefined;

  constructor(
    private readonly options: RunOptions,
    private readonly directory: string,
    private readonly badFiles: BadFiles,
  ) {}

  async work(queue: Queue, report: (checked: Checked) => void): Promise<void> {
    for (let found = queue.take(this.loaded); found; found = queue.take(this.loaded)) {
      report(await this.check(found));
    }
    await this.child?.kill();
  }

  private async check(found: FoundExperiment): Promise<Checked> {
    const started = performance.now();
    const done = ({ findings, reached }: Omit<Outcome, 'ended'>): Checked => {
      return { found, findings, reached, seconds: (performance.now() - started) / 1000 };
    };
    const bad = this.badFiles.get(found.file);
    if (bad) return done({ findings: onlyProblem(bad), reached: undefined });
    const isFresh = this.child === undefined;
    const outcome = await this.ask(found);
    // A process may die of what an earlier experiment left running; a fresh one tells which is at fault.
    const again = outcome.ended === 'ended' && !isFresh ? await this.ask(found) : outcome;
    const [problem] = again.findings.problems;
    // The file failed to load: its other experiments would fail likewise.
    if (again.ended && again.reached === undefined) this.badFiles.set(found.file, problem!);
    return done(again);
  }

  private async ask(found: FoundExperiment): Promise<Outcome> {
    let reached: Level | undefined;
    try {
      const child = await this.ready();
      this.loaded = found.file;
      const { level, changes, lenient, timeout } = this.options;
      child.send({ name: found.name, level, changes, lenient, directory: this.directory });
      const deadline = performance.now() + timeout * 1000;
      for (;;) {
        const answer = await child.receive(Math.max(1, deadline - performance.now()));
        if (answer.kind === 'done') return { findings: answer.findings, reached, ended: undefined };
        if (answer.kind === 'reached') reached = answer.level;
      }
    } catch (error) {
      if (!(error instanceof ChildError)) throw error;
      this.child = undefined;
      this.loaded = undefined;
      const problem = problemOf(error, reached, this.options);
      return { findings: onlyProblem(problem), reached, ended: error.reason };
    }
  }

  private async ready(): Promise<Child<Question, Answer>> {
    if (this.child === undefined) {
      const child = new Child<Question, Answer>(
        new URL(`./checkWorker${extname(import.meta.url)}`, import.meta.url),
      );
      await child.receive(startTimeout * 1000);
      this.child = child;
    }
    return this.child;
  }
}

function onlyProblem(problem: Problem): Findings {
  return { problems: [problem], warnings: [], unread: [], ignored: [] };
}

function problemOf(error: ChildError, reached: Level | undefined, { level, timeout }: RunOptions): Problem {
  const last = levels.indexOf(level);
  const failed = levels[Math.min(last, reached === undefined ? 0 : levels.indexOf(reached) + 1)]!;
  if (error.reason === 'timeout') {
    return {
      level: failed,
      message: `It took longer than ${timeout} s; luthier validate --timeout=SECONDS gives it more.`,
    };
  }
  const said = error.output.trimEnd().split('\n').slice(-8).join('\n');
  // Out of memory, the output only shows the runtime's internals.
  const tells = said !== '' && !error.message.includes('memory');
  return { level: failed, message: tells ? `${error.message} It said:\n${said}` : error.message };
}

/** Checks all `experiments`; results are in their order. */
export async function checkAll(
  experiments: readonly FoundExperiment[],
  options: RunOptions,
): Promise<Checked[]> {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-validate-'));
  const clean = (): void => rmSync(directory, { recursive: true, force: true });
  const forget = atEnd(clean);
  try {
    const queue = new Queue(experiments);
    const files = new Set(experiments.map(({ file }) => file)).size;
    const useful = Math.max(files, Math.ceil(experiments.length / experimentsPerProcess));
    // A step uses all processors, and possibly all memory.
    const most = options.level === 'step' ? 1 : availableParallelism();
    const count = Math.min(most, useful, experiments.length);
    const checked = new Map<FoundExperiment, Checked>();
    const badFiles: BadFiles = new Map();
    const workers = Array.from({ length: count }, () => new Worker(options, directory, badFiles));
    const report = (each: Checked): void => {
      checked.set(each.found, each);
      options.done?.(each);
    };
    await Promise.all(workers.map((worker) => worker.work(queue, report)));
    return experiments.map((found) => checked.get(found)!);
  } finally {
    clean();
    forget();
  }
}
