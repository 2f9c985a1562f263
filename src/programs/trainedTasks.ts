/** @file Tasks that a training input trains in turn, each with its batches and its share of the steps. */
import { ConfigError } from '../hparams/index.js';
import type { BaseInput, BatchSpecs, InputSource } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';

/** A task, as a training input trains it. */
export interface TrainedTask {
  /** Name of a task beside the main one; undefined for that one. */
  readonly part: string | undefined;
  readonly task: SingleTask;
  /** Specs of its first kind of batches, of one host, padded. */
  readonly batch: BatchSpecs;
  /** From 0 to 1. */
  readonly share: number;
}

/** @throws ConfigError for an auxiliary task that no input trains */
export function checkTrained(task: SingleTask, input: Pick<InputSource, 'kindSpecs' | 'name'>): void {
  const kinds = Object.values(input.kindSpecs() ?? {});
  for (const name of task.auxiliaryNames) {
    if (kinds.some(({ part }) => part === name)) continue;
    const path = `task.auxiliaryTasks.${name}`;
    const parts = new Set(kinds.flatMap(({ part }) => part ?? []));
    const has = parts.size === 0 ? 'is no InterleavedInput' : `has the inputs ${[...parts].join(', ')}`;
    throw new ConfigError(
      `${path}: the training data '${input.name}' ${has}, so nothing trains '${name}': name an input of an ` +
        'InterleavedInput so, or leave out the task.',
      { path },
    );
  }
}

/** The main task, where an input trains it, and those beside it. @throws ConfigError as `checkTrained` */
export function trainedTasks(main: SingleTask, input: BaseInput): TrainedTask[] {
  const { auxiliaryNames } = main;
  if (auxiliaryNames.length === 0)
    return [{ part: undefined, task: main, batch: input.paddedBatchSpecs(), share: 1 }];
  checkTrained(main, input);
  const kinds = Object.values(input.kindSpecs() ?? {});
  const shares = Object.entries(input.partShares() ?? {});
  return [undefined, ...auxiliaryNames].flatMap((part) => {
    const task = main.taskOf(part);
    const specs = kinds.find((kind) => main.taskOf(kind.part) === task)?.specs;
    if (specs === undefined) return [];
    const own = shares.filter(([name]) => main.taskOf(name) === task);
    const share = own.reduce((sum, [, each]) => sum + each, 0);
    return [{ part, task, batch: input.paddedBatchSpecs(specs), share }];
  });
}
