/** @file Types of configs: declared fields, values of configs, hyperparameters of instances. */
import type { z } from 'zod';
import type { Segment } from './walking/paths.js';

/** Key of the phantom property that carries the types of a class's config values. */
export const INPUTS: unique symbol = Symbol('luthier.inputs');
/** Key of the phantom property that carries the type that a config builds to. */
export const BUILT: unique symbol = Symbol('luthier.built');
/** Key of the phantom property that distinguishes configs from partials. */
const KIND: unique symbol = Symbol('luthier.kind');

/** Key of a phantom property of hyperparameters that `build` has checked. */
const CHECKED: unique symbol = Symbol('luthier.checked');
/** Argument of constructors: hyperparameters that `build` has checked; only `build` can make them. */
export type CheckedHp = { readonly [CHECKED]: true };

/** Instance type of configs: Configurable has it. */
export interface Instance {
  readonly [INPUTS]: {};
  readonly hp: {};
}

/** Key of the phantom property with the type of a tag's values. */
const VALUE_TYPE: unique symbol = Symbol('luthier.valueType');

/**
 * A label for fields of values of type `V`, made by `defineTag`. Fields that have a tag also count as tagged with its
 * parents.
 */
export interface Tag<V = any> {
  readonly [VALUE_TYPE]?: V;
  readonly name: string;
  readonly description: string;
  readonly parent: Tag | undefined;
  /** Whether this tag is `other` or descends from it. */
  isA(other: Tag): boolean;
  /**
   * A value with this tag, to be written to a field or into an array, a record or the like; typed as the value. A field
   * takes the value and the tag; without a value, only the tag. In a container the value keeps the tag for itself.
   */
  'new'(): never;
  'new'<W extends V>(value: W): W;
  toString(): string;
}

/** How a field's tags differ from those of its declaration; both lists are sorted by name. */
export interface TagChange {
  readonly added: readonly Tag[];
  readonly removed: readonly Tag[];
}

/** The changes of a node by field; never written to, so that copies share it. */
export type TagChanges = ReadonlyMap<string, TagChange>;

/** Hyperparameters by name, each a zod schema. */
export type Fields = Record<string, z.ZodType>;

/** Type of a read field: its default replaces undefined, so undefined drops out. */
type FieldValue<S extends z.ZodType> =
  undefined extends z.output<S> ? z.input<S> : Exclude<z.input<S>, undefined>;

/** Values that a config holds. */
export type ConfigValues<T> = T extends { readonly [INPUTS]: infer V } ? V : never;
/** Hyperparameters of an instance: the type of its `hp`. */
export type HpOf<T> = T extends { readonly hp: infer H } ? H : never;

/** Config of an instance of `T`: plain, writable fields. */
export type Config<T extends Instance = Instance> = {
  -readonly [K in keyof T[typeof INPUTS]]: T[typeof INPUTS][K];
} & { readonly [BUILT]: T; readonly [KIND]: 'config' };

/** Config that builds to a factory of `T`. */
export type PartialConfig<T extends Instance = Instance> = {
  -readonly [K in keyof T[typeof INPUTS]]: T[typeof INPUTS][K];
} & { readonly [BUILT]: Factory<T>; readonly [KIND]: 'partial' };

/** Result of a partial: each call makes a new `T`; values given to the call override the config's. */
export type Factory<T extends Instance> = (values?: Partial<HpOf<T>>) => T;

/** Types of the fields in `hp`. */
export type HpFrom<F extends Fields> = { readonly [K in keyof F]: z.output<F[K]> };

/** Key of the phantom property with the result type of a configurable function. */
const RESULT: unique symbol = Symbol('luthier.result');

/** Config of a call: of a function, or of a class made configurable by `configurable`. */
export type CallConfig<F extends Fields, R> = { -readonly [K in keyof F]: FieldValue<F[K]> } & {
  readonly [BUILT]: R;
  readonly [KIND]: 'config';
};

/** Config that builds to a function with some values filled in. */
export type CallPartial<F extends Fields, R> = { -readonly [K in keyof F]: FieldValue<F[K]> } & {
  readonly [BUILT]: (values?: Partial<HpFrom<F>>) => R;
  readonly [KIND]: 'partial';
};

/** Members that `configurable` adds to a function or a class. */
export interface Target<F extends Fields, R> {
  readonly [RESULT]: R;
  /** A config of a call with the given values. @throws ConfigError for all that is wrong with them. */
  config(values?: Partial<CallValues<F>>): CallConfig<F, R>;
  /** A config that builds to a function: each call takes the values it leaves open; values of the call win. */
  partial(values?: Partial<CallValues<F>>): CallPartial<F, R>;
  /** A config, held by a partial, that is built again for each call of that partial. */
  argFactory(values?: Partial<CallValues<F>>): CallConfig<F, R>;
}

