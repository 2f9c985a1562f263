/** @file Whether a config survives being written and read, told before a long run rather than in it. */

import { ConfigError } from '../errors.js';
import { isEqual } from '../walking/equal.js';
import { findClass } from './classes.js';
import type { ReadOptions } from './format.js';
import { encodeAll, readDocument } from './json.js';
import { shortPath } from './parts.js';
import type { DocumentProblem } from './problems.js';
import { throwProblems } from './problems.js';

/**
 * Everything that would keep `root` from being the same after `toJSON` and `fromJSON`, each with its path, and where it
 * was set: values without a form, classes that their name does not lead back to, values that are refused when read.
 */
export function serializationProblems(root: unknown, options: ReadOptions = {}): DocumentProblem[] {
  const { document, problems, nodes, links } = encodeAll(root);
  const told = new Set<unknown>();
  for (const [i, node] of nodes.entries()) {
    const { cls, name } = node.info;
    if (told.has(cls)) continue;
    told.add(cls);
    const path = shortPath(links[i]);
    try {
      const found = findClass(name, options.classes ?? [], () => undefined);
      if (found === cls) continue;
      problems.push({
        path,
        problem: `${path}: the name '${name}' leads to another class.`,
        place: undefined,
      });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push({ path, problem: `${path}: ${error.problem}`, place: undefined });
    }
  }
  if (problems.length > 0) return problems;
  try {
    if (isEqual(readDocument({ value: document }, 'serializationProblems()', options), root)) return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [{ path: error.path ?? '<root>', problem: error.problem, place: undefined }];
  }
  return [
    { path: '<root>', problem: 'The config that is read back is not equal to this one.', place: undefined },
  ];
}

/** @throws ConfigError with all that `serializationProblems` finds. */
export function checkSerializable(root: unknown, options: ReadOptions = {}): void {
  throwProblems(serializationProblems(root, options), 'checkSerializable()');
}
