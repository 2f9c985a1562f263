/** @file Effective constants of an experiment: values, origins, missing and unread ones. */
import type { z } from 'zod';
import {
  type ConstantOverride,
  type Constants,
  constantsOf,
  currentValue,
  type Declaring,
  declared,
  type MissingConstantError,
  missing,
  presets,
  states,
  unset,
  type Write,
} from './constants.js';
import { Experiment, gatheredProblems, instantiate } from './experiment.js';

/** The constants that a class sets and that nothing read so far. */
export function unreadConstants(experiment: Experiment): string[] {
  const { writes, overridden, reads } = states.get(experiment)!;
  const names = new Set(writes.map(({ name }) => name));
  return [...names].filter((name) => !reads.has(name) && !overridden.has(name));
}

/** The constants of the command line that nothing read so far, neither presets nor methods. */
export function unreadOverrides(experiment: Experiment): ConstantOverride[] {
  const { overridden, reads } = states.get(experiment)!;
  return [...overridden.values()].filter(({ name }) => !reads.has(name));
}

/** An error for each constant that has neither a value nor a default. */
function missingConstants(experiment: Experiment): MissingConstantError[] {
  const state = states.get(experiment)!;
  const { constructor: cls } = experiment;
  return Object.entries(constantsOf(cls))
    .filter(([name, schema]) => currentValue(state, schema, name) === unset)
    .map(([name, schema]) => missing(cls, name, schema));
}

/**
 * All that is wrong with the constants that the class and `overrides` set, and those that nothing sets; other errors of the
 * class's fields are among them.
 */
export function constantProblems(
  cls: new () => Experiment,
  overrides: readonly ConstantOverride[] = [],
): unknown[] {
  let missing: readonly unknown[] = [];
  const problems = gatheredProblems(() => {
    missing = missingConstants(instantiate(cls, overrides));
  });
  return [...problems, ...missing];
}

/** Throws MissingConstantError for the first constant that has neither a value nor a default. */
export function checkRequired(experiment: Experiment): void {
  const [first] = missingConstants(experiment);
  if (first) throw first;
}

/** An effective constant and who set it: a class by its name, or the flag of the command line. */
export interface EffectiveConstant {
  readonly name: string;
  /** Whether the command line set it. */
  readonly overridden: boolean;
  /** Undefined when nothing sets it and it has no default. */
  readonly value: unknown;
  readonly setBy: string;
  /** The class that set it, or that declares its default; absent for a flag. */
  readonly setIn?: Function;
  readonly schema: z.ZodType;
}

/** The experiment's class and its ancestors below Experiment, base first, without the classes that `with` makes. */
function lineage(cls: Function): { cls: Function; declares: Constants }[] {
  const chain: { cls: Function; declares: Constants }[] = [];
  for (let c: any = cls; c !== Experiment && typeof c === 'function'; c = Object.getPrototypeOf(c)) {
    if (Object.hasOwn(c, presets)) continue;
    if (Object.hasOwn(c, declared)) {
      // Belongs to the named class that extends it, which the walk has just passed.
      const owner = chain[0];
      if (owner) owner.declares = { ...(c as Declaring)[declared], ...owner.declares };
    } else chain.unshift({ cls: c, declares: {} });
  }
  return chain;
}

/** The classes that an experiment's class extends below Experiment, the nearest first. */
export function baseClassesOf(cls: Function): Function[] {
  return lineage(cls)
    .map((each) => each.cls)
    .reverse()
    .slice(1);
}

/** Writes that constructing `cls` makes, in order; undefined where it can't be constructed by itself. */
function writesOf(cls: Function, overrides: readonly ConstantOverride[]): readonly Write[] | undefined {
  try {
    return states.get(instantiate(cls as new () => Experiment, overrides))!.writes;
  } catch {
    return undefined;
  }
}

/**
 * Every constant with its effective value and the class that set it. Each ancestor is constructed by itself: the
 * writes that a class adds to those of its parent are its own.
 */
export function effectiveConstants(experiment: Experiment): EffectiveConstant[] {
  const state = states.get(experiment)!;
  const overrides = [...state.overridden.values()];
  const setIn = new Map<string, Function>();
  let seen = 0;
  for (const { cls, declares } of lineage(experiment.constructor)) {
    for (const name of Object.keys(declares)) setIn.set(name, cls);
    const writes = cls === experiment.constructor ? state.writes : writesOf(cls, overrides);
    if (!writes) continue;
    for (const { name } of writes.slice(seen)) setIn.set(name, cls);
    seen = writes.length;
  }
  return Object.entries(constantsOf(experiment.constructor)).map(([name, schema]) => {
    const value = currentValue(state, schema, name);
    const flag = state.overridden.get(name);
    const cls = setIn.get(name) ?? experiment.constructor;
    return {
      name,
      overridden: flag !== undefined,
      value: value === unset ? undefined : value,
      ...(flag ? { setBy: flag.origin } : { setBy: cls.name, setIn: cls }),
      schema,
    };
  });
}
