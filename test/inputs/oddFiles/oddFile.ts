/**
 * @file Odd files: kinds of them, each with files that are drawn at random and with what a reader makes of them, which is known
 * without it. A further kind is a file beside this one that exports an `OddKind`, and an entry in oddFiles.long.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type fc from 'fast-check';
import { expect } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import type { BaseRecordSource, DataRecord } from '../../../src/inputs/index.js';

/** What reading gives: values, or an InputError whose message, with FILE for the file's path, is or matches this. */
export type Truth = { readonly values: unknown } | { readonly refused: string | RegExp };

/** A file, or several that are read together, by their names. */
export interface OddFile {
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** Reads the files. @param paths in the order of `files` */
  read(paths: readonly string[]): unknown;
  readonly truth: Truth;
}

/** A kind of odd files. */
export interface OddKind {
  /** Title of its test. */
  readonly name: string;
  readonly cases: fc.Arbitrary<OddFile>;
  /** How many cases are tried, and how many with SHORT=1. */
  readonly tries: number;
  readonly short: number;
}

/** Writes the files of a case into a folder, reads them, and compares. */
export async function check(folder: string, { files, read, truth }: OddFile): Promise<void> {
  const paths = Object.entries(files).map(([name, contents]) => {
    const path = join(folder, name);
    writeFileSync(path, contents);
    return path;
  });
  let found: Truth;
  try {
    found = { values: await read(paths) };
  } catch (error) {
    if ((error as Error).name !== 'InputError') throw error;
    found = { refused: (error as Error).message.replaceAll(paths[0]!, 'FILE') };
  }
  if ('refused' in truth && truth.refused instanceof RegExp)
    expect(found).toEqual({ refused: expect.stringMatching(truth.refused) });
  else expect(found).toEqual(truth);
}

/** All records of a source. */
export function recordsOf(config: Config<BaseRecordSource>): DataRecord[] {
  const table = build<BaseRecordSource>(config).open();
  try {
    return Array.from({ length: table.numRecords }, (_, i) => table.read(i));
  } finally {
    table.close();
  }
}
