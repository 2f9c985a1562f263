/** @file An address on which one process of the machine can listen: a lock where there is no flock(2). */
import { createHash } from 'node:crypto';
import { realpathSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Windows and Linux have addresses that go with the process; elsewhere it is a file that a killed process leaves. */
function addressOf(path: string): { address: string; isFile: boolean } {
  const name = `luthier-${createHash('sha256').update(realpathSync(path)).digest('hex').slice(0, 32)}`;
  if (process.platform === 'win32') return { address: `\\\\.\\pipe\\${name}`, isFile: false };
  if (process.platform === 'linux') return { address: `\0${name}`, isFile: false };
  return { address: join(tmpdir(), name), isFile: true };
}

/**
 * Listens on the address of an existing file, until the process ends or the returned function is called.
 *
 * @returns undefined if another process listens.
 */
export async function listenAlone(path: string): Promise<(() => void) | undefined> {
  const { address, isFile } = addressOf(path);
  const server = createServer((socket) => socket.destroy());
  server.unref();
  const listen = (): Promise<boolean> =>
    new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
      );
      server.listen(address, () => resolve(true));
    });
  if (await listen()) return () => void server.close();
  if (!isFile || (await answers(address))) return undefined;
  rmSync(address, { force: true });
  return (await listen()) ? () => void server.close() : undefined;
}

const answers = (address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(address);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
