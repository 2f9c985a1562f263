/** @file Experiment: a class whose constants have schemas and whose methods return configs (Pax's base_experiment.py). */
import type { z } from 'zod';
import { type Config, ConfigError, type OldNames, withOldNames } from '../hparams/index.js';
import type { BaseInput, BaseInputSpecsProvider } from '../inputs/index.js';
import type { Search } from '../search/index.js';
import { linesBelow } from '../system/text/index.js';
import type { BaseExecutor, BaseProgram, SingleTask } from '../tasks/index.js';
import { checkValue, placeOfCaller } from './checkConstant.js';
import {
  Computed,
  type Constants,
  constantsOf,
  currentValue,
  declared,
  missing,
  oldConstantsOf,
  oldNames,
  parseOverride,
  presets,
  type State,
  states,
  unknownConstant,
  unset,
} from './constants.js';
import { pendingOverrides, reporting } from './instantiate.js';
import type { MachineRule } from './machineRule.js';

type Values<F extends Constants> = { readonly [K in keyof F]: z.infer<F[K]> };

/** Key of the phantom property that carries the types of a class's constants. */
const CONSTANTS: unique symbol = Symbol('luthier.constants');

/** Argument of `preset`: values of constants, or functions of the experiment that compute them. */
type Preset<T extends Experiment> = {
  readonly [K in keyof T[typeof CONSTANTS]]?:
    | T[typeof CONSTANTS][K]
    | ((experiment: T) => T[typeof CONSTANTS][K]);
};

/** A class of experiments, possibly abstract. */
export type ExperimentClass<T extends Experiment = Experiment> = abstract new () => T;

/** A class made by `with`, whose instances have the constants as properties. */
type WithConstants<B extends ExperimentClass, F extends Constants> = (abstract new () => InstanceType<B> &
  Values<F> & { readonly [CONSTANTS]: Values<F> }) &
  Omit<B, 'prototype'>;

/**
 * Base class of experiments. Constants are declared by `with`, and set by `preset` and `--set`; the methods read them
 * through `this` and return configs. Class fields (`override numLayers = 4`) set constants too, an older form:
 * TypeScript infers the field's type from the value, which may exclude a subclass's.
 *
 * @throws ConfigError while constructing, if a class field names no declared constant or has an invalid value.
 */
export abstract class Experiment {
  declare readonly [CONSTANTS]: {};

  constructor() {
    const cls = new.target;
    const schemas = constantsOf(cls);
    const state: State = {
      values: new Map(),
      computing: [],
      overridden: new Map(),
      writes: [],
      recentReads: new Map(),
      reads: new Set(),
    };
    for (const override of pendingOverrides()) {
      const { name, origin } = override;
      reporting(() => {
        if (!Object.hasOwn(schemas, name)) throw unknownConstant(cls, name, origin);
        state.values.set(name, parseOverride(cls, schemas[name]!, override));
        state.overridden.set(name, override);
      });
    }
    // JavaScript defines class fields on the object that the base constructor returns: a proxy sees each of them.
    const proxy = new Proxy(this, {
      get(target, key, receiver) {
        const schema = typeof key === 'string' && Object.hasOwn(schemas, key) ? schemas[key] : undefined;
        if (!schema) return Reflect.get(target, key, receiver);
        state.reads.add(key as string);
        const value = currentValue(state, schema, key as string);
        if (value === unset) throw missing(cls, key as string, schema);
        if (state.computing.length === 0) state.recentReads.set(key as string, value);
        return value;
      },
      defineProperty(target, key, descriptor) {
        if (typeof key === 'symbol') return Reflect.defineProperty(target, key, descriptor);
        reporting(() => {
          if (!Object.hasOwn(schemas, key)) throw unknownConstant(cls, key, placeOfCaller());
          // A field without a value (`override dataPath!: string`) only restates the type.
          if (descriptor.value === undefined) return;
          const label = () => `${cls.name}.${key}`;
          const value =
            descriptor.value instanceof Computed
              ? descriptor.value
              : checkValue(schemas[key]!, descriptor.value, label, placeOfCaller);
          state.writes.push({ name: key, reads: new Map(state.recentReads) });
          state.recentReads.clear();
          if (!state.overridden.has(key)) state.values.set(key, value);
        });
        return true;
      },
    });
    states.set(proxy, state);
    // biome-ignore lint/correctness/noConstructorReturn: the proxy is the instance; it checks subclasses' fields.
    return proxy;
  }

  /** Declares constants, which become properties of instances. Each should have a `.describe`. */
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

