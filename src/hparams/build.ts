/** @file From configs to what they describe. */
import type { Configurable } from './configurable.js';
import { isContainer, mapContainers } from './containers.js';
import { describeSchema, showValue } from './describe.js';
import { ConfigError } from './errors.js';
import type { FieldInfo } from './fields.js';
import { withBuilt } from './holders.js';
import { didYouMean } from './names.js';
import { type ConfigNode, freezeExisting, hasValue, nodeOf, problemOf, rawValue } from './node.js';
import { formatLink, type PathLink } from './paths.js';
import { type Edge, edgesIn, walk } from './traverse.js';
import type { AnyConfig, Config, Factory, PartialConfig } from './types.js';

/** What was built since the outermost `build` began. */
interface Session {
  readonly built: Map<ConfigNode, unknown>;
  readonly building: Set<ConfigNode>;
}

let active: Session | undefined;

/**
 * Builds what a config describes: configs in `instance` fields first, each config object once, however often it is
 * used; then the instance, then its `setup()`. A `build` called in `setup` shares the memory of the outer one.
 *
 * @throws ConfigError for missing fields, all at once; for cycles; and for errors in constructors and `setup`, which
 * are its `cause`.
 */
export function build<T extends Configurable>(config: Config<T>): T;
export function build<T extends Configurable>(config: PartialConfig<T>): Factory<T>;
export function build(config: AnyConfig): unknown {
  const node = nodeOf(config);
  if (node === undefined) {
    throw new ConfigError(`build() takes a config, such as Linear.config(), got ${showValue(config)}.`);
  }
  if (node.kind === 'argFactory') throw misplacedArgFactory(node, undefined);
  if (active !== undefined) return run(node, active);
  active = { built: new Map(), building: new Set() };
  const thaw = freezeExisting();
  try {
    return run(node, active);
  } finally {
    thaw();
    active = undefined;
  }
}

function run(root: ConfigNode, session: Session): unknown {
  if (session.built.has(root)) return session.built.get(root);
  if (session.building.has(root)) {
    throw new ConfigError(
      `${root.info.name}.setup() builds the config that ${root.info.name} itself is built from.`,
    );
  }
  for (const { node, path } of plan(root, session)) {
    session.building.add(node);
    try {
      session.built.set(node, make(node, session));
    } catch (error) {
      throw inContext(error, node, path);
    } finally {
      session.building.delete(node);
    }
  }
  return session.built.get(root);
}

/** The configs to build, inner ones first. Finds all that is missing before anything is made. */
function plan(root: ConfigNode, session: Session): Edge[] {
  const order: Edge[] = [];
  const missing: string[] = [];
  walk(root.proxy, {
    children: (node, path) => (session.built.has(node) ? [] : builtEdges(node, path)),
    enter: (node, path) => {
      if (node.kind !== 'partial' && !session.built.has(node)) findMissing(node, path, missing);
    },
    leave: (node, path) => {
      if (node.kind !== 'argFactory' && !session.built.has(node)) order.push({ node, path });
    },
  });
  if (missing.length === 1) throw new ConfigError(`A hyperparameter is not set: ${missing[0]}.`);
  if (missing.length > 1) {
    throw new ConfigError(`${missing.length} hyperparameters are not set:\n  ${missing.join('\n  ')}`);
  }
  return order;
}

function findMissing(node: ConfigNode, path: PathLink | undefined, missing: string[]): void {
  for (const field of node.info.fields.values()) {
    if (hasValue(node, field)) continue;
    const where = formatLink({ parent: path, segment: field.name });
    missing.push(`${where} (${node.info.name}): expected ${describeSchema(field.check)}`);
  }
}

/** The configs in `node` that are built before it. */
function builtEdges(node: ConfigNode, path: PathLink | undefined): Edge[] {
  const edges: Edge[] = [];
  for (const field of node.info.fields.values()) {
    if (!field.holdsBuilt) continue;
    const found = edgesIn(rawValue(node, field), { parent: path, segment: field.name });
    edges.push(...(field.holder === undefined ? onlyBuilt(node, field, found) : found));
  }
  if (node.kind === 'config') {
    for (const edge of edges)
      if (edge.node.kind === 'argFactory') throw misplacedArgFactory(edge.node, edge.path);
  }
  return edges;
}

/** Those of `edges` that the schema takes for instances or factories: a list may hold templates beside them. */
function onlyBuilt(node: ConfigNode, field: FieldInfo, edges: Edge[]): Edge[] {
  if (edges.length === 0) return edges;
  const wanted = new Set<unknown>();
  const note = (config: AnyConfig): unknown => wanted.add(config) && config;
  withBuilt(note, () => field.check.safeParse(rawValue(node, field)));
  return edges.filter((edge) => wanted.has(edge.node.proxy));
}

function misplacedArgFactory(node: ConfigNode, path: PathLink | undefined): ConfigError {
  const where = path === undefined ? 'The root' : formatLink(path);
  return new ConfigError(
    `${where} is an argFactory of ${node.info.name}, which only a partial can hold. Use ${node.info.name}.config() here.`,
    { path: formatLink(path) },
  );
}

function make(node: ConfigNode, session: Session): unknown {
  const resolve = (config: AnyConfig): unknown => {
    const held = nodeOf(config)!;
    return held.kind === 'argFactory'
      ? held.info.make(hyperparameters(held, resolve))
      : session.built.get(held);
  };
  if (node.kind === 'config') return node.info.make(hyperparameters(node, resolve));
  return (values: Record<string, unknown> = {}): unknown => {
    for (const name of Object.keys(values)) checkArgument(node, name, values[name]);
    const given = new Set(Object.keys(values));
    const missing: string[] = [];
    for (const field of node.info.fields.values()) {
      if (!given.has(field.name) && !hasValue(node, field)) missing.push(field.name);
    }
    if (missing.length > 0)
      throw new ConfigError(`The factory of ${node.info.name} needs ${missing.join(', ')}.`);
    return node.info.make(Object.freeze({ ...hyperparameters(node, resolve, given), ...values }));
  };
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

function hyperparameters(
  node: ConfigNode,
  resolve: (config: AnyConfig) => unknown,
  except: ReadonlySet<string> = new Set(),
): object {
  const hp: Record<string, unknown> = {};
  withBuilt(resolve, () => {
    for (const field of node.info.fields.values()) {
      if (!except.has(field.name) && hasValue(node, field)) hp[field.name] = hyperparameter(node, field);
    }
  });
  return Object.freeze(hp);
}

function hyperparameter(node: ConfigNode, field: FieldInfo): unknown {
  const value = rawValue(node, field);
  const isFinal = field.default.kind === 'value' && !field.default.parsed && !(field.name in node.values);
  if (field.unchanging || (isFinal && !field.holdsBuilt)) {
    return isContainer(value) ? freeze(mapContainers(value, (leaf) => leaf)) : value;
  }
  if (value === undefined) return undefined;
  return freeze(field.check.parse(value));
}

function freeze(value: unknown): unknown {
  if (isContainer(value) && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) freeze(item);
  }
  return value;
}

function inContext(error: unknown, node: ConfigNode, path: PathLink | undefined): ConfigError {
  const where = path === undefined ? '' : ` at ${formatLink(path)}`;
  const options = { path: formatLink(path), cause: error };
  if (error instanceof ConfigError) {
    return new ConfigError(`${error.message}\n  while building ${node.info.name}${where}`, options);
  }
  const message = error instanceof Error ? error.message : String(error);
  return new ConfigError(`Building ${node.info.name}${where} failed: ${message}`, options);
}
