/** @file The check of --debug=nan: ends training at the first step that makes a value NaN or infinite. */
import { type FlatLayout, flatViews, floatsOf } from '../compiler/index.js';
import { NON_TRAINABLE } from '../learners/index.js';
import { JobError } from '../runs/index.js';
import type { WeightedValues } from '../tasks/index.js';
import { describeNonFinite } from './invalidSteps.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

const isFiniteArray = (values: Float32Array): boolean => values.every(Number.isFinite);

/** Paths of variables with values that are not finite, as text; undefined if there are none. */
function listed(what: string, views: Readonly<Record<string, Float32Array>>): string | undefined {
  const paths = Object.keys(views).filter((path) => !isFiniteArray(views[path]!));
  if (paths.length === 0) return undefined;
  const more = paths.length > 3 ? ` and ${paths.length - 3} more` : '';
  return `${what} of ${paths.slice(0, 3).join(', ')}${more}`;
}

/** Metrics whose values are not finite, with them; a metric of weight 0 has no value. */
export function nonFiniteMetrics(metrics: WeightedValues): string[] {
  return Object.entries(metrics).flatMap(([name, { value, weight }]) =>
    weight !== 0 && !Number.isFinite(value) ? [`${name} ${value}`] : [],
  );
}

/** Checks losses, metrics, gradients and parameters of steps that are taken one per call. */
export class FiniteCheck {
  readonly #before: Float32Array;

  constructor(private readonly program: TrainProgram) {
    this.#before = new Float32Array(program.state.params.length);
  }

  /** Keeps the parameters that the next step begins with. */
  async begin(): Promise<void> {
    await this.program.state.memory?.toHost();
    this.#before.set(this.program.state.params);
  }

  /** Checks the step that was taken. @throws JobError that names the first layer and operation whose result is not finite */
  async end({ loss, metrics }: TrainReport): Promise<void> {
    const { program } = this;
    await program.state.memory?.toHost();
    const { layout, views, changing, grads, step } = program.state;
    const written = Object.entries(flatViews(changing, grads));
    const { entries }: FlatLayout = changing;
    const groups = new Map(entries.map(({ name, group }) => [name, group]));
    const writtenTo = (isReplaced: boolean) =>
      Object.fromEntries(written.filter(([path]) => (groups.get(path) === NON_TRAINABLE) === isReplaced));
    const wrong = [
      Number.isFinite(loss) ? undefined : `loss ${loss}`,
      ...nonFiniteMetrics(metrics),
      listed('the gradients', writtenTo(false)),
      listed('the replaced values', writtenTo(true)),
    ].filter((text) => text !== undefined);
    if (wrong.length > 0) {
      const found = await program.firstNonFinite(this.#before);
      throw new JobError(
        `--debug=nan: step ${step} is not finite: ${wrong.join(', ')}. ${describeNonFinite(found)}`,
      );
    }
    const moved = listed('the new values', floatsOf(layout, views));
    if (moved !== undefined)
      throw new JobError(
        `--debug=nan: step ${step} is not finite: ${moved}. Loss and gradients are finite: the update made them so.`,
      );
  }
}
