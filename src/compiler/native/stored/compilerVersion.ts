/** @file Version of this compiler's own modules, a key of stored plans. */
import { createHash } from 'node:crypto';
import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version_core as tfjs } from '../../tfjs/tfjs.js';

/** The compiler's own folder. */
const ownFolder = fileURLToPath(new URL('../..', import.meta.url));

/** Resolution of file times, in milliseconds. */
const coarseness = 20;

/** All modules below a folder, in a fixed order. */
function modulesIn(folder: string): string[] {
  const byName = (a: Dirent, b: Dirent): number => (a.name < b.name ? -1 : 1);
  return readdirSync(folder, { withFileTypes: true })
    .sort(byName)
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return modulesIn(path);
      return /\.[jt]s$/.test(entry.name) ? [path] : [];
    });
}

/**
 * A text that changes whenever a module of the compiler does. Like git, it relies on file metadata: nothing can write
 * or replace a file without changing its time of last change.
 *
 * @param since time in milliseconds since 1970 at which the first module was loaded.
 * @returns undefined where a module has changed since then: the running code may be older.
 */
export function versionOf(folder: string, since: number): string | undefined {
  const lines = [tfjs];
  for (const path of modulesIn(folder)) {
    const { size, mtimeMs, ctimeMs, ino, dev } = lstatSync(path);
    if (Math.max(mtimeMs, ctimeMs) > since - coarseness) return undefined;
    lines.push(`${path} ${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`);
  }
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

let own: { readonly version: string | undefined } | undefined;

/** Whether a development server transforms the modules: the code that it serves may be older than the files. */
const isServed = 'env' in import.meta;

/** The version of the compiler in this process; undefined if that is uncertain. */
export function compilerVersion(): string | undefined {
  own ??= { version: isServed ? undefined : versionOf(ownFolder, performance.timeOrigin) };
  return own.version;
}
