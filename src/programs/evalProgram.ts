/** @file Programs that evaluate: one dataset (paxml's SingleTaskEvalProgram), the next training batch. */
import { z } from 'zod';
import type { Config } from '../hparams/index.js';
import { type BaseInput, EndOfData, type InputState, type JsonValue } from '../inputs/index.js';
import type { Program, ProgramRun, Train } from '../tasks/index.js';
import { writeExamples } from './exampleFiles.js';
import { TRAIN } from './programDataset.js';

const inputState = z.custom<InputState>((state) => typeof state === 'object' && state !== null);

/** Positions before and after an evaluation of data that goes on. */
const position = z.strictObject({
  /** The training step of the evaluation. */
  step: z.int(),
  /** null means the first batch. */
  from: inputState.nullable(),
  to: inputState,
});

/** Evaluates one dataset. Repeated at the same step, it reads the same batches. */
export class EvalProgram implements Program {
  readonly phase = 'evaluation';
  /** `eval_test_<dataset>`. */
  readonly name: string;
  #position: z.infer<typeof position> | undefined;

  constructor(
    private readonly train: Train,
    readonly dataset: Config<BaseInput>,
  ) {
    this.name = `eval_test_${dataset.name ?? 'input'}`;
  }

  isDue(step: number, isLast: boolean): boolean {
    return isEvaluated(this.train, step, isLast);
  }

  async run(run: ProgramRun): Promise<undefined> {
    const { step } = run;
    const last = this.#position;
    const from = last?.step === step ? last.from : (last?.to ?? null);
    const result = await run.evaluate(this.dataset, { from });
    if (result.end !== null) this.#position = { step, from, to: result.end };
    const { evaluatedExamples: examples } = result;
    if (examples.length > 0) writeExamples(run, 'eval', this.dataset.name ?? 'input', examples);
    run.report(result);
  }

  getState(): JsonValue | undefined {
    return this.#position;
  }

  /** Resumes at the position of an earlier process. */
  setState(state: JsonValue): void {
    this.#position = position.parse(state);
  }

  async close(): Promise<void> {}
}

/** Evaluates the next training batch without taking it. */
export class EvalTrainProgram implements Program {
  readonly phase = 'evaluation';
  readonly name = 'eval_train';

  constructor(private readonly train: Train) {}

  isDue(step: number, isLast: boolean): boolean {
    return isEvaluated(this.train, step, isLast);
  }

  async run(run: ProgramRun): Promise<undefined> {
    try {
      run.report(await run.evaluate(TRAIN));
    } catch (error) {
      // Data that ends with the last training step has no further batch.
      if (!(error instanceof EndOfData)) throw error;
    }
  }

  async close(): Promise<void> {}
}

function isEvaluated({ hp }: Train, step: number, isLast: boolean): boolean {
  return isLast || step % hp.evalIntervalSteps === 0;
}
