/** @file Settings by machine: rules that an experiment has for devices, cores and ranks. */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';

/** The machine that a run is configured for. */
export interface RuleMachine {
  /** `cpu` or `gpu`. */
  readonly device: string;
  /** Name of its CPU: `AMD EPYC 9R14`. */
  readonly cpu: string;
  /** Threads that compute. */
  readonly cores: number;
  /** Processes that train together. */
  readonly ranks: number;
}

/** A number, or a range: `8..` is 8 and more. */
const count = z
  .union([z.int().positive(), z.string()])
  .refine((value) => typeof value === 'number' || /^(?=.*\d)\d*\.\.\d*$/.test(value), {
    error: (issue) => `expected a number or a range such as 8.., 2..4 or ..4, got '${issue.input}'`,
  })
  .nullable()
  .default(null);

/** Settings for some machines. Of an experiment's rules the first that fits is applied, before any flag. */
export class MachineRule extends Configurable.with({
  device: z
    .string()
    .nullable()
    .default(null)
    .describe("cpu or gpu, or a pattern of the CPU's name: '*EPYC*'; null: any."),
  cores: count.describe('Threads that compute: 8, or a range such as 8.. or 2..4; null: any number.'),
  ranks: count.describe('Processes that train together, a number or a range; null: any number.'),
  set: z
    .record(z.string(), z.json())
    .describe("Values by constant, path or pattern, as in --set: { 'datasets[0].batchSize': 64 }."),
}) {
  /** Whether the rule is for a machine. */
  fits({ device, cpu, cores, ranks }: RuleMachine): boolean {
    const { hp } = this;
    return (
      (hp.device === null || [device, cpu].some((name) => isLike(name, hp.device!))) &&
      isAmong(cores, hp.cores) &&
      isAmong(ranks, hp.ranks)
    );
  }

  /** Its conditions, for messages: `cores 8..`. */
  get conditions(): string {
    const { device, cores, ranks } = this.hp;
    const given = Object.entries({ device, cores, ranks }).filter(([, value]) => value !== null);
    return given.map(([name, value]) => `${name} ${value}`).join(', ') || 'any machine';
  }
}

function isLike(name: string, pattern: string): boolean {
  const source = pattern.replaceAll(/[^\w\s]/g, (sign) => (sign === '*' ? '.*' : `\\${sign}`));
  return new RegExp(`^${source}$`, 'i').test(name);
}

function isAmong(value: number, wanted: number | string | null): boolean {
  if (wanted === null || typeof wanted === 'number') return wanted === null || wanted === value;
  const [least, most] = wanted.split('..') as [string, string];
  return value >= Number(least) && (most === '' || value <= Number(most));
}
