/** @file Newest metrics of a job's programs. */
import type { WeightedValues } from '../tasks/index.js';

/** Metrics of a program, and the step that they are of. */
export interface MetricsAt {
  readonly step: number;
  readonly metrics: WeightedValues;
}

/** Metrics by program, those of training among them. */
export class NewestMetrics {
  readonly #byProgram = new Map<string, MetricsAt>();

  of(program: string): MetricsAt | undefined {
    return this.#byProgram.get(program);
  }

  set(program: string, step: number, metrics: WeightedValues): void {
    this.#byProgram.set(program, { step, metrics });
  }

  /** All of them, for `restore` in a later process. */
  all(): Readonly<Record<string, MetricsAt>> {
    return Object.fromEntries(this.#byProgram);
  }

  restore(saved: Readonly<Record<string, MetricsAt>>): void {
    for (const [program, { step, metrics }] of Object.entries(saved)) this.set(program, step, metrics);
  }
}
