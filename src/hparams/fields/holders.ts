/** @file Fields that hold configs: templates, instances, factories, and configs of any class by the type they build. */
import { z } from 'zod';

import { ConfigError } from '../errors.js';
import { type ConfigNode, nodeOf } from '../nodes/configNode.js';
import { handledParts, handlerOf } from '../nodes/containerTypes.js';
import type {
  AbstractClass,
  AnyConfig,
  CallConfig,
  CallPartial,
  ConcreteClass,
  Config,
  ConfigBuilding,
  Factory,
  Fields,
  HpFrom,
  Instance,
  PartialConfig,
  Target,
} from '../types.js';
import { DECLARED, registerClass } from './classNames.js';
import { withArticle } from './describe.js';
import { FIELDS, MAKE } from './fields.js';
import { type Holder, markHolder, markItems, parse } from './schema.js';

/** Gives a config's result in the current build; set by the build alone. */
let built: ((config: AnyConfig) => unknown) | undefined;

/** Runs `action` with schemas of instances and factories that take each config's result from `resolve`. */
export function withBuilt<R>(resolve: (config: AnyConfig) => unknown, action: () => R): R {
  const before = built;
  built = resolve;
  try {
    return action();
  } finally {
    built = before;
  }
}

/** Whether a field of this holder takes the config: of a class that it takes, and a partial where factories are held. */
function fits({ info, kind }: ConfigNode, holder: Pick<Holder, 'kind' | 'takes'>): boolean {
  return (kind === 'partial') === (holder.kind === 'factory') && holder.takes(info.cls);
}

function configSchema(
  cls: AbstractClass,
  kind: Holder['kind'],
  makeDefault: (() => AnyConfig) | undefined,
): z.ZodType {
  if (typeof cls !== 'function' || !(FIELDS in cls)) {
    throw new ConfigError(
      `${kind}() takes a class that extends Configurable, or a configurable() target; is it declared further down in the file?`,
    );
  }
  // Its fields are not looked into yet: they may lead back here.
  registerClass(cls);
  const takes = (given: AbstractClass): boolean => given === cls || given.prototype instanceof cls;
  const isFit = (value: unknown): boolean => {
    const node = nodeOf(value);
    return node !== undefined && fits(node, { kind, takes });
  };
  const checked =
    makeDefault &&
    ((): AnyConfig => {
      const made = makeDefault();
      if (isFit(made)) return made;
      throw new ConfigError(
        `The default of a ${kind}(${cls.name}) field is not a config of ${cls.name} or its subclasses.`,
      );
    });
  const configs = `${withArticle(cls.name)} ${kind === 'factory' ? 'partial' : 'config'}`;
  const holder: Holder = { kind, cls, takes, configs, makeDefault: checked };
  const schema = markHolder(z.custom(isFit), holder);
  return kind === 'sub' ? schema : buildingSchema(schema, holder);
}

/** `schema`, of configs, whose parsed value is the config's result in the current build. */
function buildingSchema(schema: z.ZodType, holder: Holder): z.ZodType {
  return markHolder(
    schema.transform((config) => (built ? built(config as AnyConfig) : config)),
    holder,
  );
}

type ConfigMaker<T extends Instance> = (() => Config<T>) | null;

function configMaker(
  cls: AbstractClass,
  given: (() => AnyConfig) | null | undefined,
): (() => AnyConfig) | undefined {
  if (given === null) return undefined;
  return given ?? (() => (cls as unknown as { config(): AnyConfig }).config());
}

/**
 * A field that holds a template: a config of `cls` or a subclass, which the owner builds itself (Pax's template_field).
 * The default is `cls.config()`; an abstract class needs one given, and null means that the field must be set.
 */
export function sub<T extends Instance>(
  cls: ConcreteClass<T>,
  makeDefault?: ConfigMaker<T>,
): z.ZodType<Config<T>, Config<T>>;
export function sub<T extends Instance>(
  cls: AbstractClass<T>,
  makeDefault: ConfigMaker<T>,
): z.ZodType<Config<T>, Config<T>>;
export function sub<F extends Fields, R>(
  target: Target<F, R>,
  makeDefault?: (() => CallConfig<F, R>) | null,
): z.ZodType<CallConfig<F, R>, CallConfig<F, R>>;
export function sub(cls: any, makeDefault?: (() => AnyConfig) | null): z.ZodType {
  return configSchema(cls, 'sub', configMaker(cls, makeDefault));
}

/**
 * A field whose config `build` builds: `hp.x` is the instance (Pax's instance_field). One config in two fields is one
 * instance. Defaults are as in `sub`.
 */
