/** @file Compilers that are none: scripts that say and do what a test wants of them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '../../../command.js';

/** A folder for PATH with these commands, each the lines of a shell script. */
export function folderOf(commands: Readonly<Record<string, string>>): string {
  const folder = join(temporaryDirectory(), 'bin');
  mkdirSync(folder);
  for (const [name, script] of Object.entries(commands))
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

/** What `gcc --version` prints. */
export const gccSays = (line: string): string =>
  `echo "${line}"; echo "Copyright (C) 2022 Free Software Foundation, Inc."`;

/** A compiler whose version is fine, and that then does this. */
export const gccThat = (does: string): string =>
  `if [ "$1" = --version ]; then ${gccSays('gcc (Fake) 13.1.0')}; exit; fi\n${does}`;
