/** @file DecodeProgram: continuations of the examples of one dataset, written to a file (paxml's decode programs). */
import type { Config } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { Program, ProgramRun, SingleTask } from '../tasks/index.js';
import { decodableModel } from './datasetDecoder.js';
import { writeDecoded } from './exampleFiles.js';

/** Decodes one dataset. */
export class DecodeProgram implements Program {
  readonly phase = 'decoding';
  /** `decode_test_<dataset>`. */
  readonly name: string;
  readonly #datasetName: string;

  /** @throws ConfigError where the task's model can't be decoded. */
  constructor(
    private readonly task: SingleTask,
    readonly dataset: Config<BaseInput>,
  ) {
    this.#datasetName = dataset.name ?? 'input';
    this.name = `decode_test_${this.#datasetName}`;
    decodableModel(task, `decodeDatasets() has '${this.#datasetName}'`);
  }

  isDue(step: number, isLast: boolean): boolean {
    const { decodeIntervalSteps, decodeStartAfterNSteps } = this.task.hp.train.hp;
    if (isLast) return true;
    return decodeIntervalSteps !== null && step % decodeIntervalSteps === 0 && step >= decodeStartAfterNSteps;
  }

  async run(run: ProgramRun): Promise<undefined> {
    const result = await run.decode(this.dataset);
    run.report({ ...result, path: writeDecoded(run, this.#datasetName, result.examples) });
  }

  async close(): Promise<void> {}
}
