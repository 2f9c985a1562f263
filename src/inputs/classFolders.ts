/** @file Files in a folder for each class. */
import { type Dirent, readdirSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { z } from 'zod';
import type { CorpusFile } from './corpusFiles.js';
import { InputError } from './inputErrors.js';
import type { RecordedState } from './recordedParts.js';

/** Fields of what reads a folder for each class. */
export const classFolderFields = {
  directory: z.string().min(1).describe('The folder that holds the folders of the classes.'),
  classes: z
    .array(z.string())
    .min(2)
    .nullable()
    .default(null)
    .describe('Names of the folders to read, in the order of their ids; null: all folders, by name.'),
};

/** What a run saves of classes that were found: their names, in the order of their ids. */
export const recordedClasses = (classes: readonly string[] | undefined): RecordedState | null =>
  classes ? { identity: `classes ${classes.join(', ')}`, learned: { classes } } : null;

/** A file with the id of its class. */
interface LabelledFile {
  readonly file: CorpusFile;
  readonly label: number;
}

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * The classes, by id, and their files by name, of those whose names match.
 *
 * @param example such a name, for errors
 * @throws InputError where a class has no folder, or no class a file
 */
export function filesByClass(
  fields: { readonly directory: string; readonly classes: readonly string[] | null },
  names: RegExp,
  example: string,
): { readonly classes: readonly string[]; readonly files: readonly LabelledFile[] } {
  const { directory } = fields;
  const entries = entriesOf(directory);
  const folders = entries.filter((entry) => entry.isDirectory());
  const found = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
  const classes = fields.classes ?? found.sort(byCodeUnit);
  const missing = classes.find((name) => !found.includes(name));
  if (missing !== undefined)
    throw new InputError(`${resolve(directory)} has no folder '${missing}'. It has: ${found.join(', ')}.`);
  const files = classes.flatMap((name, label) =>
    filesIn(posix.join(directory, name), names).map((file) => ({ file, label })),
  );
  if (files.length === 0) {
    const got =
      classes.length > 0 ? `${listed(classes)} without one` : listed(entries.map(({ name }) => name));
    throw new InputError(
      `${resolve(directory)}: expected files in a folder for each class, such as CLASS/${example}; got ${got}.`,
    );
  }
  return { classes, files };
}

/** `cat, dog, … (12)`. */
function listed(names: readonly string[]): string {
  if (names.length === 0) return 'an empty folder';
  const first = [...names].sort(byCodeUnit).slice(0, 3).join(', ');
  return names.length > 3 ? `${first}, … (${names.length})` : first;
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    throw new InputError(`${resolve(directory)} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function filesIn(folder: string, names: RegExp): CorpusFile[] {
  return entriesOf(folder)
    .map(({ name }) => name)
    .filter((name) => names.test(name))
    .sort(byCodeUnit)
    .map((name) => ({ name: posix.join(folder, name), path: resolve(join(folder, name)) }));
}
