/** @file BestCheckpoints: asks for a checkpoint where a metric is among its best values so far. */
import { z } from 'zod';
import type { JsonValue } from '../inputs/index.js';
import type { JobOptions } from '../runs/index.js';
import { type Program, type ProgramRun, SaveBest, type SingleTask } from '../tasks/index.js';
import { followed, valueAt } from './followedMetric.js';

interface Followed {
  readonly policy: SaveBest;
  readonly evaluation: Program;
  /** Path of its config. */
  readonly field: string;
}

/** The best values so far: step and value, by metric. */
const state = z.record(z.string(), z.array(z.tuple([z.int(), z.number()])));

/** Follows the policies `SaveBest` of a task. Runs after the programs that give their metrics, at the same steps. */
export class BestCheckpoints implements Program {
  readonly name = 'best_checkpoints';
  readonly #followed: readonly Followed[];
  /** Metrics by step. A run that resumes has those of checkpoints that there are, and of none that it takes again. */
  #metrics = new Map<number, Record<string, number>>();

  /**
   * @param programs that may give the metrics; `--mode=train` leaves evaluations out, and what follows them saves nothing.
   * @throws ConfigError where none of them has the name that a policy gives.
   */
  constructor({ mode }: Pick<JobOptions, 'mode'>, { hp }: SingleTask, programs: readonly Program[]) {
    this.#followed = hp.train.hp.checkpointPolicies.flatMap((policy, i) => {
      if (!(policy instanceof SaveBest)) return [];
      const isHere = programs.some(({ name }) => name === policy.hp.evaluation);
      if (mode === 'train' && !isHere) return [];
      const field = `task.train.checkpointPolicies[${i}]`;
      return { policy, evaluation: followed(programs, policy.hp, field), field };
    });
  }

  /** Metrics of the checkpoints that the policies keep, by step. */
  get metrics(): ReadonlyMap<number, Readonly<Record<string, number>>> {
    return this.#metrics;
  }

  isDue(step: number, isLast: boolean): boolean {
    return this.#followed.some(({ evaluation }) => evaluation.isDue(step, isLast));
  }

  /** @throws ConfigError where an evaluation has no such metric */
  async run(run: ProgramRun): Promise<undefined> {
    for (const { policy, field } of this.#followed) {
      const value = valueAt(run, policy.hp, field);
      if (value === undefined) continue;
      this.#add(run.step, policy.label, value);
      if (this.#best(policy).includes(run.step)) run.save();
    }
    this.#forgetOthers();
  }

  #add(step: number, label: string, value: number): void {
    this.#metrics.set(step, { ...this.#metrics.get(step), [label]: value });
  }

  #best(policy: SaveBest): readonly number[] {
    const all = [...this.#metrics].map(([step, metrics]) => ({ step, metrics, savedAt: 0, isGood: true }));
    return policy.kept(all);
  }

  #forgetOthers(): void {
    const best = new Set(this.#followed.flatMap(({ policy }) => this.#best(policy)));
    this.#metrics = new Map([...this.#metrics].filter(([step]) => best.has(step)));
  }

  getState(): JsonValue | undefined {
    if (this.#followed.length === 0) return undefined;
    const saved: Record<string, [number, number][]> = {};
    for (const [step, metrics] of this.#metrics)
      for (const [label, value] of Object.entries(metrics)) (saved[label] ??= []).push([step, value]);
    return saved;
  }

  setState(saved: JsonValue): void {
    for (const [label, values] of Object.entries(state.parse(saved)))
      for (const [step, value] of values) this.#add(step, label, value);
  }

  async close(): Promise<void> {}
}
