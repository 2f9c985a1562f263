/** @file Small questions about a config, and small edits, as functions: a config's own names are all hyperparameters. */
import { assignValues } from './assign.js';
import { origin } from './config.js';
import { showValue } from './describe.js';
import { ConfigError } from './errors.js';
import { type ConfigNode, deleteField, fieldOf, isExplicit, nodeOf } from './node.js';
import type { AnyConfig, BUILT, KIND } from './types.js';

type NameIn<C> = Exclude<keyof C, typeof BUILT | typeof KIND>;

/** Whether `value` is a config (or a partial). */
export function isConfig(value: unknown): value is AnyConfig {
  return nodeOf(value) !== undefined;
}

/** The class that `config` describes an instance of. */
export function classOf<T>(config: { readonly [BUILT]: T }): abstract new (...values: never[]) => T {
  return requireNode(config, 'classOf').info.cls as unknown as abstract new (
    ...values: never[]
  ) => T;
}

/** Whether the field was set, rather than showing its default. */
export function isSet<C extends AnyConfig>(config: C, name: NameIn<C>): boolean {
  const node = requireNode(config, 'isSet');
  return isExplicit(node, fieldOf(node, String(name), origin()).name);
}

/** Brings the field's default back, as `delete config.name` does, which TypeScript allows for optional fields only. */
export function unset<C extends AnyConfig>(config: C, name: NameIn<C>): void {
  deleteField(requireNode(config, 'unset'), String(name), origin());
}

/** Sets several fields. @throws ConfigError with everything that is wrong; fields that were right are set. */
export function assign<C extends AnyConfig>(config: C, values: Partial<Pick<C, NameIn<C>>>): C {
  requireNode(config, 'assign');
  assignValues(config, values, 'assign()', origin());
  return config;
}

function requireNode(config: unknown, operation: string): ConfigNode {
  const node = nodeOf(config);
  if (node === undefined) throw new ConfigError(`${operation}() takes a config, got ${showValue(config)}.`);
  return node;
}
