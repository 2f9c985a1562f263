/** @file The caches of an input's tasks. */
import { type Config, copyWith, toJSON } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { JsonValue } from '../jsonValue.js';
import type { RecordTable } from '../records/recordTable.js';
import type { OnError } from '../skippedExamples.js';
import { openCachedTable } from './cachedTable.js';
import type { MixtureOrTask, Task } from './seqioTask.js';
import { TaskCache } from './taskCache.js';

/** Fields of an input's config for caches. */
interface CacheSetting {
  readonly splitName: string;
  readonly onError: OnError;
  readonly useCached: boolean;
  readonly cacheDirectory: string;
}

/** The caches of a mixture's tasks, each of one split. */
export class InputCaches {
  readonly #command: string;

  /**
   * @param learned gives the mixture's config with the learned state of its tokenizers, and reads their files for it.
   */
  constructor(
    inputName: string,
    private readonly setting: CacheSetting,
    private readonly mixture: MixtureOrTask,
    private readonly learned: () => Config<MixtureOrTask>,
  ) {
    this.#command = `npx luthier cache-task EXP --dataset=${inputName}`;
  }

  /** Switches tasks to their caches as configured. @throws InputError if it isn't, and a task requires it */
  chooseRecords(): void {
    const { useCached, cacheDirectory } = this.setting;
    for (const task of new Set(this.mixture.tasks())) {
      if (useCached) task.readCached((records) => openCachedTable(this.#of(task, records, cacheDirectory)));
      else if (task.requiresCache)
        throw new InputError(
          'the CacheDatasetPlaceholder of a task sets required: the task can be read from its cache only. Set useCached: true, and run ' +
            `${this.#command} once.`,
        );
    }
  }

  /** The caches in a directory, whether there or not, each with its source open. */
  in(directory: string): TaskCache[] {
    const tasks = [...new Set(this.mixture.tasks())];
    return tasks.map((task) => this.#of(task, task.hp.source.open(this.setting.splitName), directory));
  }

  #of(task: Task, records: RecordTable, directory: string): TaskCache {
    const { splitName: split, onError } = this.setting;
    const whole = this.mixture.configsOf(this.learned())[this.mixture.tasks().indexOf(task)]!;
    const cached = copyWith(whole, { preprocessors: whole.preprocessors.slice(0, task.numCachedStages) });
    // A cache stays that of its task where a module moves.
    const config = toJSON(cached, { modules: false }) as unknown as JsonValue;
    return new TaskCache({ task, split, records, config, onError, command: this.#command }, directory);
  }
}
