/** @file Validation of a graph of configs, and the order of its build. */

import { ConfigError } from '../errors.js';
import { parseWith, problemOf } from '../fields/check.js';
import type { FieldInfo } from '../fields/fields.js';
import { withBuilt } from '../fields/holders.js';
import { unsetCarriers, withoutCarriers } from '../nodes/carriers.js';
import { append } from '../nodes/containers.js';
import { type ConfigNode, freezeExisting, hasValue, isExplicit, rawValue } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';
import { formatLink, type PathLink } from '../walking/paths.js';
import { type Edge, edgesIn, walk } from '../walking/walk.js';
import { checkRules, hasRules } from './rules.js';
import { fieldViolation, missingPart, missingValue, type Violation } from './violations.js';

/** Knowledge that nested builds share about their configs. */
export interface Known {
  readonly built: ReadonlyMap<ConfigNode, unknown>;
  readonly building: readonly { readonly node: ConfigNode }[];
  /** Configs that were looked at; while something is built they stay as they are. */
  readonly checked: Set<ConfigNode>;
}

/**
 * All problems of `root`, a config or containers of configs: missing values, violated refinements, and the reports of
 * the classes' `validate` hooks. A template (the config in a `sub` field) is completed by its owner: its missing
 * values are no problem, and its rules see explicit values only, not defaults.
 *
 * @throws ConfigError for a config that contains itself, or an argFactory outside of a partial.
 */
export function validate(root: unknown): Violation[] {
  const thaw = freezeExisting();
  try {
    return examine(root, { built: new Map(), building: [], checked: new Set() }).violations;
  } finally {
    thaw();
  }
}

/** The configs to build, inner ones first, and everything that is wrong with them and with their templates. */
export function examine(root: unknown, known: Known): { order: Edge[]; violations: Violation[] } {
  const order: Edge[] = [];
  const violations: Violation[] = [];
  const looked: ConfigNode[] = [];
  walk(root, {
    children: (node, path) => (known.built.has(node) ? [] : builtEdges(node, path)),
    enter(node, path) {
      if (known.building.some((each) => each.node === node)) throw buildsItself(node);
      if (node.info.unbuildable !== undefined) throw new ConfigError(node.info.unbuildable);
      looked.push(node);
      if (node.kind === 'partial' || known.built.has(node)) return;
      for (const field of node.info.required) {
        if (!hasValue(node, field)) violations.push(missingValue(node, path, field));
      }
      for (const name in node.values) {
        if (typeof node.values[name] === 'object') append(violations, unsetParts(node, path, name));
      }
    },
    leave(node, path) {
      if (node.kind !== 'argFactory' && !known.built.has(node)) order.push({ node, path });
    },
  });
  for (const { node, path } of edgesIn(root, undefined)) {
    if (node.kind === 'argFactory') throw misplacedArgFactory(node, path);
  }
  if (!looked.some(needsLook)) return { order, violations };
  const met = new Set(looked);
  // Templates that were looked at already have nothing new below them; once they are built, defaults count as well.
  const old = new Set<ConfigNode>();
  walk(root, {
    children: (node, path) => (old.has(node) ? [] : heldEdges(node, path, violations)),
    enter(node, path) {
      if (known.built.has(node) || (known.checked.has(node) && !met.has(node))) {
        old.add(node);
        return;
      }
      known.checked.add(node);
      // The call of a partial's factory may give other values: its rules wait for that.
      if (node.kind !== 'partial') checkRules(node, path, { explicitOnly: !met.has(node) }, violations);
    },
  });
  return { order, violations };
}

/**
 * The configs that are part of `node`, templates among them. Values were checked when they were written, but a class that
 * was changed since may no longer fit its place.
 */
function heldEdges(node: ConfigNode, path: PathLink | undefined, violations: Violation[]): Edge[] {
  const edges: Edge[] = [];
  for (const field of node.info.fields.values()) {
    const isSet = isExplicit(node, field.name);
    if (!isSet && !field.holdsBuilt) continue;
    const value = rawValue(node, field);
    if (typeof value !== 'object' || value === null) continue;
    const found = edgesIn(value, { parent: path, segment: field.name });
    const isDoubtful = isSet && found.some((edge) => edge.node.changedClass);
    const problem = isDoubtful ? problemOf(field, value) : undefined;
    if (problem !== undefined) {
      const text = problem.slice(problem.indexOf(': ') + 2);
      violations.push(fieldViolation('value', node, path, field, text));
    }
    append(edges, found);
  }
  return edges;
}

/** Whether a config needs checks beyond those of `build`: templates, rules, and changed classes. */
function needsLook(node: ConfigNode): boolean {
  return node.changedClass || !node.info.buildsAll || hasRules(node.info);
}

/** The parts of a field's value that have tags, but no value yet. */
function unsetParts(node: ConfigNode, path: PathLink | undefined, name: string): Violation[] {
  return unsetCarriers(rawValue(node, node.info.fields.get(name)!)).map(({ carrier, steps }) =>
    missingPart(node, path, [name, ...steps], carrier),
  );
}

function buildsItself(node: ConfigNode): ConfigError {
  return new ConfigError(
    `${node.info.name}.setup() builds the config that ${node.info.name} itself is built from.`,
  );
}

const noEdges: readonly Edge[] = [];

/** The configs in `node` that are built before it. */
export function builtEdges(node: ConfigNode, path: PathLink | undefined): readonly Edge[] {
  let edges: readonly Edge[] = noEdges;
  for (const field of node.info.builtFields) {
    const raw = rawValue(node, field);
    if (typeof raw !== 'object' || raw === null) continue;
    const found = edgesIn(withoutCarriers(raw), { parent: path, segment: field.name });
    if (found.length > 0) edges = edges.concat(field.buildsAll ? found : onlyBuilt(node, field, found));
  }
  if (node.kind === 'config') {
    for (const edge of edges)
      if (edge.node.kind === 'argFactory') throw misplacedArgFactory(edge.node, edge.path);
  }
  return edges;
}

/** Those of `edges` that the schema takes for instances or factories: a list may hold templates beside them. */
function onlyBuilt(node: ConfigNode, field: FieldInfo, edges: Edge[]): Edge[] {
  const wanted = new Set<unknown>();
  const note = (config: AnyConfig): unknown => wanted.add(config) && config;
  const value = withoutCarriers(rawValue(node, field));
  withBuilt(note, () => parseWith(field.check, value, `${node.info.name}.${field.name}`));
  return edges.filter((edge) => wanted.has(edge.node.proxy));
}

function misplacedArgFactory(node: ConfigNode, path: PathLink | undefined): ConfigError {
  const where = path === undefined ? 'The root' : formatLink(path);
  return new ConfigError(
    `${where} is an argFactory of ${node.info.name}, which only a partial can hold. Use ${node.info.name}.config() here.`,
    { path: formatLink(path) },
  );
}
