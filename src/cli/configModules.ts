/** @file Modules that config files on the command line list: loaded before configs are made, for those are made at once. */
import { type AbstractClass, loadFileModules } from '../hparams/index.js';
import { asUsage, type Change, type FileOverride } from './overrides.js';

/** The classes that files mean. No part of the change itself, which other processes are sent. */
const loaded = new WeakMap<FileOverride, readonly AbstractClass[]>();

/** Imports the modules that the files among `changes` list. @throws UsageError for a module that a file may not, or cannot, load. */
export async function loadConfigModules(changes: readonly Change[]): Promise<void> {
  for (const change of changes) {
    if (change.kind !== 'file' || loaded.has(change)) continue;
    const classes = await loadFileModules(change.file).catch((error) =>
      asUsage(change.origin, () => {
        throw error;
      }),
    );
    loaded.set(change, classes);
  }
}

/** The classes that a file means by the modules which it lists. */
export function classesFor(file: FileOverride): readonly AbstractClass[] {
  return loaded.get(file) ?? [];
}
