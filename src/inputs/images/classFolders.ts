/** @file Files in a folder for each class. */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { globSync } from 'tinyglobby';
import { z } from 'zod';
import type { DataFolder } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import type { RecordedState } from '../recordedParts.js';
import type { CorpusFile } from '../text/corpusFiles.js';

/** Fields of sources with a folder for each class. */
export const classFolderFields = {
  directory: z.string().min(1).describe('The folder that holds the folders of the classes.'),
  classes: z
    .array(z.string())
    .min(2)
    .nullable()
    .default(null)
    .describe('Names of the folders to read, in the order of their ids; null: all folders, by name.'),
  ignore: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Files to pass over, as globs in the directory: '**/*.txt'. Other unreadable files are an error.",
    ),
};

/** A run's record of classes that were found: their names, in the order of their ids. */
export const recordedClasses = (classes: readonly string[] | undefined): RecordedState | null =>
  classes ? { identity: `classes ${classes.join(', ')}`, learned: { classes } } : null;

/** Fields of a folder of classes. */
interface ClassFolders {
  readonly directory: string;
  readonly classes: readonly string[] | null;
  readonly ignore: readonly string[];
}

/** A file with the id of its class. */
interface LabelledFile {
  readonly file: CorpusFile;
  readonly label: number;
}

/** The kind of files that a source reads. */
export interface FileKind {
  /** Of its names. */
  readonly pattern: RegExp;
  /** `PNG and JPEG files`, for errors. */
  readonly title: string;
  /** `1.png`, for errors. */
  readonly example: string;
}

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Files that systems leave in folders; those whose names begin with a dot are skipped, too. */
const systemFiles = new Set(['Thumbs.db', 'desktop.ini', '__MACOSX']);

/**
 * The classes, by id, and their files by name: those in the folder of the class and in folders below it, links included.
 *
 * @throws InputError where a class has no folder or no file, and for files of another kind that `ignore` does not name
 */
export function filesByClass(
  { directory, classes: wanted, ignore }: ClassFolders,
  kind: FileKind,
): {
  readonly classes: readonly string[];
  readonly files: readonly LabelledFile[];
  readonly folder: DataFolder;
} {
  const ignored = new Set(ignore.length === 0 ? [] : globSync([...ignore], { cwd: directory, dot: true }));
  const entries = entriesOf(directory);
  const found = entries.filter(({ isFolder }) => isFolder).map(({ name }) => name);
  const classes = wanted ?? found;
  const missing = classes.find((name) => !found.includes(name));
  if (missing !== undefined)
    throw new InputError(`${resolve(directory)} has no folder '${missing}'. It has: ${found.join(', ')}.`);
  const besides = entries.filter(({ name, isFolder }) => !isFolder && kind.pattern.test(name));
  const unread = besides.map(({ name }) => name).filter((name) => !ignored.has(name));
  if (classes.length === 0) {
    throw new InputError(
      `${resolve(directory)}: expected files in a folder for each class, such as CLASS/${kind.example}; got ` +
        `${listed(entries.map(({ name }) => name)) || 'an empty folder'}.`,
    );
  }
  const files = classes.flatMap((name, label) => {
    const all = filesBelow(directory, name, []).filter((file) => !ignored.has(file));
    unread.push(...all.filter((file) => !kind.pattern.test(file)));
    return all
      .filter((file) => kind.pattern.test(file))
      .map((file) => ({
        label,
        file: { name: posix.join(directory, file), path: resolve(join(directory, file)) },
      }));
  });
  if (unread.length > 0) {
    throw new InputError(
      `${resolve(directory)}: ${kind.title} in the folders of classes are read, and ${unread.length} ` +
        `${unread.length === 1 ? 'file is' : 'files are'} not: ${listed(unread)}. Convert, move or skip them: ` +
        `ignore=['${ignoring(unread[0]!)}'].`,
    );
  }
  const labels = new Set(files.map(({ label }) => label));
  const empty = classes.filter((_, label) => !labels.has(label));
  if (empty.length > 0) {
    throw new InputError(
      `${resolve(directory)}: expected files in a folder for each class, such as CLASS/${kind.example}; ` +
        `${listed(empty)} ${empty.length === 1 ? 'has' : 'have'} none.${wanted === null ? ' Name the others in classes.' : ''}`,
    );
  }
  const members = files.map(({ file }) => file);
  const folder = { name: directory, path: resolve(directory), numFiles: files.length, members };
  return { classes, files, folder };
}

/** A glob for files like this one: `** /*.webp`, or its name where it has no extension. */
function ignoring(file: string): string {
  const extension = posix.extname(file);
  return `**/${extension === '' ? posix.basename(file) : `*${extension}`}`;
}

/** `cat, dog, … (12)`. */
function listed(names: readonly string[]): string {
  const first = [...names].sort(byCodeUnit).slice(0, 3).join(', ');
  return names.length > 3 ? `${first}, … (${names.length})` : first;
}

/** Entries of a folder, by name, links followed. @throws InputError for one that cannot be read or leads nowhere */
function entriesOf(folder: string): { readonly name: string; readonly isFolder: boolean }[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.') && !systemFiles.has(name))
      .sort((a, b) => byCodeUnit(a.name, b.name))
      .map((entry) => ({
        name: entry.name,
        // There may be a million files: only links are asked where they lead.
        isFolder: (entry.isSymbolicLink() ? statSync(join(folder, entry.name)) : entry).isDirectory(),
      }));
  } catch (error) {
    throw new InputError(`${resolve(folder)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** The files in a folder and in those below it, relative to `directory`. @param above real paths of the folders above */
function filesBelow(directory: string, folder: string, above: readonly string[]): string[] {
  const path = join(directory, folder);
  const real = realpathSync(path);
  if (above.includes(real))
    throw new InputError(`${resolve(path)} is a link to a folder that it is in, ${real}: remove the link.`);
  return entriesOf(path).flatMap(({ name, isFolder }) => {
    const below = posix.join(folder, name);
    return isFolder ? filesBelow(directory, below, [...above, real]) : [below];
  });
}
