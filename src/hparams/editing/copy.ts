/** @file Copies of configs, shallow and deep. */
import { copyAlone, deepCopyOf } from '../nodes/copying.js';
import { requireNode } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';

/** A config with the same values: sub-configs are shared with the original, arrays and records are not. */
export function copy<C extends AnyConfig>(config: C): C {
  return copyAlone(requireNode(config, 'copy')).proxy as C;
}

/** A config that shares nothing with the original; what was shared inside it is shared inside the copy. */
export function deepCopy<C extends AnyConfig>(config: C): C {
  requireNode(config, 'deepCopy');
  return deepCopyOf(config) as C;
}
