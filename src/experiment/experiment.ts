/** @file Experiment: a class whose constants have schemas and whose methods return configs (Pax's base_experiment.py). */
import type { z } from 'zod';
import {
  type Config,
  ConfigError,
  coerce,
  didYouMean,
  type OldNames,
  presentNameHint,
  withOldNames,
} from '../hparams/index.js';
import { append } from '../hparams/nodes/containers.js';
import type { BaseInput } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { checkValue, placeOfCaller } from './checkConstant.js';

/** Schemas of an experiment's constants, by name. */
export type Constants = Readonly<Record<string, z.ZodType>>;
type Values<F extends Constants> = { readonly [K in keyof F]: z.infer<F[K]> };

/** A class of experiments; abstract families included. */
export type ExperimentClass<T extends Experiment = Experiment> = abstract new () => T;

/** What a class made by `with` is: instances carry the constants as properties that class fields may override. */
type WithConstants<B extends ExperimentClass, F extends Constants> = (abstract new () => InstanceType<B> &
  Values<F>) &
  Omit<B, 'prototype'>;

/** A constant set on the command line: `--set numLayers=6`, a value from a file, or `--unset numLayers`. */
export type ConstantOverride = {
  readonly name: string;
  /** The flag as written, or the place in the file, for messages and for experiment_cls_vars.txt. */
  readonly origin: string;
} & ({ readonly text: string } | { readonly value: unknown } | { readonly toDefault: true });

/** One write to a constant, in the order in which the constructors made them. */
interface Write {
  readonly name: string;
}

interface State {
  readonly values: Map<string, unknown>;
  readonly overridden: Map<string, ConstantOverride>;
  readonly writes: Write[];
  /** The constants that were read so far. */
  readonly reads: Set<string>;
}

const declared = Symbol('constants');
const states = new WeakMap<Experiment, State>();
/** Overrides for the experiment under construction: class fields that depend on a constant then see the overridden value. */
let pending: readonly ConstantOverride[] = [];
/** Where the problems of the experiment under construction are gathered; undefined: the first one is thrown. */
let gathered: unknown[] | undefined;

/** Runs `action`; what it throws is gathered where problems are. */
function reporting(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (gathered === undefined) throw error;
    gathered.push(error);
  }
}

const oldNames = Symbol('oldNames');

type Declaring = { [declared]?: Constants; [oldNames]?: OldNames };

/** Schemas of every constant that `cls` has, its ancestors' first; a class redefines a name by declaring it again. */
export function constantsOf(cls: Function): Record<string, z.ZodType> {
  const chain: Constants[] = [];
  for (let c: any = cls; typeof c === 'function'; c = Object.getPrototypeOf(c)) {
    if (Object.hasOwn(c, declared)) chain.unshift((c as Declaring)[declared]!);
  }
  return Object.assign({}, ...chain);
}

/** The present names of the constants of `cls` by those that they had before (see `renamed`). */
export function oldConstantsOf(cls: Function): OldNames {
  return (cls as Declaring)[oldNames] ?? {};
}

/** Whether `value` is a class derived from Experiment. */
export function isExperimentClass(value: unknown): value is new () => Experiment {
  return typeof value === 'function' && value.prototype instanceof Experiment;
}

/** A constant has neither a value nor a default. */
export class MissingConstantError extends ConfigError {
  constructor(
    message: string,
    readonly constant: string,
    /** What would set it: `--set dataPath=PATH`. */
    readonly flag: string,
  ) {
    super(message);
  }
}

const unset = Symbol('unset');

/** The value of a constant without the check that it has one: `unset` when nothing sets it. */
function currentValue(state: State, schema: z.ZodType, name: string): unknown {
  if (state.values.has(name)) return state.values.get(name);
  const byDefault = schema.safeParse(undefined);
  return byDefault.success ? byDefault.data : unset;
}

function missing(cls: Function, name: string, schema: z.ZodType): MissingConstantError {
  const about = schema.description ? ` (${schema.description.replace(/\.$/, '')})` : '';
  const example = /path|dir|file/i.test(name) ? 'PATH' : 'VALUE';
  const flag = `--set ${name}=${example}`;
  return new MissingConstantError(
    `${cls.name} needs a value for its constant '${name}'${about}: it has no default. ` +
      `Set it with ${flag}, or in the class with \`override ${name} = …\`.`,
    name,
    flag,
  );
}

