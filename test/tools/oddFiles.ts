/** @file A project whose experiments lie beside all that is no source file but has the name of one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { family, project } from './experiments.js';

/** The project, with one experiment, `fine.Fine`. */
export function oddProject(): string {
  const directory = project({
    'experiments/fine.ts': `${family}\nexport class Fine extends Family {}\n`,
    'experiments/nested.ts': `export const a = ${'('.repeat(20_000)}1${')'.repeat(20_000)};\n`,
  });
  const at = (name: string) => join(directory, 'experiments', name);
  // As Emacs locks a file that it edits.
  symlinkSync('user@host.1234:1700000000', at('.#fine.ts'));
  symlinkSync('nowhere', at('dangling.ts'));
  symlinkSync('loop.ts', at('loop.ts'));
  symlinkSync('.', at('self'));
  mkdirSync(at('folder.ts'));
  execFileSync('mkfifo', [at('pipe.ts')]);
  writeFileSync(at('.hidden.ts'), 'not even {{{ a program');
  return directory;
}

/** The problems of `list` in it. */
export const oddProblems = (directory: string): string[] => [
  `experiments/dangling.ts: ENOENT: no such file or directory, open '${directory}/experiments/dangling.ts'.`,
  `experiments/loop.ts: ELOOP: too many symbolic links encountered, open '${directory}/experiments/loop.ts'.`,
  'experiments/nested.ts: It is nested too deeply.',
  `experiments/pipe.ts: ${directory}/experiments/pipe.ts is not a regular file but a named pipe.`,
];
