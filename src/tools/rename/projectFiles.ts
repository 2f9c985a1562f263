/** @file The text files of a project: what git knows, or everything but packages and outputs. */
import { execFileSync } from 'node:child_process';
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';

/** Larger files are data. */
const largest = 2 ** 20;
const ignored = /(^|\/)(node_modules|package-lock\.json|npm-shrinkwrap\.json)(\/|$)/;

/** Whether a file is what `luthier snapshot` wrote, and writes anew. */
export function isSnapshot(file: string): boolean {
  return /(^|\/)__snapshots__\//.test(file);
}

function listed(root: string): string[] {
  try {
    const flags = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
    const output = execFileSync('git', flags, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 2 ** 28,
    });
    return [...new Set(output.split('\0').filter((name) => name !== ''))];
  } catch {
    return globSync('**', { cwd: root, dot: true, ignore: ['**/node_modules/**', '**/.git/**', 'out/**'] });
  }
}

/** Texts of the files below `root`, by absolute path; binary and very large ones are left out. */
export function projectTexts(root: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const name of listed(root).sort()) {
    if (ignored.test(name)) continue;
    const file = join(root, name);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    // A link's file has a name of its own, if it is the project's.
    if (stat === undefined || !stat.isFile() || stat.size > largest) continue;
    const text = readFileSync(file, 'utf8');
    if (!text.includes('\0')) texts.set(file, text);
  }
  return texts;
}
