/** @file Small questions about a config, and small edits, as functions: a config's own names are all hyperparameters. */
import { assignValues } from './editing/assign.js';
import { origin } from './nodes/config.js';
import { deleteField, fieldOf, isExplicit, nodeOf, requireNode } from './nodes/node.js';
import type { AnyConfig, BUILT, NameIn } from './types.js';

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
