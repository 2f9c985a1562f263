/** @file Mixture: tasks by their rates, or in proportion to their examples (seqio.Mixture). */
import { z } from 'zod';
import { type Config, instance } from '../../hparams/index.js';
import { MixtureOrTask, type Task, type WeightedTask } from './seqioTask.js';

const rates = z
  .record(z.string(), z.number().positive())
  .nullable()
  .default(null)
  .describe('Rate of each part, relative to the others; null: its number of records.');

/**
 * Examples of several tasks and mixtures, drawn by rate. The rates of the parts are those given, or numbers of records up
 * to `maximum`, and in either case to the power of 1 / `temperature` (T5's examples-proportional mixing).
 */
export class Mixture extends MixtureOrTask.with(
  {
    parts: z
      .record(z.string(), instance(MixtureOrTask, null))
      .refine((parts) => Object.keys(parts).length > 0, { error: 'expected at least one part' })
      .describe('Tasks and mixtures by name.'),
    rates,
    temperature: z
      .number()
      .positive()
      .default(1)
      .describe('Temperature of the rates: above 1, they become more equal.'),
    maximum: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe('Cap on the number of records that sets a rate; null: no limit.'),
  },
  (schema) =>
    schema
      .refine(({ parts, rates }) => rates === null || sameKeys(parts, rates), {
        path: ['rates'],
        error: 'expected a rate for each part, and no others',
      })
      .refine(({ rates, maximum }) => rates === null || maximum === null, {
        path: ['maximum'],
        error: 'caps numbers of records, which given rates replace',
      }),
) {
  override numRecords(split: string): number {
    return Object.values(this.hp.parts).reduce((sum, part) => sum + part.numRecords(split), 0);
  }

  override weightedTasks(split: string): readonly WeightedTask[] {
    const { parts, rates, temperature } = this.hp;
    const maximum = this.hp.maximum ?? Number.POSITIVE_INFINITY;
    const rated = Object.entries(parts).map(([name, part]) => {
      const rate = rates?.[name] ?? Math.min(part.numRecords(split), maximum);
      return { name, part, rate: rate ** (1 / temperature) };
    });
    const total = rated.reduce((sum, { rate }) => sum + rate, 0);
    const merged = new Map<Task, WeightedTask>();
    for (const { name, part, rate } of rated) {
      for (const inner of part.weightedTasks(split)) {
        const path = inner.task === part ? name : `${name}/${inner.name}`;
        const before = merged.get(inner.task);
        const share = (before?.share ?? 0) + (inner.share * rate) / total;
        merged.set(inner.task, { name: before?.name ?? path, task: inner.task, share });
      }
    }
    return [...merged.values()];
  }

  override tasks(): readonly Task[] {
    return Object.values(this.hp.parts).flatMap((part) => part.tasks());
  }

  override configsOf({ parts }: Config<Mixture>): readonly Config<Task>[] {
    return Object.entries(this.hp.parts).flatMap(([name, part]) => part.configsOf(parts[name]!));
  }
}

function sameKeys(a: object, b: object): boolean {
  return JSON.stringify(Object.keys(a).sort()) === JSON.stringify(Object.keys(b).sort());
}