  /**
   * Makes a base class with values for some constants: `class Small extends Lm.preset({ numLayers: 4 }) {}`. A value
   * may be a function of the experiment, `({ modelDims }) => 4 * modelDims`. It is computed when it is read, so it follows
   * this class, subclasses and `--set`, whichever sets modelDims. Under its own name it sees the base class's value.
   *
   * @throws ConfigError for an unknown constant or an invalid value.
   */
  static preset<B extends ExperimentClass>(this: B, values: Preset<InstanceType<B>>): B {
    // biome-ignore lint/complexity/noThisInStatic: `this` is the class that is extended.
    const Base = this as unknown as ExperimentClass;
    const place = placeOfCaller();
    checkPreset(Base, values, place);
    abstract class WithPreset extends Base {
      static readonly [presets] = true;
      constructor() {
        super();
        const schemas = constantsOf(new.target);
        const inherited = states.get(this)!.values;
        for (const [name, given] of Object.entries(values)) {
          const checked = (value: unknown) =>
            checkValue(
              schemas[name]!,
              value,
              () => `${new.target.name}.${name}`,
              () => place,
            );
          const before = inherited.has(name) ? inherited.get(name) : unset;
          reporting(() => {
            const value =
              typeof given === 'function'
                ? new Computed(name, () => checked(given(this)), before, place)
                : checked(given);
            Object.defineProperty(this, name, {
              value,
              configurable: true,
              enumerable: true,
              writable: true,
            });
          });
        }
      }
    }
    Object.defineProperty(WithPreset, 'name', { value: `${Base.name}.preset` });
    return WithPreset as unknown as B;
  }

  /** The task: model, learner and training schedule. */
  task(): Config<SingleTask> {
    throw new ConfigError(`${this.constructor.name} does not say what to train: define task().`);
  }

  /** The inputs: those with isTraining true train, others are evaluated. */
  datasets(): Config<BaseInput>[] {
    throw new ConfigError(`${this.constructor.name} does not say what to train on: define datasets().`);
  }

  /** Inputs whose examples the decode modes continue. None by default. */
  decodeDatasets(): Config<BaseInput>[] {
    return [];
  }

  /** What `--study` searches: a space, an algorithm, a reward. None by default. */
  search(): Config<Search> | null {
    return null;
  }

  /** Programs in the place of an evaluation of each of `datasets()` that does not train; null: these evaluations. */
  evalPrograms(): Config<BaseProgram>[] | null {
    return null;
  }

  /** Programs in the place of a decode of each of `decodeDatasets()`; null: these decodes. */
  decodePrograms(): Config<BaseProgram>[] | null {
    return null;
  }

  /** The order of steps and programs in training; null: programs that are due, then steps, in turns. */
  executor(): Config<BaseExecutor> | null {
    return null;
  }

  /** Specs that the first batch of training is compared with before the first step; null: none. */
  inputSpecsProvider(): Config<BaseInputSpecsProvider> | null {
    return null;
  }

  /** Settings by machine, of which the first rule that fits is applied before flags. None by default. */
  machineRules(): Config<MachineRule>[] {
    return [];
  }

  /** Experiments that a run of this one consists of, by name; the default is itself alone, under the empty name. */
  static subExperiments(): Readonly<Record<string, ExperimentClass>> {
    // biome-ignore lint/complexity/noThisInStatic: `this` is the experiment's class.
    return { '': this };
  }

  /** Checks constraints among constants; throws if they are violated. Called before anything is built. */
  validate(): void {}
}

/** Whether `value` is a class derived from Experiment. */
export function isExperimentClass(value: unknown): value is new () => Experiment {
  return typeof value === 'function' && value.prototype instanceof Experiment;
}

/** @throws ConfigError with all errors in a preset's values. */
function checkPreset(Base: Function, values: object, place: string | undefined): void {
  const schemas = constantsOf(Base);
  const problems: ConfigError[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (!Object.hasOwn(schemas, name)) problems.push(unknownConstant(Base, name, place));
    else if (typeof value !== 'function') {
      try {
        checkValue(
          schemas[name]!,
          value,
          () => `${Base.name}.preset: ${name}`,
          () => place,
        );
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        problems.push(error);
      }
    }
  }
  if (problems.length === 1) throw problems[0]!;
  if (problems.length === 0) return;
  const list = linesBelow(problems.map(({ problem }) => problem));
  throw new ConfigError(`${Base.name}.preset: ${problems.length} problems:${list}\n`, { place });
}
