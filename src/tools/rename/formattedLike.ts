/** @file Formatting of renamed files by the formatter that the project has installed. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Formatters, with the arguments that have them read a file from stdin and write it to stdout. */
const formatters: Readonly<Record<string, (path: string) => string[]>> = {
  // Sorted imports, too: a new name may be elsewhere among the others.
  biome: (path) => ['check', '--write', `--stdin-file-path=${path}`],
  prettier: (path) => ['--stdin-filepath', path],
};

/**
 * The new text of a file, formatted as the old one was. A formatter counts if it leaves the old text unchanged: so its
 * settings hold, and unformatted files stay unformatted.
 */
export function formattedLike(root: string, path: string, before: string, text: string): string {
  let formatted = text;
  for (const [name, argumentsFor] of Object.entries(formatters)) {
    const program = installed(root, name);
    if (program === undefined) continue;
    const format = (input: string): string | undefined => {
      const { status, stdout } = spawnSync(program, argumentsFor(relative(root, path)), {
        cwd: root,
        input,
        encoding: 'utf8',
      });
      return status === 0 ? stdout : undefined;
    };
    const next = format(formatted);
    if (next !== undefined && next !== formatted && format(before) === before) formatted = next;
  }
  return formatted;
}

/** A program of the project's packages, or of those of a folder around it. */
function installed(root: string, name: string): string | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    const program = join(folder, 'node_modules/.bin', name);
    if (existsSync(program)) return program;
    if (folder === dirname(folder)) return undefined;
  }
}
