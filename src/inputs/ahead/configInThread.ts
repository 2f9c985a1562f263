/** @file Configs in worker threads: those of a document, with the classes that its modules declare. */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type AbstractClass,
  fromJSON,
  importModule,
  type JsonDocument,
  loadModules,
  registerExports,
} from '../../hparams/index.js';
import * as inputs from '../index.js';

/** Loads the modules of the classes that inputs lack, those of the program first: another order may not work. */
async function ownClasses(
  document: JsonDocument,
  modules: readonly string[],
): Promise<readonly AbstractClass[]> {
  // An experiment's module loads layers and kernels, which a thread that reads text does not need.
  const isBuiltIn = document.configs.every((config) => Object.hasOwn(inputs, config.class));
  if (isBuiltIn && document.modules === undefined) return [];
  // `require` shares the module instances, and so the class registry, of this thread's own imports.
  const load = createRequire(import.meta.url);
  for (const url of modules) await importModule(fileURLToPath(url), load);
  const folders = [process.cwd(), ...modules.map((url) => dirname(fileURLToPath(url)))];
  return loadModules(document, { folders, load });
}

/**
 * The config of a document, in a thread that has loaded nothing but inputs.
 *
 * @param modules file URLs of modules with custom classes, loaded if the config uses any.
 */
export async function configInThread(document: JsonDocument, modules: readonly string[]): Promise<unknown> {
  registerExports(inputs);
  return fromJSON(document, { classes: await ownClasses(document, modules) });
}
