/** @file Origins of writes, and entries of a config's history. */

import { refusePromise } from '../errors.js';
import { captureTrace } from '../source.js';
import type { ConfigNode, Origin, WriteKind } from './configNode.js';
import { mapContainers } from './containers.js';

let currentOrigin: Origin | undefined;

/** Attributes every write inside `action` to `origin`: the text of a flag, or a place found beforehand. */
export function withOrigin<R>(origin: Origin, action: () => R): R {
  const before = currentOrigin;
  currentOrigin = origin;
  try {
    const result = action();
    refusePromise(result, 'The function given to withOrigin()', 'later writes are not attributed');
    return result;
  } finally {
    currentOrigin = before;
  }
}

/** Who is writing now. */
export function origin(frames?: number): Origin {
  return currentOrigin ?? captureTrace(frames);
}

/** The origin set by `withOrigin`; undefined for the caller. */
export function givenOrigin(): Origin | undefined {
  return currentOrigin;
}

let writes = 0;
let tracking = true;

/**
 * Writes within `action` are checked and stored as always, but leave no entries in any history.
 *
 * @throws ConfigError where `action` is async: its later writes would be tracked again.
 */
export function suspendTracking<R>(action: () => R): R {
  const before = tracking;
  tracking = false;
  try {
    const result = action();
    refusePromise(result, 'The function given to suspendTracking()', 'its later writes are tracked again');
    return result;
  } finally {
    tracking = before;
  }
}

/** Counts a write, and remembers it unless tracking is suspended. */
export function record(
  node: ConfigNode,
  field: string,
  kind: WriteKind,
  value: unknown,
  origin: Origin,
): void {
  node.writes += 1;
  if (!tracking) return;
  // A container is copied into the history, or later edits would rewrite the past.
  const isPlain = typeof value !== 'object' || value === null || kind === 'tags';
  const kept = isPlain ? value : mapContainers(value, (leaf) => leaf);
  node.last = { sequence: ++writes, field, kind, value: kept, origin, previous: node.last };
}
