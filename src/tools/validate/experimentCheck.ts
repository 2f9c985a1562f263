/** @file Level-by-level checks of one experiment, run in the checking process. */
import { totalmem } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { analyze, failureOf } from '../../analysis/index.js';
import {
  type ConfiguredExperiment,
  configure,
  constantOverrides,
  loadConfigModules,
  type Override,
} from '../../cli/index.js';
import { sizeOf } from '../../compiler/index.js';
import {
  constantProblems,
  type Experiment,
  extraOf,
  instantiate,
  MissingConstantError,
  unreadConstants,
} from '../../experiment/index.js';
import { type AnyConfig, build, type Config, validate } from '../../hparams/index.js';
import { ExperimentLoadError, type ResolvedExperiment } from '../../registry/index.js';
import { formatBytes } from '../../review/text/index.js';
import type { SingleTask } from '../../tasks/index.js';
import { resolveFor } from '../commandExperiment.js';
import { type Findings, type Level, levels, type Problem, type Question } from './levels.js';
import { takeStep } from './takeStep.js';
import { traceSteps } from './traceSteps.js';

/** Results of lower levels that higher ones use. */
interface Known {
  resolved?: ResolvedExperiment;
  overrides?: readonly Override[];
  configured?: ConfiguredExperiment;
  task?: SingleTask;
}

/** Checks one experiment. */
export class Check {
  private readonly problems: Problem[] = [];
  private readonly warnings: string[] = [];
  private readonly ignored: string[] = [];
  private unread: readonly string[] = [];
  private parameters: number | undefined;
  private readonly known: Known = {};
  private level: Level = 'resolve';

  /** @param reached called for each level passed. */
  constructor(
    private readonly question: Question,
    private readonly reached: (level: Level) => void,
  ) {}

  /** Checks up to the requested level; skips levels that depend on failed ones. */
  async run(): Promise<Findings> {
    for (const level of levels.slice(0, levels.indexOf(this.question.level) + 1)) {
      this.level = level;
      try {
        await this[level]();
      } catch (error) {
        this.add(level, error);
      }
      // Uncaught errors are reported before the next turn of the event loop.
      await setImmediate();
      if (this.holds(level)) this.reached(level);
    }
    const { warnings, unread, ignored, parameters } = this;
    const problems = this.problems.toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
    return { problems, warnings, unread, ignored, ...(parameters !== undefined && { parameters }) };
  }

  /** Whether a level has no problems; a task that could not be tried counts as one. */
  private holds(level: Level): boolean {
    if (level === 'task' && !this.known.task) return false;
    return levels.slice(0, levels.indexOf(level) + 1).every((each) => !this.fails(each));
  }

  /** Records an uncaught error of the experiment's code. */
  stray(error: unknown): void {
    this.add(this.level, error);
  }

  private add(level: Level, error: unknown): void {
    const needs = error instanceof MissingConstantError ? { needs: error.flag } : {};
    this.addProblem({ level, ...failureOf(error), ...needs });
  }

  private addProblem(problem: Problem): void {
    const isKnown = this.problems.some(
      ({ message, path }) => message === problem.message && path === problem.path,
    );
    if (!isKnown) this.problems.push(problem);
  }

  /** Level resolve: the class exists, and its file loads. */
  private async resolve(): Promise<void> {
    const { name, changes, lenient } = this.question;
    const resolved = await this.load(name);
    if (resolved === undefined) return;
    await loadConfigModules(changes);
    this.known.resolved = resolved;
    this.known.overrides = lenient ? changes.filter((override) => this.fits(resolved, override)) : changes;
  }

  /** Loads the class. A file that fails to load fails all of its exports alike. */
  private async load(name: string): Promise<ResolvedExperiment | undefined> {
    try {
      return await resolveFor(name);
    } catch (error) {
      if (!(error instanceof ExperimentLoadError)) throw error;
      const failure = failureOf(error.cause);
      this.addProblem({
        level: 'resolve',
        ...failure,
        message: `The file fails to load: ${failure.message}`,
      });
      return undefined;
    }
  }

  /** Whether an override applies to the experiment: flags may name constants that it lacks, files may not. */
  private fits(resolved: ResolvedExperiment, override: Override): boolean {
    if (override.kind !== 'set' && override.kind !== 'unset') return true;
    try {
      constantOverrides(resolved, [override]);
      return true;
    } catch {
      this.ignored.push(override.origin);
      return false;
    }
  }

  /** Level task: constants are complete and valid; configs can be made, and the task's is valid and builds. */
  private task(): void {
    const { resolved, overrides } = this.known;
    if (!resolved || !overrides) return;
    const constants = constantOverrides(resolved, overrides);
    for (const error of constantProblems(resolved.cls, constants)) this.add('task', error);
    if (this.problems.length > 0) return;
    const made = this.makeEach(instantiate(resolved.cls, constants));
    const configured = this.problems.length === 0 ? this.configure(resolved, overrides) : undefined;
    if (!configured) {
      // Without datasets, the effect of flags and fiddlers on the task is unknown.
      if (made && overrides.length === 0 && !this.fails('task')) this.buildTask(made);
      return;
    }
    this.examine('task', configured.task);
    for (const root of ['datasets', 'decodeDatasets'] as const) {
      for (const [i, dataset] of configured[root].entries()) this.examine(`${root}[${i}]`, dataset);
    }
    this.buildExtra(configured);
    this.tryRules(resolved, overrides, configured);
    if (!this.fails('task')) this.buildTask(configured.task);
  }

