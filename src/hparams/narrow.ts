/** @file Run-time narrowing of a config's type to its class. */
import { ConfigError } from './errors.js';
import { showValue, withArticle } from './fields/describe.js';
import { infoOf } from './fields/fields.js';
import { nodeOf } from './nodes/node.js';
import { ClassLabels } from './printing/items.js';
import { captureTrace, placeText } from './source.js';
import type { AbstractClass, Config, Instance } from './types.js';

/**
 * Narrows a config's type to `cls`, after checking that its class is `cls` or extends it. Returns the same object:
 *
 *     narrow(task.model, LanguageModel, 'task.model').lmTpl.modelDims = 64;
 *
 * @param path of the config, for the message.
 * @throws ConfigError for a config of another class, or another value.
 */
export function narrow<T extends Instance>(config: unknown, cls: AbstractClass<T>, path?: string): Config<T> {
  const node = nodeOf(config);
  const found = node?.info.cls;
  if (node?.kind === 'config' && (found === cls || found!.prototype instanceof cls))
    return config as Config<T>;
  const expected = infoOf(cls);
  const labels = new ClassLabels(() => (node === undefined ? [expected] : [expected, node.info]));
  const got = node === undefined ? showValue(config) : `${withArticle(labels.of(node.info))} ${node.kind}`;
  const where = path === undefined ? 'narrow()' : path;
  throw new ConfigError(`${where}: expected ${withArticle(labels.of(expected))} config, got ${got}`, {
    ...(path === undefined ? {} : { path }),
    place: placeText(captureTrace()),
  });
}
