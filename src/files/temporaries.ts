/** @file Names of files that are being written, and what processes left of them that were killed. */
import { type Dirent, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../system/index.js';

const host = hostname().replace(/[^\w-]/g, '_');
/** Of this process's machine and number; older versions wrote the number alone. */
const pattern = /\.(?:([\w-]+)-)?(\d+)\.tmp$/;

/** Where a file is written before it is renamed: who writes there can be told from the name. */
export const temporaryName = (path: string): string => `${path}.${host}-${process.pid}.tmp`;

/** Removes what processes of this machine were writing in a directory, not below it, when they ended; this one writes nothing yet. */
export function removeTemporaries(directory: string): void {
  for (const entry of entriesOf(directory)) {
    const [, writer = host, pid] = pattern.exec(entry.name) ?? [];
    if (pid === undefined || !entry.isFile() || writer !== host) continue;
    // In a container, every run may have the same number.
    if (Number(pid) !== process.pid && isAlive(Number(pid))) continue;
    rmSync(join(directory, entry.name), { force: true });
  }
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}