  private fails(level: Level): boolean {
    return this.problems.some((problem) => problem.level === level);
  }

  /** Calls the experiment's methods one by one, to find the failing level. */
  private makeEach(experiment: Experiment): Config<SingleTask> | undefined {
    let task: Config<SingleTask> | undefined;
    for (const root of ['task', 'datasets', 'decodeDatasets'] as const) {
      try {
        const made = experiment[root]();
        if (root === 'task') task = made as Config<SingleTask>;
      } catch (error) {
        this.add(levelOf(root), error);
      }
    }
    return task;
  }

  private configure(
    resolved: ResolvedExperiment,
    overrides: readonly Override[],
  ): ConfiguredExperiment | undefined {
    try {
      const configured = configure(resolved, overrides);
      this.warnings.push(...configured.warnings);
      this.unread = unreadConstants(configured.experiment);
      this.known.configured = configured;
      return configured;
    } catch (error) {
      this.add(levelOf(failureOf(error).path), error);
      return undefined;
    }
  }

  /** Records all problems of a config at `root`. */
  private examine(root: string, config: AnyConfig): void {
    for (const violation of validate(config)) {
      const { path: inside, values } = violation;
      const place = values.find(({ where }) => where !== undefined)?.where;
      const text = String(violation);
      const message = text.slice(text.indexOf(' (') + 1);
      const path = inside === '' ? root : `${root}${inside.startsWith('[') ? '' : '.'}${inside}`;
      this.addProblem({ level: levelOf(root), message, path, ...(place !== undefined && { place }) });
    }
  }

  /** Records the problems of configs that few experiments have, and builds those that have none. */
  private buildExtra({
    evalPrograms,
    decodePrograms,
    executor,
    inputSpecsProvider,
  }: ConfiguredExperiment): void {
    const lists = { evalPrograms, decodePrograms };
    const places: [string, AnyConfig][] = Object.entries(lists).flatMap(([root, list]) =>
      (list ?? []).map((config, i): [string, AnyConfig] => [`${root}[${i}]`, config]),
    );
    if (executor) places.push(['executor', executor]);
    if (inputSpecsProvider) places.push(['inputSpecsProvider', inputSpecsProvider]);
    for (const [path, config] of places) {
      const before = this.problems.length;
      this.examine(path, config);
      if (this.problems.length > before) continue;
      try {
        build(config);
      } catch (error) {
        this.addProblem({ level: 'task', ...failureOf(error), path });
      }
    }
  }

  /** Configures the experiment by each of its rules for machines. */
  private tryRules(
    resolved: ResolvedExperiment,
    overrides: readonly Override[],
    { configs }: ConfiguredExperiment,
  ): void {
    for (const i of (extraOf(configs).machineRules ?? []).keys()) {
      try {
        configure(resolved, overrides, i);
      } catch (error) {
        this.addProblem({ level: 'task', ...failureOf(error), path: `machineRules[${i}]` });
      }
    }
  }

  private buildTask(config: Config<SingleTask>): void {
    const task = build(config);
    this.known.task = task;
    this.parameters = task.variables.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
  }

  /** Level datasets: all datasets build, including those for decoding. */
  private datasets(): void {
    const { configured } = this.known;
    if (!configured) return;
    for (const root of ['datasets', 'decodeDatasets'] as const) {
      for (const [i, dataset] of configured[root].entries()) {
        const path = `${root}[${i}]`;
        if (this.problems.some((problem) => problem.path?.startsWith(path))) continue;
        try {
          build(dataset);
        } catch (error) {
          this.addProblem({ level: 'datasets', ...failureOf(error), path });
        }
      }
    }
  }

  /** Level trace: settings of inputs and model agree, and steps have valid shapes. Nothing is computed or allocated. */
  private async trace(): Promise<void> {
    const { configured, task } = this.known;
    if (!configured || !task || this.problems.length > 0) return;
    for (const { path, error } of await traceSteps(configured, task))
      this.addProblem({ level: 'trace', ...failureOf(error), path });
  }

  /** Level step: computes one training step and one batch of every evaluation. */
  private async step(): Promise<void> {
    const { configured, resolved } = this.known;
    if (!configured || !resolved || this.problems.length > 0) return;
    const { total } = analyze(configured).memory;
    // A container may have less memory than the machine.
    const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
    if (total > memory) {
      const [needed, there] = [formatBytes(total), formatBytes(memory)];
      const message = `A training step holds ${needed}, and this machine has ${there}.`;
      this.addProblem({ level: 'step', message, needs: `a machine with ${needed} of memory` });
      return;
    }
    for (const { message, path } of await takeStep(configured, resolved, this.question.directory)) {
      this.addProblem({ level: 'step', message, path });
    }
  }
}

/** The level of a path into the configs, or of the method that makes them. */
function levelOf(path: string | undefined): Level {
  return /^(datasets|decodeDatasets)\b/.test(path ?? '') ? 'datasets' : 'task';
}
