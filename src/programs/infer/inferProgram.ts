/** @file InferProgram: outputs of the model for the examples of one dataset, written to files (paxml's infer_and_write). */
import { dirname, join } from 'node:path';
import { checkpointName } from '../../checkpoints/index.js';
import { formatSpec, type HostTensor, sizeOf, type TensorSpec } from '../../compiler/index.js';
import type { Config } from '../../hparams/index.js';
import type { BaseInput } from '../../inputs/index.js';
import type { JobOptions } from '../../runs/index.js';
import { InterruptedError } from '../../system/index.js';
import type { InferredBatch, Program, ProgramRun, SingleTask } from '../../tasks/index.js';
import { settingsDigest } from '../jobProgress.js';
import { writerOf } from './inferences.js';
import { recordsOf } from './outputRecords.js';
import { OutputShards } from './outputShards.js';

/** Writes the outputs for one dataset. */
export class InferProgram implements Program {
  readonly phase = 'inference';
  /** `infer_<dataset>`. */
  readonly name: string;
  readonly #datasetName: string;

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly dataset: Config<BaseInput>,
  ) {
    this.#datasetName = dataset.name ?? 'input';
    this.name = `infer_${this.#datasetName}`;
  }

  isDue(_step: number, isLast: boolean): boolean {
    return isLast;
  }

  async run(run: ProgramRun): Promise<undefined> {
    const inference = await run.infer(this.dataset);
    const { outputFormat, outputNumShards, saveIntervalSeconds } = writerOf(this.task).hp;
    const { path: checkpoint = '', savedAt = '' } = run.checkpoint ?? {};
    const directory = join(run.directory, 'output', this.#datasetName, checkpointName(run.step));
    const outputs = new OutputShards({
      ...{ directory, format: outputFormat, numShards: outputNumShards },
      origin: { settings: settingsDigest(this.options), savedAt, data: inference.digest },
    });
    if (outputs.isComplete) {
      run.tell(
        `${this.name} at step ${run.step}: ${directory} has the outputs of this checkpoint, data and settings already. ` +
          'Delete it to write them again.',
      );
      return;
    }
    const before = outputs.numExamples;
    if (outputs.position !== null) run.tell(`${this.name}: goes on after ${before} examples`);
    const started = performance.now();
    let [saved, isTold] = [started, false];
    try {
      for await (const batch of inference.batches(outputs.position)) {
        if (!isTold) run.tell(`${this.name}: ${describe(batch.outputs)}`);
        isTold = true;
        outputs.add(recordsOf(outputFormat, batch), batch.position, specsOf(batch));
        if (performance.now() - saved < 1000 * saveIntervalSeconds) continue;
        outputs.save();
        saved = performance.now();
      }
      outputs.finish({
        ...{ restore_checkpoint_dir: dirname(checkpoint), restore_checkpoint_step: run.step },
        ...{ input_name: this.#datasetName, model_name: this.task.model.constructor.name },
      });
    } catch (error) {
      // The next job goes on right here.
      if (error instanceof InterruptedError) outputs.save();
      throw error;
    } finally {
      outputs.close();
    }
    const seconds = (performance.now() - started) / 1000;
    const throughput = { unit: 'examples', perSec: (outputs.numExamples - before) / seconds };
    const [skipped, { changes }] = [inference.takeSkipped(), inference];
    run.report({
      ...{ metrics: {}, numExamples: outputs.numExamples, path: directory, seconds, throughput },
      ...{ skipped, changes },
    });
  }

  async close(): Promise<void> {}
}

/** Shapes of outputs, with the rows in front. */
const specsOf = ({ outputs }: InferredBatch): Record<string, TensorSpec> =>
  Object.fromEntries(
    Object.entries(outputs).map(([name, { shape, dtype }]) => [name, { shape: [...shape], dtype }]),
  );

/** The outputs for an example, and their size, in words. */
function describe(outputs: Readonly<Record<string, HostTensor>>): string {
  const rows = Object.entries(outputs).map(
    ([name, { shape, dtype }]) => [name, { shape: shape.slice(1), dtype }] as const,
  );
  const bytes = rows.reduce((sum, [, { shape }]) => sum + 4 * sizeOf(shape), 0);
  const listed = rows.map(([name, spec]) => `${name} ${formatSpec(spec)}`).join(', ');
  return `${listed}: ${bytes.toLocaleString('en-US')} bytes an example`;
}
