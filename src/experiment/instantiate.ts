/** @file Construction of experiments with overridden constants, and of all its errors together. */
import { ConfigError, showValue } from '../hparams/index.js';
import { Computed, type ConstantOverride, MissingConstantError, states } from './constants.js';

/** Overrides of the experiment under construction, so that computed presets see overridden values. */
let pending: readonly ConstantOverride[] = [];
/** Collects errors of the experiment under construction; undefined: the first one is thrown. */
let gathered: unknown[] | undefined;

/** Overrides of the experiment that is being made. */
export const pendingOverrides = (): readonly ConstantOverride[] => pending;

/** Runs `action`, and collects its errors if they are being collected. */
export function reporting(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (gathered === undefined) throw error;
    gathered.push(error);
  }
}

/**
 * Makes an experiment with overridden constants; later overrides win.
 *
 * @throws ConfigError or UsageError for an unknown constant or an invalid value.
 */
export function instantiate<T extends object>(
  cls: new () => T,
  overrides: readonly ConstantOverride[] = [],
): T {
  const outer = pending;
  pending = overrides;
  try {
    const experiment = new cls();
    readComputed(experiment);
    checkFields(experiment);
    return experiment;
  } finally {
    pending = outer;
  }
}

/** Reads each computed constant, so that errors in them come up as the experiment is made. */
function readComputed(experiment: object): void {
  const { values } = states.get(experiment)!;
  for (const [name, value] of values) {
    if (!(value instanceof Computed)) continue;
    reporting(() => {
      try {
        void (experiment as Record<string, unknown>)[name];
      } catch (error) {
        // The constant that is missing is reported by itself.
        if (!(error instanceof MissingConstantError)) throw error;
      }
    });
  }
}

/**
 * Class fields are evaluated once, before subclasses set theirs.
 *
 * @throws ConfigError for a class field whose initializer read a constant that has another value by now.
 */
function checkFields(experiment: object): void {
  const { writes, overridden } = states.get(experiment)!;
  const last = new Map(writes.map((write) => [write.name, write]));
  const values = experiment as Record<string, unknown>;
  for (const { name, reads } of last.values()) {
    if (overridden.has(name)) continue;
    for (const [read, then] of reads) {
      if (read === name || Object.is(values[read], then)) continue;
      reporting(() => {
        throw new ConfigError(
          `${experiment.constructor.name}.${name} was computed from ${read} = ${showValue(then)}, and ${read} is ` +
            `${showValue(values[read])} now: a class field does not follow what is set later. ` +
            `Compute it in a preset, which does: preset({ ${name}: ({ ${read} }) => … }).`,
        );
      });
    }
  }
}

/** The errors that `action` would throw, all of them if several constants are wrong. */
export function gatheredProblems(action: () => void): unknown[] {
  const outer = gathered;
  const problems: unknown[] = [];
  gathered = problems;
  try {
    reporting(action);
  } finally {
    gathered = outer;
  }
  return problems;
}
