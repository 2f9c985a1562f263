/** @file Building: configs to instances, factories and results of functions. */
import { freeze } from 'immer';
import { didYouMean } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { parseWith, problemOf } from '../fields/check.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { withBuilt } from '../fields/holders.js';
import { carriedBy, isCarrier, withoutCarriers } from '../nodes/carriers.js';
import { limitCreated } from '../nodes/configNode.js';
import { isContainer, mapContainers, partsOf, rebuild } from '../nodes/containers.js';
import { nodesIn } from '../nodes/held.js';
import { ConfigNode, freezeExisting, hasValue, nodeOf, rawValue } from '../nodes/node.js';
import type { AnyConfig, BUILT, BuildableContainer, Built } from '../types.js';
import { traverse } from '../walking/states.js';
import { type Edge, walk } from '../walking/walk.js';
import { failedBuild, placeOfValue } from './buildErrors.js';
import { type BuildInProgress, mostConfigs, sized } from './buildSize.js';
import { checkRules } from './rules.js';
import { builtEdges, examine } from './validate.js';
import { type Violation, violationError } from './violations.js';

/** Results of the outermost `build` in progress. */
interface Session {
  readonly built: Map<ConfigNode, unknown>;
  /** Gives the result of a config. */
  readonly resolve: Resolve;
  /** The configs whose instances are being made, the innermost last. */
  readonly building: BuildInProgress[];
  readonly checked: Set<ConfigNode>;
}

let active: Session | undefined;

/**
 * Builds a config: first the configs in its `instance` fields, each config object once, however often it is used; then
 * the instance with its `setup()`, or the function's result. Arrays, records, Maps, Sets and registered containers are
 * copied with their configs built, also those without configs, as a list may be empty. A `build` within a build shares
 * the results of the outer one.
 *
 * @throws ConfigError with all problems that `validate` finds; for cycles; and for values that are neither config nor
 * container. Errors of constructors, functions and `setup` are rethrown, with the config's path and values in their
 * messages.
 */
export function build<T>(config: { readonly [BUILT]: T }): T;
export function build<const T extends BuildableContainer>(root: T): Built<T>;
export function build(root: unknown): unknown {
  if (nodeOf(root) === undefined && partsOf(root) === undefined) {
    throw new ConfigError(
      `build() takes a config, such as Linear.config(), or a container of configs, got ${showValue(root)}.`,
    );
  }
  const parent = active?.building.at(-1);
  if (parent !== undefined) parent.parts++;
  if (active !== undefined) return run(root, active);
  const most = mostConfigs(process.env);
  const built = new Map<ConfigNode, unknown>();
  const resolve: Resolve = (config) => built.get(nodeOf(config)!);
  active = { built, resolve, building: [], checked: new Set() };
  const thaw = freezeExisting();
  const lift = limitCreated(most);
  try {
    return run(root, active);
  } finally {
    lift();
    thaw();
    active = undefined;
  }
}

function run(root: unknown, session: Session): unknown {
  const node = nodeOf(root);
  if (node !== undefined && session.built.has(node)) return session.built.get(node);
  const order = plan(root, session);
  for (const edge of order) buildOne(edge, session);
  if (node !== undefined) return session.built.get(node);
  return traverse<unknown>(root, (value, state) => {
    const held = nodeOf(value);
    if (held !== undefined) return session.built.get(held);
    return state.isTraversable ? rebuild(value as object, state.flattenedMapChildren()) : value;
  });
}

function buildOne({ node, path }: Edge, session: Session): void {
  session.building.push({ node, began: ConfigNode.count, parts: 0 });
  try {
    session.built.set(node, make(node, session));
  } catch (error) {
    throw failedBuild(sized(error, session.building), node, path, session);
  } finally {
    session.building.pop();
  }
}

/** The configs to build, inner ones first. Finds all that is wrong before anything is made. */
function plan(root: unknown, session: Session): Edge[] {
  const { order, violations } = examine(root, session);
  if (violations.length > 0) throw violationError(violations);
  return order;
}

type Resolve = (config: AnyConfig) => unknown;

function make(node: ConfigNode, { built, resolve }: Session): unknown {
  return node.kind === 'config' ? node.info.make(hyperparameters(node, resolve)) : makeFactory(node, built);
}

