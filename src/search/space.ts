/** @file Search spaces: parameters with their domains, some of them active only under values of others. */
import { z } from 'zod';
import { ConfigError } from '../hparams/index.js';
import type { Draws } from './proposalDraws.js';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** A value of a parameter. */
export type Value = z.output<typeof scalar>;

/** Values of the active parameters of a trial. */
export type Values = Readonly<Record<string, Value>>;

const when = z.record(z.string(), z.array(scalar).min(1)).default({});
const bounds = { low: z.number(), high: z.number(), log: z.boolean().default(false), when };

const domainSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('real'), ...bounds, step: z.number().positive().nullable().default(null) }),
  z.object({ kind: z.literal('integer'), ...bounds, step: z.int().positive().default(1) }),
  z.object({ kind: z.literal('choice'), values: z.array(scalar).min(1), when }),
]);

/** The values that a parameter may have. */
export type Domain = z.output<typeof domainSchema>;

/** A domain of numbers. */
export type NumberDomain = Exclude<Domain, { kind: 'choice' }>;

/** Domains by parameter: constants of an experiment, or paths into its configs, as in `--set`. */
export type Space = Readonly<Record<string, Domain>>;

/** A field that holds a space. */
export const spaceSchema = z.record(z.string(), domainSchema).superRefine((space, context) => {
  for (const [name, problem] of problemsOf(space))
    context.addIssue({ code: 'custom', path: [name], message: problem });
});

/** Where a parameter is active: under these values of others, all of them at once. */
type Condition = Readonly<Record<string, Value | readonly Value[]>>;

interface NumberOptions {
  /** Whether the logarithm is searched evenly. */
  readonly log?: boolean;
  /** Distance of the values from `low` on. */
  readonly step?: number;
  readonly when?: Condition;
}

function conditionOf(condition: Condition = {}): Record<string, Value[]> {
  return Object.fromEntries(
    Object.entries(condition).map(([name, values]) => [name, Array.isArray(values) ? [...values] : [values]]),
  ) as Record<string, Value[]>;
}

/** Real numbers from `low` to `high`. */
export function real(low: number, high: number, options: NumberOptions = {}): Domain {
  const { log = false, step = null } = options;
  return { kind: 'real', low, high, log, step, when: conditionOf(options.when) };
}

/** Integers from `low` to `high`. */
export function integer(low: number, high: number, options: NumberOptions = {}): Domain {
  const { log = false, step = 1 } = options;
  return { kind: 'integer', low, high, log, step, when: conditionOf(options.when) };
}

/** One of several values, in no order. */
export function choice(values: readonly Value[], options: { readonly when?: Condition } = {}): Domain {
  return { kind: 'choice', values: [...values], when: conditionOf(options.when) };
}

/** Problems of a space, each with the parameter that it is of. */
function* problemsOf(space: Space): Iterable<[string, string]> {
  const earlier = new Map<string, Domain>();
  for (const [name, domain] of Object.entries(space)) {
    const problem = problemOf(domain);
    if (problem !== undefined) yield [name, problem];
    for (const [other, values] of Object.entries(domain.when)) {
      const known = earlier.get(other);
      if (known === undefined) yield [name, `is active under '${other}', which is not a parameter before it`];
      else {
        const missing = values.find((value) => !contains(known, value));
        if (missing !== undefined)
          yield [name, `is active under ${JSON.stringify(missing)} of '${other}', which never has it`];
      }
    }
    earlier.set(name, domain);
  }
}

function problemOf(domain: Domain): string | undefined {
  if (domain.kind === 'choice') {
    return new Set(domain.values).size < domain.values.length ? 'has a value twice' : undefined;
  }
  const { low, high, log, step, kind } = domain;
  if (!(low <= high)) return `low (${low}) must not be above high (${high})`;
  if (log && low <= 0) return `a logarithmic scale needs a positive low, got ${low}`;
  if (kind === 'integer' && !(Number.isInteger(low) && Number.isInteger(high)))
    return `integers are between integers, got ${low} and ${high}`;
  return log && step !== null && step !== 1 ? 'a logarithmic scale has no steps' : undefined;
}

/** @throws ConfigError for a space whose parameters don't fit together. */
export function checkSpace(space: Space): void {
  for (const [name, problem] of problemsOf(space))
    throw new ConfigError(`The parameter '${name}' ${problem}.`, { path: name });
  if (Object.keys(space).length === 0) throw new ConfigError('A search space needs at least one parameter.');
}

/** Number of values, or infinity. */
export function sizeOf(domain: Domain): number {
  if (domain.kind === 'choice') return domain.values.length;
  const { low, high, step } = domain;
  return low === high
    ? 1
    : step === null
      ? Number.POSITIVE_INFINITY
      : Math.floor((high - low) / step + 1e-9) + 1;
}

/** Whether a domain has the value. */
export function contains(domain: Domain, value: Value | undefined): boolean {
  if (domain.kind === 'choice') return value !== undefined && domain.values.includes(value);
  return typeof value === 'number' && value === nearestTo(domain, value);
}

/** The value of a domain nearest to a number. */
export function nearestTo(domain: NumberDomain, value: number): number {
  const { low, high, step } = domain;
  const bounded = Math.min(high, Math.max(low, value));
  if (step === null) return bounded;
  const count = Math.min(Math.round((bounded - low) / step), sizeOf(domain) - 1);
  // Steps such as 0.1 add up to an error in the last digits.
  return Number((low + count * step).toPrecision(12));
}

/** Whether a parameter is active under the values of those before it. */
export function isActive(domain: Domain, values: Values): boolean {
  return Object.entries(domain.when).every(([name, allowed]) => allowed.includes(values[name] as Value));
}

/** The interval in which a domain of numbers is searched evenly: its logarithms, and half a step beyond either end. */
export function intervalOf({ low, high, log, step }: NumberDomain): { low: number; high: number } {
  const half = step === null ? 0 : step / 2;
  return log
    ? { low: Math.log(low - half > 0 ? low - half : low / 2), high: Math.log(high + half) }
    : { low: low - half, high: high + half };
}

/** A point of the interval of a domain as a value. */
export function valueAt(domain: NumberDomain, point: number): number {
  return nearestTo(domain, domain.log ? Math.exp(point) : point);
}

/** A value as a point of the interval of its domain. */
export function pointOf(domain: NumberDomain, value: number): number {
  return domain.log ? Math.log(value) : value;
}

/** A value of a domain, all equally likely, or their logarithms. */
export function drawValue(domain: Domain, draws: Draws): Value {
  if (domain.kind === 'choice') return domain.values[draws.below(domain.values.length)]!;
  const { low, high } = intervalOf(domain);
  return valueAt(domain, low + (high - low) * draws.uniform());
}

/** Values of all active parameters, by a function that sees those before it. */
export function fillValues(
  space: Space,
  value: (name: string, domain: Domain, before: Values) => Value,
): Values {
  const values: Record<string, Value> = {};
  for (const [name, domain] of Object.entries(space))
    if (isActive(domain, values)) values[name] = value(name, domain, values);
  return values;
}

/** Random values of all active parameters. */
export function drawValues(space: Space, draws: Draws): Values {
  return fillValues(space, (_, domain) => drawValue(domain, draws));
}
