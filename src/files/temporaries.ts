/** @file Temporary names of files that are being written, and removal of those that killed processes left. */
import { type Dirent, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../system/index.js';

const host = hostname().replace(/[^\w-]/g, '_');
/** Host and process id; older versions wrote the id alone. */
const pattern = /\.(?:([\w-]+)-)?(\d+)\.tmp$/;

/** The name of a file before it is renamed, with host and process id of its writer. */
export const temporaryName = (path: string): string => `${path}.${host}-${process.pid}.tmp`;

/** Removes temporaries of ended processes of this machine from a directory, before this process writes there. */
export function removeTemporaries(directory: string): void {
  for (const entry of entriesOf(directory)) {
    const [, writer = host, pid] = pattern.exec(entry.name) ?? [];
    if (pid === undefined || !entry.isFile() || writer !== host) continue;
    // In a container, every run may have the same process id.
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
