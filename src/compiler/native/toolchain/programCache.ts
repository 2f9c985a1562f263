/** @file Compiled programs on disk: found by hash, written aside and renamed, bounded in size, safe among processes. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularFile } from '../../../files/index.js';
import { CompilerError } from '../../tensors.js';
import { dropOld, FAILED, MANIFEST } from './cacheEntries.js';
import { type CacheFolder, openFolder } from './cacheFolder.js';
import { diskFullError, InterruptedBuild, isDiskFull } from './interrupted.js';
import { markUse } from './useMarks.js';

/** What stands in an entry's manifest. */
interface Manifest {
  readonly kind: 'runtime' | 'program' | 'plan';
  /** For people: what the program was called. */
  readonly name: string;
  /** The file name of the library in the entry, or of what a plan says. */
  readonly library: string;
  /** Its sha256: what a crash or a full disk left behind would bring down the process that loads it. */
  readonly sha256: string;
  /** The compiler's version. */
  readonly compiler: string;
}

/** What is looked for. */
export interface Wanted {
  readonly kind: Manifest['kind'];
  readonly name: string;
  /** Everything that the entry depends on. */
  readonly parts: readonly string[];
  readonly compiler: string;
}

/** An entry that is there. */
export interface Entry {
  readonly folder: string;
  /** Path of the library, or of what a plan says. */
  readonly library: string;
}

/** File name of every entry's library, by what it is. */
const libraryOf = (kind: Manifest['kind'], key: string): string => {
  if (kind === 'plan') return 'plan.json';
  const extension = process.platform === 'darwin' ? 'dylib' : 'so';
  return kind === 'runtime' ? `libluthier-${key}.${extension}` : `program.${extension}`;
};

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** The cache of one folder. */
export class Cache {
  /** Entries that this process is making. */
  private readonly making = new Map<string, Promise<Entry>>();

  private constructor(private readonly folder: CacheFolder) {}

  /**
   * Opens the cache that the environment names.
   *
   * @throws CompilerError where the folder belongs to someone else or is open to others.
   */
  static open(env: NodeJS.ProcessEnv): Cache {
    return new Cache(openFolder(env));
  }

  get path(): string {
    return this.folder.path;
  }

  /** Why entries last no longer than this process, where that is so. */
  get notice(): string | undefined {
    return this.folder.notice;
  }

  /** Where the source and the compiler's messages of a build that failed are kept. */
  failed(wanted: Wanted): string {
    return join(this.path, `${FAILED}${this.key(wanted)}`);
  }

  /** Name of the file that `build` must make. */
  libraryName(wanted: Wanted): string {
    return libraryOf(wanted.kind, this.key(wanted));
  }

  /**
   * The entry, built where it is not there or damaged. It stays as long as this process lives, unless someone clears
   * the cache by hand.
   *
   * @param build makes the library in the empty folder that it is given; what it throws is passed on.
   */
  async entry(wanted: Wanted, build: (folder: string) => Promise<void>): Promise<Entry> {
    const folder = this.folderOf(wanted);
    const found = this.findIn(folder);
    if (found !== undefined) return found;
    const present = this.making.get(folder);
    if (present !== undefined) return present;
    const making = this.make(folder, wanted, build).finally(() => this.making.delete(folder));
    this.making.set(folder, making);
    return making;
  }

  /** The entry, where it is there and whole. */
  find(wanted: Wanted): Entry | undefined {
    return this.findIn(this.folderOf(wanted));
  }

  private folderOf(wanted: Wanted): string {
    return join(this.path, `${wanted.kind}-${this.key(wanted)}`);
  }

  private key({ kind, name, parts, compiler }: Wanted): string {
    return sha256(JSON.stringify([kind, name, compiler, ...parts])).slice(0, 32);
  }

  /** An entry that is whole; it counts as used now. */
  private findIn(folder: string): Entry | undefined {
    try {
      markUse(folder);
    } catch {
      // Not there, or no room for the mark: an entry that can't be marked is used all the same.
    }
    try {
      const manifest = JSON.parse(readRegularFile(join(folder, MANIFEST)).toString()) as Manifest;
      const library = join(folder, manifest.library);
      if (sha256(readRegularFile(library)) !== manifest.sha256) return undefined;
      const now = new Date();
      utimesSync(join(folder, MANIFEST), now, now);
      return { folder, library };
    } catch {
      // Not there, or half there.
      return undefined;
    }
  }

  private async make(folder: string, wanted: Wanted, build: (folder: string) => Promise<void>) {
    try {
      const aside = this.newFolder();
      try {
        await build(aside);
        this.describe(aside, wanted, this.digest(aside, wanted));
      } catch (error) {
        this.keepFailed(aside, wanted);
        throw error;
      }
      rmSync(this.failed(wanted), { recursive: true, force: true });
      const entry = this.place(aside, folder);
      this.bound();
      return entry;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      if (isDiskFull(code)) throw diskFullError(wanted.name, this.path);
      const { message } = error as Error;
      throw new InterruptedBuild(`${wanted.name}: the cache can't be written: ${message}.`, { cause: error });
    }
  }

  /** Drops what is too much. The entry is there and stays, whatever goes wrong here. */
  private bound(): void {
    try {
      dropOld(this.path, this.folder.limit);
    } catch {
      // What could not be dropped now is looked at with the next addition.
    }
  }

  private describe(folder: string, wanted: Wanted, digest: string): void {
    const { kind, name, compiler } = wanted;
    const library = this.libraryName(wanted);
    const manifest: Manifest = { kind, name, library, sha256: digest, compiler };
    writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`);
  }

  private digest(folder: string, wanted: Wanted): string {
    const library = join(folder, this.libraryName(wanted));
    if (existsSync(library)) return sha256(readRegularFile(library));
    throw new CompilerError(`${wanted.name}: ${wanted.compiler} ended without an error, and made nothing.`);
  }

  /** What there is of a build that failed, for people. Nothing that goes wrong here hides why it did. */
  private keepFailed(aside: string, wanted: Wanted): void {
    const kept = this.failed(wanted);
    try {
      this.describe(aside, wanted, '');
      this.remove(kept);
      renameSync(aside, kept);
    } catch {
      rmSync(aside, { recursive: true, force: true });
    }
  }

  /** A folder that no other process writes in. */
  private newFolder(): string {
    const folder = join(this.path, `.build-${process.pid}-${randomBytes(6).toString('hex')}`);
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }

  /** Renames a finished entry to its place. Another process may have been faster: then its entry is taken. */
  private place(aside: string, folder: string): Entry {
    for (let attempt = 0; attempt < 10; attempt++) {
      try {
        renameSync(aside, folder);
      } catch (error) {
        if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      }
      const placed = this.findIn(folder);
      if (placed !== undefined) {
        rmSync(aside, { recursive: true, force: true });
        return placed;
      }
      // What stands there is damaged.
      this.remove(folder);
    }
    throw new CompilerError(`${folder} can't be written: something else keeps changing it.`);
  }

  /** Removes a folder in one step for those who look, then what was in it. */
  private remove(folder: string): void {
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) return;
    const aside = join(this.path, `.build-${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      renameSync(folder, aside);
    } catch {
      // Someone else has just removed it.
      return;
    }
    rmSync(aside, { recursive: true, force: true });
  }
}
