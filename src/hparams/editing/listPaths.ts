/** @file Settable paths of a config, with their descriptions for help. */

import { describeSchema } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { type ConfigNode, fieldTags, hasValue, isExplicit, originText, rawValue } from '../nodes/node.js';
import type { Tag } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { formatLink, type PathLink, type Segment, segmentsOf } from '../walking/paths.js';
import { walk } from '../walking/walk.js';

/** A settable path, for help. */
interface PathInfo {
  readonly path: string;
  /** Description of the field's values. */
  readonly type: string;
  /** The default, absent if there is none. */
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

/** Description of one field of a config, without its path. */
function describeField(node: ConfigNode, field: FieldInfo): Omit<PathInfo, 'path'> {
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
  return placesIn(root).map(({ node, field, link }) => ({
    path: formatLink(link),
    ...describeField(node, field),
  }));
}

/** The paths in `root` of all fields, and values in containers, that have `tag` or a tag below it. */
export function taggedPaths(root: unknown, tag: Tag): Segment[][] {
  return placesIn(root)
    .filter(({ node, field }) => fieldTags(node, field).some((each) => each.isA(tag)))
    .map(({ link }) => segmentsOf(link));
}

/** A field of a config, and one of its paths. */
export interface Place {
  readonly node: ConfigNode;
  readonly field: FieldInfo;
  readonly link: PathLink | undefined;
}

/**
 * The fields of all configs in `root` with their paths; a tagged value has the path of its place in the container.
 *
 * @param memoized whether a config in several places has but the first of its paths.
 */
export function placesIn(root: unknown, memoized = true): Place[] {
  const places: Place[] = [];
  walk(root, {
    children: allEdges,
    memoized,
    enter(node, path) {
      for (const field of node.info.fields.values())
        places.push({ node, field, link: isCarrier(node) ? path : { parent: path, segment: field.name } });
    },
  });
  return places;
}
