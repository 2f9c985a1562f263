/** @file The explicit values of a config as one flat record, for tables and loggers of hyperparameters. */
import { mapContainers } from '../nodes/containers.js';
import { linesOf, valueText } from './lines.js';

const rootKey = '<root>';

export interface FlattenOptions {
  /** Adds an entry for each config: its path, `<root>` for the outermost, and the name of its class. */
  readonly classNames?: boolean;
}

/**
 * What was set in `root`, by path: neither defaults nor fields without a value. Containers without configs are one
 * value. A config that stands in several places is written out at the first, the others say `same as` it; beyond 64
 * steps a path says `continues at @1`, and the entries behind it begin with `@1`.
 */
export function asDictFlattened(root: unknown, options: FlattenOptions = {}): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  for (const line of linesOf(root, true)) {
    if (line.kind === 'label') entries.push([line.path, `continues at ${line.label}`]);
    else if (line.kind === 'again' || (line.kind === 'config' && options.classNames === true)) {
      entries.push([line.path || rootKey, valueText(line)]);
    } else if (line.kind === 'value' && line.item.state === 'set') {
      // A copy: an edit of it must not reach the config unseen.
      entries.push([line.path || rootKey, mapContainers(line.item.value, (leaf) => leaf)]);
    }
  }
  return Object.fromEntries(entries);
}
