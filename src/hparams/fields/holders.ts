/** @file Fields that hold configs: templates, instances and factories. */
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
  Factory,
  Fields,
  HpFrom,
  Instance,
  PartialConfig,
  Target,
} from '../types.js';
import { registerClass } from './classNames.js';
import { FIELDS } from './fields.js';
import { type Holder, markHolder, markItems, parse } from './schema.js';

/** What the build under way has made of a config; set by the build alone. */
let built: ((config: AnyConfig) => unknown) | undefined;

/** Within `action`, schemas of instances and factories give what `resolve` says for each config. */
export function withBuilt<R>(resolve: (config: AnyConfig) => unknown, action: () => R): R {
  const before = built;
  built = resolve;
  try {
    return action();
  } finally {
    built = before;
  }
}

/** Whether a field of this holder takes the config: of its class or a subclass, and a partial where factories are held. */
function fits({ info, kind }: ConfigNode, holder: Pick<Holder, 'kind' | 'cls'>): boolean {
  if ((kind === 'partial') !== (holder.kind === 'factory')) return false;
  return info.cls === holder.cls || info.cls.prototype instanceof holder.cls;
}

function configSchema(
  cls: AbstractClass,
  kind: Holder['kind'],
  makeDefault: (() => AnyConfig) | undefined,
): z.ZodType {
  if (typeof cls !== 'function' || !(FIELDS in cls)) {
    throw new ConfigError(
      `${kind}() takes a class that extends Configurable, or what configurable() gives; is it declared further down in the file?`,
    );
  }
  // Its fields are not looked into yet: they may lead back here.
  registerClass(cls);
  const isFit = (value: unknown): boolean => {
    const node = nodeOf(value);
    return node !== undefined && fits(node, { kind, cls });
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
  const holder: Holder = { kind, cls, makeDefault: checked };
  const schema = markHolder(z.custom(isFit), holder);
  return kind === 'sub'
    ? schema
    : markHolder(
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