type CallValues<F extends Fields> = { [K in keyof F]: FieldValue<F[K]> };

/** A function that configs describe calls of; called directly, it is the function itself. */
export type ConfigurableFunction<F extends Fields, R> = Target<F, R> & ((hp: HpFrom<F>) => R);

/** A class that does not extend Configurable, whose constructor takes one object of hyperparameters. */
export type ConfigurableClass<F extends Fields, T> = Target<F, T> & (new (hp: HpFrom<F>) => T);

/** Any config, of whatever class and kind. */
export type AnyConfig = { readonly [BUILT]: any; readonly [KIND]: 'config' | 'partial' };

/** Any config that builds a `T`, of whatever class, function and kind. */
export type ConfigBuilding<T> = AnyConfig & { readonly [BUILT]: T };

/** The names of a config's fields. */
export type NameIn<C> = Exclude<keyof C, typeof BUILT | typeof KIND>;

/** Result of `build` for the config `C`. */
type BuiltOf<C> = C extends { readonly [BUILT]: infer T } ? T : never;

/** Containers that `build` looks into. */
export type BuildableContainer =
  | readonly unknown[]
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | { readonly [key: string]: unknown };

/** Result of `build` for `T`, with configs built also inside arrays, records, Maps and Sets. */
export type Built<T> = T extends { readonly [BUILT]: infer B }
  ? B
  : T extends ReadonlyMap<infer K, infer V>
    ? Map<K, Built<V>>
    : T extends ReadonlySet<infer V>
      ? Set<Built<V>>
      : T extends readonly unknown[] | { readonly [key: string]: unknown }
        ? { -readonly [K in keyof T]: Built<T[K]> }
        : T;

/** Config of the class `Cls`. */
export type ConfigOf<Cls extends AbstractClass> = Config<InstanceType<Cls>>;

export type AbstractClass<T extends Instance = Instance> = abstract new (hp: any) => T;
export type ConcreteClass<T extends Instance = Instance> = new (hp: any) => T;

/** Target of a config: a class, or a function or class that went through `configurable`. */
export type AnyTarget = AbstractClass | Target<any, any>;

/** Config of a target. */
export type ConfigFor<X> =
  X extends AbstractClass<infer T>
    ? Config<T>
    : X extends Target<infer F, infer R>
      ? CallConfig<F, R>
      : never;

/** Config of the kind of `C` for the target `X`. */
export type ConfigLike<C extends AnyConfig, X> = C extends { readonly [KIND]: 'partial' }
  ? AsPartial<ConfigFor<X>>
  : ConfigFor<X>;

/** The config `C` as a partial. */
export type AsPartial<C extends AnyConfig> = C extends { readonly [KIND]: 'partial' }
  ? C
  : BuiltOf<C> extends Instance
    ? PartialConfig<BuiltOf<C>>
    : Pick<C, NameIn<C>> & {
        readonly [BUILT]: (values?: Partial<Pick<C, NameIn<C>>>) => BuiltOf<C>;
        readonly [KIND]: 'partial';
      };

/** The partial `C` as a config. */
export type AsConfig<C extends AnyConfig> = C extends {
  readonly [KIND]: 'partial';
  readonly [BUILT]: (...values: never[]) => infer T;
}
  ? Pick<C, NameIn<C>> & { readonly [BUILT]: T; readonly [KIND]: 'config' }
  : C;

/** Argument of rules: the values of a class that extends `B` by `F`, as its configs hold them. */
export type RuleValues<B extends AbstractClass, F extends Fields> = {
  readonly [K in keyof F]: FieldValue<F[K]>;
} & Readonly<Omit<ConfigValues<InstanceType<B>>, keyof F>>;

/** Rules across fields: refinements of the schema of a config's values, `(schema) => schema.refine(…)`. */
export type Rules<V> = (schema: z.ZodType<V>) => z.ZodType;

/** Reports a problem of a config, at a path inside it: a field's name, `list[0]`, or steps. */
export type Report = (message: string, path?: string | readonly Segment[]) => void;

/** Result of `Base.with(fields)`: a class to extend, whose instances have the fields in `hp`. */
export type WithFields<B extends AbstractClass, F extends Fields> = (abstract new (
  hp: CheckedHp,
) => InstanceType<B> & {
  readonly hp: HpFrom<F>;
  readonly [INPUTS]: { [K in keyof F]: FieldValue<F[K]> };
}) &
  Omit<B, 'prototype'>;
