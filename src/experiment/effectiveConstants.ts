/** @file Effective constants of an experiment: values, origins, missing and unread ones. */
import type { z } from 'zod';
import {
  type ConstantOverride,
  type Constants,
  constantsOf,
  currentValue,
  type Declaring,
  declared,
  missingConstants,
  presets,
  states,
  unset,
  type Write,
} from './constants.js';
import { Experiment } from './experiment.js';
import { gatheredProblems, instantiate } from './instantiate.js';

/** Constants that a class sets and nothing has read so far. */
export function unreadConstants(experiment: Experiment): string[] {
  const { writes, overridden, reads } = states.get(experiment)!;
  const names = new Set(writes.map(({ name }) => name));
  return [...names].filter((name) => !reads.has(name) && !overridden.has(name));
}

/** Constants from the command line that neither presets nor methods have read so far. */
export function unreadOverrides(experiment: Experiment): ConstantOverride[] {
  const { overridden, reads } = states.get(experiment)!;
  return [...overridden.values()].filter(({ name }) => !reads.has(name));
}

/** All errors of the constants that the class or `overrides` set, of missing constants, and of other class fields. */
export function constantProblems(
  cls: new () => Experiment,
  overrides: readonly ConstantOverride[] = [],
): unknown[] {
  let missing: readonly unknown[] = [];
  const problems = gatheredProblems(() => {
    const experiment = instantiate(cls, overrides);
    missing = missingConstants(cls, states.get(experiment)!);
  });
  return [...problems, ...missing];
}

/** Throws MissingConstantError for the first constant that has neither a value nor a default. */
export function checkRequired(experiment: Experiment): void {
  const [first] = missingConstants(experiment.constructor, states.get(experiment)!);
  if (first) throw first;
}

/** A constant's effective value and its origin: a class, or a flag. */
export interface EffectiveConstant {
  readonly name: string;
  /** Whether the command line set it. */
  readonly overridden: boolean;
  /** Undefined if nothing sets it and it has no default. */
  readonly value: unknown;
  readonly setBy: string;
  /** The class that set it, or declares its default; absent for a flag. */
  readonly setIn?: Function;
  readonly schema: z.ZodType;
}

/** The experiment's class and its ancestors below Experiment, base first, without classes made by `with`. */
function lineage(cls: Function): { cls: Function; declares: Constants }[] {
  const chain: { cls: Function; declares: Constants }[] = [];
  for (let c: any = cls; c !== Experiment && typeof c === 'function'; c = Object.getPrototypeOf(c)) {
    if (Object.hasOwn(c, presets)) continue;
    if (Object.hasOwn(c, declared)) {
      // It belongs to the named class that extends it, visited just before.
      const owner = chain[0];
      if (owner) owner.declares = { ...(c as Declaring)[declared], ...owner.declares };
    } else chain.unshift({ cls: c, declares: {} });
  }
  return chain;
}

/** The base classes of an experiment's class, below Experiment, nearest first. */
export function baseClassesOf(cls: Function): Function[] {
  // One that `preset` returns has no place of its own among them.
  return lineage(cls)
    .map((each) => each.cls)
    .reverse()
    .filter((each) => each !== cls);
}

/** Writes made by constructing `cls` alone, in order; undefined if that fails. */
function writesOf(cls: Function, overrides: readonly ConstantOverride[]): readonly Write[] | undefined {
  try {
    return states.get(instantiate(cls as new () => Experiment, overrides))!.writes;
  } catch {
    return undefined;
  }
}

/**
 * All constants with effective value and origin. Each ancestor is constructed separately: the writes that it adds to
 * its parent's are its own.
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
