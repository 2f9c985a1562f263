/** @file Configs as YAML that people can read and edit, and back. */

import { ConfigError } from '../errors.js';
import { origin } from '../nodes/config.js';
import { longestWritten, type ReadOptions } from './format.js';
import { encodeAll, readDocument } from './json.js';
import { parseYaml } from './parse.js';
import { reservedNames } from './parts.js';
import { throwProblems } from './problems.js';
import { checkText } from './text.js';
import { writeYaml } from './writeYaml.js';

/**
 * `root`, a config or arrays and records of configs, as YAML: each config at its place as `$class: Name` with its
 * explicit values, shared ones once behind an anchor. `fromYAML` reads it back, with the same sharing.
 *
 * @throws ConfigError with all values that have no form, and their paths.
 */
export function toYAML(root: unknown): string {
  const { document, problems } = encodeAll(root);
  throwProblems(problems, 'toYAML()');
  for (const { class: name, values } of document.configs) {
    const taken = Object.keys(values).find((field) => reservedNames.has(field));
    if (taken !== undefined) {
      throw new ConfigError(`${name}.${taken}: the name is taken in YAML. Use toJSON().`, { path: taken });
    }
  }
  return writeYaml(document);
}

/**
 * What `toYAML` was given. Every value is checked as if it were written by hand, and its history names its line.
 * Classes are found by name as by `fromJSON`; tags of YAML are refused, aliases are not expanded.
 *
 * @throws ConfigError with all that is wrong, and line and column of each.
 */
export function fromYAML(text: string, options: ReadOptions = {}): unknown {
  const parsed = parseYaml(checkText(text, options.maxBytes ?? longestWritten));
  return readDocument(parsed, origin(), options);
}
