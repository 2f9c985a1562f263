/** @file Checks of experiments in processes of their own: crashes and hangs become findings. */
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { endText } from '../../analysis/index.js';
import type { FoundExperiment } from '../../registry/names/index.js';
import { Answerer, Child, temporaryFolder, WorkerPool } from '../../system/index.js';
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

/** Seconds for a process to start; a busy machine takes a while to load the library. */
const startTimeout = 120;

type Checker = Answerer<Question, Answer>;

async function begin(): Promise<Child<Question, Answer>> {
  const worker = new URL(`./checkWorker${extname(import.meta.url)}`, import.meta.url);
  const child = new Child<Question, Answer>(worker, { isForeign: true });
  await child.receive(startTimeout * 1000);
  return child;
}

/** Checks experiments, one after another in each process. */
class Checks {
  /** Files that crash or hang the process that loads them, with the problem. */
  private readonly badFiles = new Map<string, Problem>();

  constructor(
    private readonly options: RunOptions,
    private readonly directory: string,
  ) {}

  async of(found: FoundExperiment, checker: Checker): Promise<Checked> {
    const started = performance.now();
    const bad = this.badFiles.get(found.file);
    const result = bad === undefined ? await this.ask(found, checker) : failed(bad, undefined);
    return { found, ...result, seconds: (performance.now() - started) / 1000 };
  }

  private async ask({ name, file }: FoundExperiment, checker: Checker): Promise<Outcome> {
    const { level, changes, lenient, timeout } = this.options;
    const question = { name, level, changes, lenient, directory: this.directory };
    const { messages, error } = await checker.ask(question, timeout);
    const reached = messages.findLast((message) => message.kind === 'reached')?.level;
    const last = messages.at(-1);
    if (last?.kind === 'done') return { findings: last.findings, reached };
    const next = levels[reached === undefined ? 0 : levels.indexOf(reached) + 1];
    const problem = { level: next ?? level, message: endText(error!, 'validate', timeout) };
    // The file failed to load: its other experiments would fail likewise.
    if (reached === undefined) this.badFiles.set(file, problem);
    return failed(problem, reached);
  }
}

type Outcome = Pick<Checked, 'findings' | 'reached'>;

function failed(problem: Problem, reached: Level | undefined): Outcome {
  return { findings: { problems: [problem], warnings: [], unread: [], ignored: [] }, reached };
}

/** Checks all `experiments`; results are in their order. */
export async function checkAll(
  experiments: readonly FoundExperiment[],
  options: RunOptions,
): Promise<Checked[]> {
  const directory = temporaryFolder('luthier-validate-');
  const pool = new WorkerPool((): Checker => new Answerer(begin, ({ kind }) => kind === 'done'));
  try {
    // A step uses all processors, and possibly all memory.
    const most = options.level === 'step' ? 1 : availableParallelism();
    const checks = new Checks(options, directory.path);
    const checked = new Map<FoundExperiment, Checked>();
    await pool.each(experiments, most, async (checker, found) => {
      const each = await checks.of(found, checker);
      checked.set(found, each);
      options.done?.(each);
    });
    return experiments.map((found) => checked.get(found)!);
  } finally {
    await pool.end();
    directory.remove();
  }
}
