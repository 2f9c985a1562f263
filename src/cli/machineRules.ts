/** @file The rule of an experiment for the machine at hand, as overrides that come before those of flags. */
import { availableParallelism, cpus } from 'node:os';
import type { MachineRule, RuleMachine } from '../experiment/index.js';
import { formatLiteral } from '../hparams/index.js';
import { countText } from '../system/text/index.js';
import type { SetOverride } from './overrides.js';

/** The machine of this process. MPI's launchers say how many ranks there are. */
export function thisMachine({
  device,
  numThreads,
}: {
  readonly device: string;
  readonly numThreads?: number | undefined;
}): RuleMachine {
  const { OMPI_COMM_WORLD_SIZE, PMI_SIZE } = process.env;
  return {
    device,
    cpu: cpus()[0]?.model.trim() ?? '',
    cores: numThreads ?? availableParallelism(),
    ranks: Number(OMPI_COMM_WORLD_SIZE ?? PMI_SIZE ?? 1),
  };
}

const counted = (count: number, what: string): string =>
  `${countText(count)} ${what}${count === 1 ? '' : 's'}`;

/** The choice of a rule. */
interface RulePick {
  /** A line about it. */
  readonly line: string;
  /** The machine, as the origin of the choice. */
  readonly origin: string;
  /** Its index among the experiment's rules; null: none is for the machine. */
  readonly index: number | null;
  readonly overrides: readonly SetOverride[];
}

/**
 * The first rule that is for a machine.
 *
 * @param machine or the index of a rule, whatever the machine.
 */
export function pickRule(rules: readonly MachineRule[], machine: RuleMachine | number): RulePick {
  const isIndex = typeof machine === 'number';
  const of = isIndex
    ? 'any machine'
    : [machine.device, machine.cpu, counted(machine.cores, 'core'), counted(machine.ranks, 'rank')]
        .filter((part) => part !== '')
        .join(', ');
  const index = isIndex ? machine : rules.findIndex((rule) => rule.fits(machine));
  const rule = rules[index];
  const origin = `machine: ${of}`;
  if (rule === undefined)
    return { line: `None of machineRules() is for this machine: ${of}.`, origin, index: null, overrides: [] };
  const name = `machineRules()[${index}]`;
  const overrides = Object.entries(rule.hp.set).map(([path, value]): SetOverride => {
    const text = formatLiteral(value);
    return { kind: 'set', path, text, origin: `${name}: ${path}=${text}` };
  });
  const settings = overrides.map(({ path, text }) => `${path}=${text}`).join(', ');
  return {
    ...{ index, overrides, origin },
    line: `${name} (${rule.conditions}) is for this machine (${of}): ${settings}`,
  };
}
