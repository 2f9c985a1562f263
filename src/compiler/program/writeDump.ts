/** @file LUTHIER_DUMP: a folder of readable files for each program. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompilerError } from './tensors.js';

/**
 * Writes texts, by file name, to a subfolder of `directory` named after the program and a hash of its contents, such as
 * `train_step-1f3a9c02`. An existing folder holds the same texts and is left alone.
 *
 * @returns the folder.
 * @throws CompilerError where it can't be written.
 */
export function writeDump(directory: string, name: string, texts: Readonly<Record<string, string>>): string {
  const hash = createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 8);
  const folder = join(resolve(directory), `${name.replace(/[^\w.-]/g, '_')}-${hash}`);
  if (existsSync(folder)) return folder;
  let aside: string | undefined;
  try {
    mkdirSync(directory, { recursive: true });
    // `mkdtemp` would make the folder readable by its owner only.
    aside = `${folder}.tmp-${process.pid}-${randomBytes(6).toString('hex')}`;
    mkdirSync(aside);
    for (const [file, text] of Object.entries(texts)) writeFileSync(join(aside, file), text);
    renameSync(aside, folder);
  } catch (error) {
    if (aside !== undefined) rmSync(aside, { recursive: true, force: true });
    // Another process may have written the same texts in the meantime.
    if (existsSync(folder)) return folder;
    throw new CompilerError(`LUTHIER_DUMP=${directory}: can't be written: ${(error as Error).message}.`, {
      cause: error,
    });
  }
  return folder;
}
