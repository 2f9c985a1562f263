/** @file Writes in many places, all or none. */

import { countText, linesBelow } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, nodeOf, type Origin, originText, writeField } from '../nodes/node.js';
import { withOrigin } from '../nodes/record.js';
import type { AnyConfig } from '../types.js';
import { deepCopy } from './edit.js';

/** How to replace. */
export interface ReplaceOptions {
  /** Whether each place gets a copy of a config that is given; the default. Otherwise all of them share it. */
  readonly deepCopy?: boolean;
}

/** Makes all writes. @throws ConfigError with all that is wrong with them; then none is made. */
export function writeAll(
  what: string,
  writes: readonly { node: ConfigNode; name: string; value: unknown }[],
  writer: Origin,
): void {
  // Many configs of one class fail in the same way: each problem is reported once.
  const problems = new Set<string>();
  allOrNothing((write) => {
    for (const { node, name, value } of writes) {
      try {
        write(node, name, value);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        problems.add(error.problem);
      }
    }
    if (problems.size === 0) return;
    const [first] = problems;
    const count = countText(problems.size);
    const text = problems.size === 1 ? first! : `${what}: ${count} problems:${linesBelow([...problems])}`;
    throw new ConfigError(text, { place: originText(writer) });
  }, writer);
}

/** Writes one field. */
export type Writer = (node: ConfigNode, name: string, value: unknown) => void;

/** Runs `action`; where it throws, the writes that it made so far are undone. */
export function allOrNothing(action: (write: Writer) => void, writer: Origin): void {
  const undo: (() => void)[] = [];
  const write: Writer = (node, name, value) => {
    const { last, writes, tags } = node;
    const before = name in node.values ? { value: node.values[name] } : undefined;
    writeField(node, name, value, writer);
    undo.push(() => {
      if (before === undefined) delete node.values[name];
      else node.values[name] = before.value;
      node.tags = tags;
      node.last = last;
      node.writes = writes;
    });
  };
  try {
    withOrigin(writer, () => action(write));
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw error;
  }
}

/** Gives the replacement of an old value. */
export function maker(replacement: unknown, options: ReplaceOptions): (old: unknown) => unknown {
  if (typeof replacement === 'function') return (old) => (replacement as (old: unknown) => unknown)(old);
  if (options.deepCopy === false) return () => replacement;
  return () =>
    mapContainers(replacement, (leaf) => (nodeOf(leaf) === undefined ? leaf : deepCopy(leaf as AnyConfig)));
}
