/** @file MultiTask: training steps of several tasks over the same variables (Trax's Loop with several tasks). */
import { z } from 'zod';
import type { FlatLayout } from '../compiler/index.js';
import { type Config, ConfigError, instance, type Report } from '../hparams/index.js';
import type { Variable } from '../layers/index.js';
import { type LearnableVariable, type SlotLayouts, sharedLayouts } from '../learners/index.js';
import { SingleTask } from './singleTask.js';

/**
 * A task with others beside it, which train the same variables. The training data is an InterleavedInput: a step on a batch
 * of the input with the name of an auxiliary task is a step of that one, with its model's loss, its learner and slots of
 * its own; every other input is this task's. A learner's step, of which schedules and corrections depend, is the number
 * of its own updates. Of an auxiliary task's `train`, the learner and `numSubBatches` count.
 */
export class MultiTask extends SingleTask.with({
  auxiliaryTasks: z
    .record(
      z.string().regex(/^[^/.]+$/, { error: 'expected names without slashes and dots' }),
      instance(SingleTask, null),
    )
    .describe("Tasks by the names of their inputs. Their models have the variables of this one's."),
}) {
  #layouts: ReadonlyMap<string, FlatLayout> | undefined;

  static override validate(config: Config<MultiTask>, report: Report): void {
    SingleTask.validate(config, report);
    for (const [name, { train }] of Object.entries(config.auxiliaryTasks)) {
      if (train.learner.optimizer.emaDecay > 0)
        report(`'${name}' averages parameters (emaDecay), which the main task alone does`, 'auxiliaryTasks');
    }
  }

  override setup(): void {
    super.setup();
    for (const [name, task] of Object.entries(this.hp.auxiliaryTasks)) this.#checkVariables(name, task);
  }

  override taskOf(part: string | undefined): SingleTask {
    return part === undefined ? this : (this.hp.auxiliaryTasks[part] ?? this);
  }

  override get auxiliaryNames(): readonly string[] {
    return Object.keys(this.hp.auxiliaryTasks);
  }

  override layout(part?: string, variables?: readonly LearnableVariable[]): FlatLayout {
    const layouts =
      variables === undefined ? (this.#layouts ??= this.#layoutsOf()) : this.#layoutsOf(variables);
    return layouts.get(part ?? '') ?? layouts.get('')!;
  }

  #layoutsOf(variables: readonly LearnableVariable[] = this.variables): ReadonlyMap<string, FlatLayout> {
    const names = ['', ...this.auxiliaryNames];
    const learners = names.map((name) => this.taskOf(name).hp.train.hp.learner);
    return new Map(sharedLayouts(learners, variables).map((layout, i) => [names[i]!, layout]));
  }

  override slotLayouts(layout?: FlatLayout): SlotLayouts {
    const auxiliary = this.auxiliaryNames.flatMap((name) =>
      Object.entries(this.taskOf(name).hp.train.hp.learner.slotLayouts(this.layout(name))).map(
        ([slot, layout]) => [`${name}.${slot}`, layout] as const,
      ),
    );
    return { ...super.slotLayouts(layout), ...Object.fromEntries(auxiliary) };
  }

  /** @throws ConfigError where a task's variables are not those of this one */
  #checkVariables(name: string, task: SingleTask): void {
    const described = (variables: readonly Variable[]) =>
      new Map(variables.map(({ path, shape }) => [path, `[${shape.join(', ')}]`]));
    const [own, others] = [described(this.variables), described(task.variables)];
    const wrong = [...new Set([...own.keys(), ...others.keys()])].find(
      (path) => own.get(path) !== others.get(path),
    );
    if (wrong === undefined) return;
    const path = `task.auxiliaryTasks.${name}.model`;
    throw new ConfigError(
      `${path}: the variable '${wrong}' is ${others.get(wrong) ?? 'not there'}, and in task.model it is ` +
        `${own.get(wrong) ?? 'not there'}: tasks that are trained in turn have the same variables.`,
      { path },
    );
  }
}