function unknownConstant(cls: Function, name: string, place: string | undefined): ConfigError {
  const names = Object.keys(constantsOf(cls));
  const list = names.sort().join(', ') || 'none';
  const hint = presentNameHint(oldConstantsOf(cls), name) || didYouMean(name, names);
  return new ConfigError(`${cls.name} has no constant '${name}'.${hint} Its constants are: ${list}.`, {
    path: name,
    place,
  });
}

/**
 * Base class of experiments. Constants are declared by `with`, overridden by class fields and by `--set`; the
 * methods read them through `this` and return configs.
 *
 * @throws ConfigError while constructing, if a class field names no declared constant or its value does not fit.
 */
export abstract class Experiment {
  constructor() {
    const cls = new.target;
    const schemas = constantsOf(cls);
    const state: State = { values: new Map(), overridden: new Map(), writes: [], reads: new Set() };
    for (const override of pending) {
      const { name, origin } = override;
      reporting(() => {
        if (!Object.hasOwn(schemas, name)) throw unknownConstant(cls, name, origin);
        state.values.set(name, parseOverride(cls, schemas[name]!, override));
        state.overridden.set(name, override);
      });
    }
    // Class fields are defined on what the base constructor returns, so a proxy sees each of them as it is set.
    const proxy = new Proxy(this, {
      get(target, key, receiver) {
        const schema = typeof key === 'string' && Object.hasOwn(schemas, key) ? schemas[key] : undefined;
        if (!schema) return Reflect.get(target, key, receiver);
        state.reads.add(key as string);
        const value = currentValue(state, schema, key as string);
        if (value === unset) throw missing(cls, key as string, schema);
        return value;
      },
      defineProperty(target, key, descriptor) {
        if (typeof key === 'symbol') return Reflect.defineProperty(target, key, descriptor);
        reporting(() => {
          if (!Object.hasOwn(schemas, key)) throw unknownConstant(cls, key, placeOfCaller());
          // A field without a value (`override dataPath!: string`) only restates the type.
          if (descriptor.value === undefined) return;
          const label = () => `${cls.name}.${key}`;
          const value = checkValue(schemas[key]!, descriptor.value, label, placeOfCaller);
          state.writes.push({ name: key });
          if (!state.overridden.has(key)) state.values.set(key, value);
        });
        return true;
      },
    });
    states.set(proxy, state);
    // biome-ignore lint/correctness/noConstructorReturn: the proxy is the instance; it checks what subclasses define.
    return proxy;
  }

  /** Declares constants: a class whose instances have them as properties. Every one should `.describe` itself. */
  static with<B extends ExperimentClass, const F extends Constants>(
    this: B,
    constants: F,
  ): WithConstants<B, F> {
    // biome-ignore lint/complexity/noThisInStatic: `this` is the class that is extended, which need not be Experiment.
    const Base = this as unknown as ExperimentClass;
    const inherited = { fields: constantsOf(Base), oldNames: oldConstantsOf(Base) };
    const names = withOldNames(`${Base.name}.with`, inherited, constants);
    abstract class Mixed extends Base {
      static readonly [declared]: Constants = constants;
      static readonly [oldNames]: OldNames = names;
    }
    Object.defineProperty(Mixed, 'name', { value: `${Base.name}.with` });
    return Mixed as unknown as WithConstants<B, F>;
  }

  /** The task: model, learner and training schedule. */
  task(): Config<SingleTask> {
    throw new ConfigError(`${this.constructor.name} does not say what to train: define task().`);
  }

  /** The inputs: those with isTraining true train, the others are evaluated. */
  datasets(): Config<BaseInput>[] {
    throw new ConfigError(`${this.constructor.name} does not say what to train on: define datasets().`);
  }

  /** The inputs whose examples are continued in decode modes. None by default. */
  decodeDatasets(): Config<BaseInput>[] {
    return [];
  }

  /** Checks that span several constants; throws where they don't fit together. Called before anything is built. */
  validate(): void {}
}

