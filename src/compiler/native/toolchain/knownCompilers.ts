/** @file What compilers have said of themselves, kept in the cache: starting one to ask takes as long as tracing a model. */
import { closeSync, openSync, readSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readRegularFile, removeQuietly } from '../../../files/index.js';
import { cachePath, checkFolder } from './cacheFolder.js';
import type { Ended } from './process.js';

const FILE = 'compilers.json';

/** More than anyone has; those that were asked first are forgotten. */
const most = 16;

/** A compiler by its own name. Another program of that name, or one that starts a compiler, may be another tomorrow. */
const ownName = /^(?:[\w.+-]+-)?(?:gcc|clang)(?:-[\d.]+)?$/;

/** Whether it is a program of Linux, and no script. */
function isProgram(file: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const head = Buffer.alloc(4);
    readSync(descriptor, head, 0, 4, 0);
    return head.toString('latin1') === '\x7fELF';
  } finally {
    closeSync(descriptor);
  }
}

/** A text that is another one once the file behind the command is; undefined where that would not tell. */
function identityOf(command: string): string | undefined {
  try {
    const file = realpathSync(command);
    if (!ownName.test(basename(file)) || !isProgram(file)) return undefined;
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file);
    return [command, file, dev, ino, size, mtimeMs, ctimeMs].join(' ');
  } catch {
    return undefined;
  }
}

/** The next process asks. */
export function forgetCompilers(path: string): void {
  removeQuietly(join(path, FILE));
}

/** What `--version` printed, by the identities of compilers. */
export class KnownCompilers {
  private readonly outputs: Map<string, string>;
  private changed = false;

  constructor(private readonly env: NodeJS.ProcessEnv) {
    this.outputs = new Map(this.read());
  }

  /** How `--version` ended, by `ask` where that is not known. */
  async asked(command: string, ask: () => Promise<Ended>): Promise<Ended> {
    const identity = identityOf(command);
    const known = identity === undefined ? undefined : this.outputs.get(identity);
    if (known !== undefined) return { code: 0, output: known };
    const ended = await ask();
    if (identity !== undefined && ended.code === 0) {
      this.outputs.set(identity, ended.output);
      this.changed = true;
    }
    return ended;
  }

  /** Keeps what was asked, where the cache is there. */
  save(): void {
    if (!this.changed) return;
    try {
      const path = join(checkFolder(cachePath(this.env)), FILE);
      writeFileSync(`${path}.${process.pid}`, JSON.stringify([...this.outputs].slice(-most)));
      renameSync(`${path}.${process.pid}`, path);
    } catch {
      // The next process asks again.
    }
  }

  private read(): [string, string][] {
    try {
      const path = checkFolder(cachePath(this.env));
      const entries = JSON.parse(readRegularFile(join(path, FILE)).toString()) as [string, string][];
      return entries.filter((entry) => entry.length === 2 && entry.every((text) => typeof text === 'string'));
    } catch {
      // None yet, or not to be trusted.
      return [];
    }
  }
}
