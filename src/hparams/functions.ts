/** @file Configs of plain functions, and of classes that know nothing of configs. */
import { checkFields, makeConfig } from './configurable.js';
import { ConfigError } from './errors.js';
import { DECLARED, registerClass } from './fields/classNames.js';
import { showValue } from './fields/describe.js';
import { FIELDS, MAKE } from './fields/fields.js';
import { OLD_NAMES, withOldNames } from './fields/renamed.js';
import type { NodeKind } from './nodes/node.js';
import { captureTrace, placeText } from './source.js';
import type { AbstractClass, ConfigurableClass, ConfigurableFunction, Fields, HpFrom } from './types.js';

/** Options of `configurable`. */
interface ConfigurableOptions {
  /** The name by which code and documents find the target, where the function itself has none. */
  readonly name?: string;
}

type AnyFunction = (hp: object) => unknown;
type AnyClass = new (hp: object) => object;

/**
 * Makes a function of one object a target of configs; `build` calls it with the hyperparameters, frozen, and gives its
 * result. Or a class whose constructor takes one object. The result is still the function, or a subclass of the class.
 *
 *     const cosine = configurable(
 *       function cosine(hp: { peak: number; steps: number }) { … },
 *       { peak: z.number(), steps: z.int() },
 *     );
 *     const schedule = build(cosine.config({ peak: 1, steps: 100 }));
 *
 * @throws ConfigError where there is no name, or a field cannot be a hyperparameter.
 */
export function configurable<F extends Fields, R>(
  target: (hp: HpFrom<F>) => R,
  fields: F,
  options?: ConfigurableOptions,
): ConfigurableFunction<F, R>;
export function configurable<F extends Fields, T>(
  target: new (hp: HpFrom<F>) => T,
  fields: F,
  options?: ConfigurableOptions,
): ConfigurableClass<F, T>;
export function configurable(
  target: AnyFunction | AnyClass,
  fields: Fields,
  options: ConfigurableOptions = {},
): unknown {
  const name = checkTarget(target, options.name);
  checkFields(`configurable(${name})`, fields);
  const oldNames = withOldNames(`configurable(${name})`, { fields: {}, oldNames: {} }, fields);
  const made = isClass(target) ? extending(target) : calling(target);
  Object.defineProperty(made, 'name', { value: name });
  const cls = Object.assign(made, {
    [FIELDS]: { ...fields },
    [OLD_NAMES]: oldNames,
    [DECLARED]: target,
    ...methods,
  }) as unknown as AbstractClass;
  // Documents may name it before the program has made a config of it.
  registerClass(cls);
  return cls;
}

/** `this` is the target, or a class that extends it. */
const methods = {
  config: configMethod('config'),
  partial: configMethod('partial'),
  argFactory: configMethod('argFactory'),
};

function configMethod(kind: NodeKind): (this: AbstractClass, values?: object) => unknown {
  return function (this: AbstractClass, values?: object) {
    return makeConfig(this, kind, values);
  };
}

function calling(target: AnyFunction): object {
  function call(hp: object): unknown {
    return target(hp);
  }
  return Object.assign(call, { [MAKE]: target });
}

function extending(target: AnyClass): object {
  return class extends target {
    static [MAKE](this: AnyClass, hp: object): object {
      return new this(hp);
    }
  };
}

function isClass(target: AnyFunction | AnyClass): target is AnyClass {
  const source = Function.prototype.toString.call(target);
  return /^class\b/.test(source) || (/\[native code\]\s*\}$/.test(source) && 'prototype' in target);
}

function checkTarget(target: unknown, given: string | undefined): string {
  const place = placeText(captureTrace());
  if (typeof target !== 'function') {
    throw new ConfigError(`configurable() takes a function or a class, got ${showValue(target)}.`, { place });
  }
  if (FIELDS in target) {
    throw new ConfigError(
      `${target.name} is configurable already. To add hyperparameters to a Configurable class, use ${target.name}.with.`,
      { place },
    );
  }
  const name = given ?? target.name;
  if (/^[A-Za-z_$][\w$]*$/.test(name)) return name;
  const which = name === '' ? 'A function without a name' : `The name '${name}'`;
  throw new ConfigError(
    `${which} cannot be found again by code and documents. Write configurable(function cosine(hp) { … }, fields), or configurable(fn, fields, { name: 'cosine' }).`,
    { place },
  );
}