function makeFactory(node: ConfigNode, built: ReadonlyMap<ConfigNode, unknown>): unknown {
  const anew = argFactoriesIn(node);
  return (values: Record<string, unknown> = {}): unknown => {
    checkArguments(node, values);
    // One argFactory is one object within a call, wherever it is, and another in the next call.
    const ofCall = new Map<ConfigNode, unknown>();
    const resolve: Resolve = (config) => {
      const held = nodeOf(config)!;
      return held.kind === 'argFactory' ? ofCall.get(held) : built.get(held);
    };
    for (const edge of anew) {
      try {
        ofCall.set(edge.node, edge.node.info.make(hyperparameters(edge.node, resolve)));
      } catch (error) {
        throw failedBuild(error, edge.node, edge.path, active ?? ofCall);
      }
    }
    const own = hyperparameters(node, resolve, new Set(Object.keys(values)));
    return node.info.make(Object.freeze({ ...own, ...values }));
  };
}

/** The argFactories that each call of the factory makes, inner ones first. */
function argFactoriesIn(partial: ConfigNode): Edge[] {
  const order: Edge[] = [];
  walk(partial.proxy, {
    children: (node, path) => builtEdges(node, path).filter((edge) => edge.node.kind === 'argFactory'),
    leave: (node, path) => node !== partial && order.push({ node, path }),
  });
  return order;
}

function checkArguments(node: ConfigNode, values: Record<string, unknown>): void {
  for (const name of Object.keys(values)) checkArgument(node, name, values[name]);
  const missing = [...node.info.fields.values()].filter(
    (field) => !Object.hasOwn(values, field.name) && !hasValue(node, field),
  );
  if (missing.length > 0) {
    const names = missing.map((field) => field.name).join(', ');
    throw new ConfigError(`The factory of ${node.info.name} needs ${names}.`);
  }
  const violations: Violation[] = [];
  checkRules(node, undefined, { given: values }, violations);
  if (violations.length > 0) throw violationError(violations);
}

function checkArgument(node: ConfigNode, name: string, value: unknown): void {
  const field = node.info.fields.get(name);
  if (field === undefined) {
    const hint = didYouMean(name, node.info.fields.keys());
    throw new ConfigError(`${node.info.name} has no hyperparameter '${name}'.${hint}`);
  }
  const problem = field.holdsBuilt ? undefined : problemOf(field, value);
  if (problem !== undefined) throw new ConfigError(`${node.info.name}.${problem}`);
}

function hyperparameters(node: ConfigNode, resolve: Resolve, except?: ReadonlySet<string>): object {
  const hp: Record<string, unknown> = {};
  for (const field of node.info.allFields) {
    if (except?.has(field.name) !== true && hasValue(node, field))
      hp[field.name] = hyperparameter(node, field, resolve);
  }
  return Object.freeze(hp);
}

/** The field's value as its schema parses it, frozen. */
function hyperparameter(node: ConfigNode, field: FieldInfo, resolve: Resolve): unknown {
  const raw = rawValue(node, field);
  const isDefault = field.default.kind === 'value' && !(field.name in node.values);
  // Written values are parsed already, and a default without configs needs no parsing.
  if (isDefault ? !field.default.parsed && nodesIn(raw).length === 0 : field.keepsValues) {
    return frozen(raw, field.holdsBuilt ? resolve : sameConfig);
  }
  // The config keeps its containers: those of the instance can't be changed.
  const value = mapContainers(withoutCarriers(raw), (leaf) => leaf);
  if (value === undefined) return undefined;
  const result = withBuilt(resolve, () => parseWith(field.check, value, `${node.info.name}.${field.name}`));
  if (result.success) return freeze(result.data, true);
  const problem = result.error.issues.map((issue) => issue.message).join('; ');
  throw new ConfigError(`${node.info.name}.${field.name}: ${problem}, got ${showValue(value)}`, {
    path: field.name,
    place: placeOfValue(node, field.name),
    cause: result.error,
  });
}

const sameConfig: Resolve = (config) => config;

/** A frozen copy of the containers in `value`; `resolve` gives the replacements of configs. */
function frozen(value: unknown, resolve: Resolve): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const node = nodeOf(value);
  if (node !== undefined) return isCarrier(node) ? frozen(carriedBy(node), resolve) : resolve(node.proxy);
  if (Array.isArray(value)) return Object.freeze(value.map((part) => frozen(part, resolve)));
  if (!isContainer(value))
    return freeze(
      mapContainers(value, (leaf) => leaf),
      true,
    );
  const entries = Object.entries(value).map(([key, part]) => [key, frozen(part, resolve)]);
  return Object.freeze(Object.fromEntries(entries));
}
