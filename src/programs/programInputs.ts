/** @file Data of a job's programs, opened once each and closed with the job. */
import { isEqual } from '../hparams/index.js';
import { BaseInput } from '../inputs/index.js';
import type { JobOptions } from '../runs/index.js';
import type { ProgramInput, SingleTask } from '../tasks/index.js';
import type { DataRecords } from './dataRecord.js';
import { ProgramDataset } from './programDataset.js';

/** Data of one program. */
interface Opened {
  readonly program: string;
  readonly dataset: ProgramDataset;
}

/** Datasets by program and config. */
export class ProgramInputs {
  readonly #opened: Opened[] = [];

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly records?: DataRecords,
  ) {}

  /** A program's dataset, the same one for equal configs. */
  of(program: string, data: ProgramInput): ProgramDataset {
    const found = this.#opened.find((each) => each.program === program && isSame(each.dataset.data, data));
    if (found !== undefined) return found.dataset;
    const name = data.name ?? 'input';
    // A program that is named after its dataset, as those of evaluations are, is the name of the record, too.
    const record = program.endsWith(`_${name}`) ? program : `${program}_${name}`;
    const dataset = new ProgramDataset(this.options, this.task, data, record, this.records);
    this.#opened.push({ program, dataset });
    return dataset;
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map(({ dataset }) => dataset.close()));
  }
}

/** Inputs have positions, so only the object itself is the same. */
const isSame = (a: ProgramInput, b: ProgramInput): boolean =>
  a === b || (!(a instanceof BaseInput) && !(b instanceof BaseInput) && isEqual(a, b));
