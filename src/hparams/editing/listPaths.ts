/** @file Settable paths of a config, with all that help says of them. */

import { describeSchema } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { type ConfigNode, fieldTags, hasValue, isExplicit, originText, rawValue } from '../nodes/node.js';
import { allEdges } from '../walking/iterate.js';
import { formatLink } from '../walking/paths.js';
import { walk } from '../walking/walk.js';

/** A settable path, for help. */
export interface PathInfo {
  readonly path: string;
  /** What the field accepts, in words. */
  readonly type: string;
  /** The default, absent where there is none. */
  readonly default?: unknown;
  readonly description: string | undefined;
  /** The present value, absent where none is set. */
  readonly value?: unknown;
  readonly explicit: boolean;
  /** Names of the field's tags. */
  readonly tags: readonly string[];
  /** Where the present value was set: `file:line`, or a flag's text; absent for a default. */
  readonly where?: string;
}

function placeOfValue(node: ConfigNode, name: string): { where?: string } {
  if (!(name in node.values)) return {};
  for (let write = node.last; write !== undefined; write = write.previous) {
    if (write.field !== name) continue;
    const where = originText(write.origin);
    return where === undefined ? {} : { where };
  }
  return {};
}

/** What there is to know about one field of a config, without its path. */
export function describeField(node: ConfigNode, field: FieldInfo): Omit<PathInfo, 'path'> {
  return {
    type: describeSchema(field.check),
    description: field.description,
    explicit: isExplicit(node, field.name),
    tags: fieldTags(node, field).map((tag) => tag.name),
    ...placeOfValue(node, field.name),
    ...(field.default.kind === 'none' ? {} : { default: field.default.make() }),
    ...(hasValue(node, field) ? { value: rawValue(node, field) } : {}),
  };
}

/** Every settable path in `root`, outer before inner; a config that is used twice is listed where it is met first. */
export function listPaths(root: unknown): PathInfo[] {
  const infos: PathInfo[] = [];
  walk(root, {
    children: allEdges,
    enter(node, path) {
      for (const field of node.info.fields.values()) {
        infos.push({
          path: formatLink({ parent: path, segment: field.name }),
          ...describeField(node, field),
        });
      }
    },
  });
  return infos;
}
