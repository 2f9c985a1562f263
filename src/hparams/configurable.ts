/** @file The base of every class that configs describe. */
// biome-ignore-all lint/complexity/noThisInStatic: `this` is the subclass that the method is called on; that is the point.
import { z } from 'zod';
import { RULES, type Rule, rulesFrom } from './building/rules.js';
import { assignValues } from './editing/edit.js';
import { ConfigError, refusePromise } from './errors.js';
import { FIELDS, infoOf, MAKE } from './fields/fields.js';
import { isFieldName, OLD_NAMES, type OldNames, withOldNames } from './fields/renamed.js';
import { newConfig } from './nodes/config.js';
import { refusedKeys } from './nodes/containers.js';
import type { NodeKind } from './nodes/node.js';
import { origin } from './nodes/record.js';
import { captureTrace, placeText } from './source.js';
import type {
  AbstractClass,
  AnyConfig,
  CheckedHp,
  ConcreteClass,
  Config,
  ConfigValues,
  Fields,
  INPUTS,
  PartialConfig,
  Report,
  Rules,
  RuleValues,
  WithFields,
} from './types.js';

/**
 * A class whose instances are built from configs.
 *
 *     class Linear extends Configurable.with({ inputDims: z.int().positive() }) {}
 *     const config = Linear.config({ inputDims: 4 });
 *     const linear = build(config); // linear.hp.inputDims === 4
 */
export class Configurable {
  static readonly [FIELDS]: Fields = {};
  static readonly [OLD_NAMES]: OldNames = {};
  static readonly [RULES]: readonly Rule[] = [];
  /**
   * That a class is there to be extended, and nothing is built as it: an abstract class says
   * `static override readonly isAbstract = true`. TypeScript's `abstract` is gone when the program runs, and files and
   * flags name classes. The classes that extend it don't inherit it.
   */
  static readonly isAbstract: boolean = true;
  static [MAKE](hp: object): Configurable {
    const made = new this(hp as CheckedHp);
    const done: unknown = made.setup();
    refusePromise(done, `${this.name}.setup()`, 'the instance is used when it returns');
    return made;
  }
  declare readonly [INPUTS]: {};
  /** The hyperparameters, every one with its value, frozen. */
  readonly hp: {};

  /** Called by `build`, which has checked `hp`. @throws ConfigError where anything else calls it. */
  constructor(hp: CheckedHp) {
    // `build` passes frozen values.
    if (hp === undefined || !Object.isFrozen(hp)) {
      const { name } = new.target;
      throw new ConfigError(`new ${name}(…) bypasses all checks: use build(${name}.config({ … })).`, {
        place: placeText(captureTrace()),
      });
    }
    this.hp = hp;
  }

  /** Called by `build` once the instance is complete, the fields of its subclasses included. */
  protected setup(): void {}

  /**
   * Checks across fields that refinements cannot express; `validate` and `build` call it. The hooks of all base
   * classes run, once each: a hook does not call that of its base.
   */
  declare static validate?: (config: any, report: Report) => void;

  /**
   * A base class with more hyperparameters: those of this class and `fields`, which win where names are equal. `rules`
   * hold between the fields, besides those of this class:
   *
   *     with({ low: z.number(), high: z.number() }, (schema) =>
   *       schema.refine(({ low, high }) => low < high, { path: ['low'], error: 'must be below high' }))
   *
   * A rule is not run where a field that it reads is not set.
   */
  static with<B extends AbstractClass, F extends Fields>(
    this: B,
    fields: F,
    rules?: Rules<RuleValues<B, F>>,
  ): WithFields<B, F> {
    checkFields(`${this.name}.with`, fields);
    const added = rulesFrom(`${this.name}.with`, rules as ((schema: z.ZodType) => z.ZodType) | undefined);
    const { [FIELDS]: inherited, [OLD_NAMES]: inheritedNames } = this as unknown as {
      [FIELDS]: Fields;
      [OLD_NAMES]: OldNames;
    };
    const oldNames = withOldNames(
      `${this.name}.with`,
      { fields: inherited, oldNames: inheritedNames },
      fields,
    );
    const inheritedRules = (this as unknown as { [RULES]: readonly Rule[] })[RULES];
    const Base = this as unknown as ConcreteClass;
    abstract class Extended extends Base {
      static readonly isAbstract = true;
      static readonly [FIELDS]: Fields = { ...inherited, ...fields };
      static readonly [OLD_NAMES]: OldNames = oldNames;
      static readonly [RULES]: readonly Rule[] = [...inheritedRules, ...added];
    }
    // Until a subclass has its own name, errors name the extended class.
    Object.defineProperty(Extended, 'name', { value: this.name });
    return Extended as unknown as WithFields<B, F>;
  }

  /**
   * A config of this class with the given values; the others have their defaults.
   *
   * @throws ConfigError for names that do not exist and values that do not fit, all at once.
   */
  static config<C extends ConcreteClass>(
    this: C,
    values?: Partial<ConfigValues<InstanceType<C>>>,
  ): Config<InstanceType<C>> {
    return makeConfig(this, 'config', values) as unknown as Config<InstanceType<C>>;
  }

  /** A config that builds to a factory: each call makes a new instance, values given to the call win. */
  static partial<C extends ConcreteClass>(
    this: C,
    values?: Partial<ConfigValues<InstanceType<C>>>,
  ): PartialConfig<InstanceType<C>> {
    return makeConfig(this, 'partial', values) as unknown as PartialConfig<InstanceType<C>>;
  }

  /** A config, held by a partial, that is built again for each call of that partial's factory. */
  static argFactory<C extends ConcreteClass>(
    this: C,
    values?: Partial<ConfigValues<InstanceType<C>>>,
  ): Config<InstanceType<C>> {
    return makeConfig(this, 'argFactory', values) as unknown as Config<InstanceType<C>>;
  }
}

/** A config of `cls` with `values`, written by the caller of the function that calls this. */
export function makeConfig(cls: AbstractClass, kind: NodeKind, values: object | undefined): AnyConfig {
  const config = newConfig(infoOf(cls), kind);
  if (values !== undefined) {
    // Just enough frames for the caller of config(), four functions up: each costs time.
    assignValues(config, values, `${cls.name}.${kind}()`, origin(5));
  }
  return config;
}

/** @throws ConfigError that begins with `where`, for names and schemas that cannot be hyperparameters. */
export function checkFields(where: string, fields: Fields): void {
  for (const [name, field] of Object.entries(fields)) checkField(where, name, field);
}

function checkField(where: string, name: string, field: unknown): void {
  let problem: string | undefined;
  if (refusedKeys.has(name)) problem = 'is reserved by JavaScript';
  else if (!isFieldName(name)) problem = 'is not an identifier, so it could not be named in a path';
  else if (!(field instanceof z.ZodType)) problem = 'is not a zod schema, such as z.int().default(1)';
  if (problem === undefined) return;
  throw new ConfigError(`${where}: the hyperparameter '${name}' ${problem}.`, {
    place: placeText(captureTrace()),
  });
}
