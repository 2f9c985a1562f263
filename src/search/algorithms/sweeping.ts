/** @file Sweeping: all combinations of values, or those of a list (paxml/automl.py). */
import { z } from 'zod';
import { ConfigError } from '../../hparams/index.js';
import {
  type Domain,
  isActive,
  nearestTo,
  pointOf,
  type Space,
  sizeOf,
  type Value,
  type Values,
  valueAt,
} from '../space.js';
import type { Proposal } from '../trial.js';
import { BaseAlgorithm, type NoProposal, type SearchState } from './algorithm.js';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/**
 * All combinations of the space, the last parameter varying fastest, or the given ones, which also make the space: the
 * first row has the parameters, as Pax's parameter_sweep.
 */
export class Sweeping extends BaseAlgorithm.with(
  {
    combinations: z
      .array(z.array(scalar).min(1))
      .min(2)
      .nullable()
      .default(null)
      .describe('Names of parameters, and below them rows of values; null: all combinations of the space.'),
    numPoints: z
      .int()
      .min(2)
      .nullable()
      .default(null)
      .describe('Points of a parameter of real numbers, evenly spaced; null: they are refused, as in Pax.'),
  },
  (schema) =>
    schema
      .refine(({ combinations }) => combinations?.[0]?.every((name) => typeof name === 'string') ?? true, {
        path: ['combinations'],
        error: 'the first row has the names of the parameters',
      })
      .refine(({ combinations }) => new Set(combinations?.map((row) => row.length)).size < 2, {
        path: ['combinations'],
        error: 'all rows must have the same length',
      }),
) {
  override get needsSpace(): boolean {
    return this.hp.combinations === null;
  }

  propose({ space, number }: SearchState): Proposal | NoProposal {
    const { combinations } = this.hp;
    const values =
      combinations === null ? nth(this.#grid(space, {}), number) : rowOf(combinations, number + 1);
    return values === undefined ? 'exhausted' : { values };
  }

  /** All combinations of the parameters that follow the given values. */
  *#grid(space: Space, before: Values): Iterable<Values> {
    const next = Object.entries(space).find(
      ([name, domain]) => !Object.hasOwn(before, name) && isActive(domain, before),
    );
    if (next === undefined) yield before;
    else for (const value of this.#points(...next)) yield* this.#grid(space, { ...before, [next[0]]: value });
  }

  #points(name: string, domain: Domain): readonly Value[] {
    if (domain.kind === 'choice') return domain.values;
    const { low, high, step } = domain;
    const size = sizeOf(domain);
    const count = Math.min(size, this.hp.numPoints ?? Number.POSITIVE_INFINITY);
    if (!Number.isFinite(count)) {
      throw new ConfigError(
        `Sweeping: '${name}' has real numbers without a step: set numPoints, or give it a step.`,
        { path: name },
      );
    }
    const [first, last] = [pointOf(domain, low), pointOf(domain, high)];
    const points = Array.from({ length: count }, (_, i) =>
      count === size
        ? nearestTo(domain, low + i * (step ?? 0))
        : valueAt(domain, first + ((last - first) * i) / (count - 1)),
    );
    return [...new Set(points)];
  }
}

function nth<T>(items: Iterable<T>, n: number): T | undefined {
  let i = 0;
  for (const item of items) if (i++ === n) return item;
  return undefined;
}

function rowOf(rows: readonly (readonly Value[])[], i: number): Values | undefined {
  const row = rows[i];
  return row && Object.fromEntries(rows[0]!.map((name, column) => [String(name), row[column]!]));
}
