/** @file Version of this compiler: plans of another are not used. */
import { createHash } from 'node:crypto';
import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version_core as tfjs } from '../../tfjs.js';

/** The compiler's own folder. */
const ownFolder = fileURLToPath(new URL('../..', import.meta.url));

/** Clocks of file systems may be this much behind, in milliseconds. */
const coarseness = 20;

/** All modules below a folder, in an order that is always the same. */
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
 * A text that is another one whenever a module of the compiler is. It tells by what the system notes of files, as git does:
 * nothing can write to a file, or exchange it, and leave the time of its last change alone.
 *
 * @param since milliseconds since 1970: when modules began to be loaded.
 * @returns undefined where a module has changed since then: the one that runs may be the one before.
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

/** Whether a development server has transformed the modules: what it serves may be older than the files. */
const isServed = 'env' in import.meta;

/** The version of the compiler that this process runs; undefined where that is not certain. */
export function compilerVersion(): string | undefined {
  own ??= { version: isServed ? undefined : versionOf(ownFolder, performance.timeOrigin) };
  return own.version;
}