export function instance<T extends Instance>(
  cls: ConcreteClass<T>,
  makeDefault?: ConfigMaker<T>,
): z.ZodType<T, Config<T>>;
export function instance<T extends Instance>(
  cls: AbstractClass<T>,
  makeDefault: ConfigMaker<T>,
): z.ZodType<T, Config<T>>;
export function instance<F extends Fields, R>(
  target: Target<F, R>,
  makeDefault?: (() => CallConfig<F, R>) | null,
): z.ZodType<R, CallConfig<F, R>>;
export function instance(cls: any, makeDefault?: (() => AnyConfig) | null): z.ZodType {
  return configSchema(cls, 'instance', configMaker(cls, makeDefault));
}

/**
 * A field that holds instances of a container class (see `registerContainer`), whose parts `items` checks; configs in
 * them are built as `items` says: `container(Stack, instance(Layer))`.
 */
export function container<I extends object, O extends object = I>(
  cls: abstract new (...values: any[]) => I,
  items: z.ZodType,
): z.ZodType<NoInfer<O>, I> {
  const fits = (value: unknown): boolean =>
    handlerOf(value) !== undefined && Object.getPrototypeOf(value) === cls.prototype;
  const schema = z.custom<I>(fits, `expected a ${cls.name}`).transform((given, context) => {
    const results = handledParts(given, handlerOf(given)!).map(([segment, part]) => {
      const result = parse(items, part);
      const key = typeof segment === 'object' ? segment.key : segment;
      for (const issue of result.error?.issues ?? [])
        context.issues.push({ ...issue, path: [key, ...issue.path] } as never);
      return result.data;
    });
    return context.issues.length > 0 ? z.NEVER : (handlerOf(given)!.unflatten(results, given) as O);
  });
  return markItems(schema, items) as unknown as z.ZodType<O, I>;
}

/** A field that holds a partial of `cls`: `hp.x` is a function that makes instances, or results of a function. */
export function factory<T extends Instance>(
  cls: AbstractClass<T>,
  makeDefault?: (() => PartialConfig<T>) | null,
): z.ZodType<Factory<T>, PartialConfig<T>>;
export function factory<F extends Fields, R>(
  target: Target<F, R>,
  makeDefault?: (() => CallPartial<F, R>) | null,
): z.ZodType<(values?: Partial<HpFrom<F>>) => R, CallPartial<F, R>>;
export function factory(cls: any, makeDefault: (() => AnyConfig) | null = null): z.ZodType {
  return configSchema(cls, 'factory', makeDefault ?? undefined);
}

/**
 * A field for any config that builds a `T`, whatever its class or function:
 *
 * activation: builds<(x: Tensor) => Tensor>('a function of a tensor', (made) => typeof made === 'function')
 *
 * The type checker compares the built type with `T`; `is` checks the built value. Without `makeDefault` the field must
 * be set.
 *
 * @param expected noun phrase of a `T`, for messages.
 */
export function builds<T>(
  expected: string,
  is: (made: unknown) => boolean,
  makeDefault?: () => ConfigBuilding<T>,
): z.ZodType<T, ConfigBuilding<T>> {
  const configs = `a config that builds ${expected}`;
  const isConfig = (value: unknown): boolean => nodeOf(value) !== undefined;
  const holder: Holder = { kind: 'instance', cls: undefined, takes: () => true, configs, makeDefault };
  const schema = buildingSchema(markHolder(z.custom(isConfig), holder), holder);
  // Before the build, the value is the config itself.
  return schema.refine((made) => isConfig(made) || is(made), {
    error: `expected ${configs}`,
  }) as z.ZodType<T, ConfigBuilding<T>>;
}

/**
 * A field for a template like `sub`, of any class or function that builds a `T`. The type checker compares the built
 * type with `T`; without `makeDefault` the field must be set.
 *
 * @param expected noun phrase of a `T`, for messages.
 * @param accepts whether instances of the class are `T`s; undefined stands for a function, whose owner checks its
 * result.
 */
export function template<T>(
  expected: string,
  accepts: (cls: AbstractClass | undefined) => boolean,
  makeDefault?: () => ConfigBuilding<T>,
): z.ZodType<ConfigBuilding<T>, ConfigBuilding<T>> {
  const takes = (cls: AbstractClass): boolean => accepts(isFunctionTarget(cls) ? undefined : cls);
  const holder: Holder = {
    kind: 'sub',
    cls: undefined,
    takes,
    configs: `a config that builds ${expected}`,
    makeDefault,
  };
  const isFit = (value: unknown): boolean => {
    const node = nodeOf(value);
    return node !== undefined && fits(node, holder);
  };
  return markHolder(z.custom<ConfigBuilding<T>>(isFit), holder);
}

/** Whether configs of `cls` describe calls of a function, not instances of a class. */
function isFunctionTarget(cls: AbstractClass): boolean {
  const { [MAKE]: make, [DECLARED]: declared } = cls as { [MAKE]?: unknown; [DECLARED]?: unknown };
  return make !== undefined && make === declared;
}