function parseOverride(cls: Function, schema: z.ZodType, override: ConstantOverride): unknown {
  const label = `${cls.name}.${override.name}`;
  if ('toDefault' in override) return defaultOf(schema, label, override.origin);
  try {
    // A text in a file is read as a flag's is: `1e-3`, which YAML takes for a string, is a number.
    const text = 'text' in override ? override.text : override.value;
    const value = typeof text === 'string' ? coerce(schema, text, label) : text;
    return checkValue(
      schema,
      value,
      () => label,
      () => override.origin,
    );
  } catch (error) {
    if (!(error instanceof ConfigError) || error.place !== undefined) throw error;
    throw new ConfigError(error.problem, { path: override.name, place: override.origin });
  }
}

function defaultOf(schema: z.ZodType, label: string, origin: string): unknown {
  const byDefault = schema.safeParse(undefined);
  if (byDefault.success) return byDefault.data;
  throw new ConfigError(`${label} has no default to go back to`, { place: origin });
}

/**
 * Makes an experiment with the constants of `overrides` set; a later one wins over an earlier one.
 *
 * @throws ConfigError or UsageError for an unknown constant or a value that does not fit.
 */
export function instantiate<T extends Experiment>(
  cls: new () => T,
  overrides: readonly ConstantOverride[] = [],
): T {
  const outer = pending;
  pending = overrides;
  try {
    return new cls();
  } finally {
    pending = outer;
  }
}

/**
 * All that is wrong with the constants that the class fields and `overrides` set, and those that nothing sets; other
 * errors of the fields are among them.
 */
export function constantProblems(
  cls: new () => Experiment,
  overrides: readonly ConstantOverride[] = [],
): unknown[] {
  const outer = gathered;
  const problems: unknown[] = [];
  gathered = problems;
  try {
    reporting(() => {
      append(problems, missingConstants(instantiate(cls, overrides)));
    });
  } finally {
    gathered = outer;
  }
  return problems;
}

/** The constants that class fields set and that nothing read so far. */
export function unreadConstants(experiment: Experiment): string[] {
  const { writes, overridden, reads } = states.get(experiment)!;
  const names = new Set(writes.map(({ name }) => name));
  return [...names].filter((name) => !reads.has(name) && !overridden.has(name));
}

/** The constants of the command line that nothing read so far, neither class fields nor methods. */
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
  readonly schema: z.ZodType;
}

/** The experiment's class and its ancestors below Experiment, base first, without the classes that `with` makes. */
function lineage(cls: Function): { cls: Function; declares: Constants }[] {
  const chain: { cls: Function; declares: Constants }[] = [];
  for (let c: any = cls; c !== Experiment && typeof c === 'function'; c = Object.getPrototypeOf(c)) {
    if (Object.hasOwn(c, declared)) {
      // Belongs to the named class that extends it, which the walk has just passed.
      const owner = chain[0];
      if (owner) owner.declares = { ...(c as Declaring)[declared], ...owner.declares };
    } else chain.unshift({ cls: c, declares: {} });
  }
  return chain;
}

/** Writes that constructing `cls` makes, in order; undefined where it can't be constructed by itself. */
function writesOf(cls: Function): readonly Write[] | undefined {
  try {
    return states.get(new (cls as new () => Experiment)())!.writes;
  } catch {
    return undefined;
  }
}

/**
 * Every constant with its effective value and the class that set it. Each ancestor is constructed by itself: the
 * writes that a class adds to those of its parent are its own fields.
 */
export function effectiveConstants(experiment: Experiment): EffectiveConstant[] {
  const state = states.get(experiment)!;
  const outer = pending;
  pending = [...state.overridden.values()];
  const setBy = new Map<string, string>();
  try {
    let seen = 0;
    for (const { cls, declares } of lineage(experiment.constructor)) {
      for (const name of Object.keys(declares)) setBy.set(name, cls.name);
      const writes = cls === experiment.constructor ? state.writes : writesOf(cls);
      if (!writes) continue;
      for (const { name } of writes.slice(seen)) setBy.set(name, cls.name);
      seen = writes.length;
    }
  } finally {
    pending = outer;
  }
  return Object.entries(constantsOf(experiment.constructor)).map(([name, schema]) => {
    const value = currentValue(state, schema, name);
    const flag = state.overridden.get(name);
    const by = flag ? flag.origin : (setBy.get(name) ?? experiment.constructor.name);
    return {
      name,
      overridden: flag !== undefined,
      value: value === unset ? undefined : value,
      setBy: by,
      schema,
    };
  });
}
