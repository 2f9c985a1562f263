/** @file EarlyStopProgram: asks the task's early stopping function wherever there are new metrics. */
import type {
  BaseEarlyStoppingFn,
  Program,
  ProgramRun,
  StoppingInputs,
  Train,
  WeightedValues,
} from '../tasks/index.js';
import { TRAIN } from './programDataset.js';

/** Ends training where `task.earlyStoppingFn` says so. Runs after the programs that give metrics, at the same steps. */
export class EarlyStopProgram implements Program {
  readonly name = 'early_stopping';

  /** @param programs that give metrics: evaluations, decodes, and the task's own */
  constructor(
    private readonly stopping: BaseEarlyStoppingFn,
    private readonly train: Train,
    private readonly programs: readonly Program[],
  ) {}

  isDue(step: number, isLast: boolean): boolean {
    const { summaryIntervalSteps } = this.train.hp;
    return step % summaryIntervalSteps === 0 || this.programs.some((each) => each.isDue(step, isLast));
  }

  async run(run: ProgramRun): Promise<undefined> {
    const reason = this.stopping.shouldStop(this.#inputs(run));
    if (reason !== false) run.endTraining(reason);
  }

  async close(): Promise<void> {}

  #inputs(run: ProgramRun): StoppingInputs {
    const metrics: Record<string, number> = {};
    const fresh = new Set<string>();
    const running: string[] = [];
    for (const name of [TRAIN, ...this.programs.map((each) => each.name)]) {
      const found = run.metrics(name);
      if (found === undefined) continue;
      const values = keyed(name, found);
      Object.assign(metrics, values);
      if (run.metricsStep(name) !== run.step) continue;
      running.push(name);
      for (const key of Object.keys(values)) fresh.add(key);
    }
    metrics.num_params = Object.values(run.params).reduce((sum, { length }) => sum + length, 0);
    const isLast = run.step >= this.train.hp.numTrainSteps;
    return { metrics, fresh, runningMode: running.join('_'), step: run.step, isLast };
  }
}

/** A program's metrics under Pax's keys. */
function keyed(program: string, metrics: WeightedValues): Record<string, number> {
  const prefix = program.startsWith('eval_') ? `${program}/metrics` : program;
  return Object.fromEntries(
    Object.entries(metrics).map(([metric, { value }]) => [`${prefix}/${metric}`, value]),
  );
}
