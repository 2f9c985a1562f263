/** @file Configs by the class that they are of, where types say less. */
import { ConfigError } from './errors.js';
import { showValue } from './fields/describe.js';
import { infoOf } from './fields/fields.js';
import { nodeOf } from './nodes/node.js';
import { ClassLabels } from './printing/items.js';
import { captureTrace, placeText } from './source.js';
import type { AbstractClass, Config, Instance } from './types.js';

/**
 * `config` as what it is: a config of `cls`, or of a class that extends it. It is the same object, with the fields of `cls`
 * for TypeScript:
 *
 *     narrow(task.model, LanguageModel, 'task.model').lmTpl.modelDims = 64;
 *
 * @param path where the config stands, for the message.
 * @throws ConfigError for a config of another class, and for what is no config.
 */
export function narrow<T extends Instance>(config: unknown, cls: AbstractClass<T>, path?: string): Config<T> {
  const node = nodeOf(config);
  const found = node?.info.cls;
  if (node?.kind === 'config' && (found === cls || found!.prototype instanceof cls))
    return config as Config<T>;
  const expected = infoOf(cls);
  const labels = new ClassLabels(() => (node === undefined ? [expected] : [expected, node.info]));
  const got = node === undefined ? showValue(config) : `a ${labels.of(node.info)} ${node.kind}`;
  const where = path === undefined ? 'narrow()' : path;
  throw new ConfigError(`${where}: expected a ${labels.of(expected)} config, got ${got}`, {
    ...(path === undefined ? {} : { path }),
    place: placeText(captureTrace()),
  });
}
