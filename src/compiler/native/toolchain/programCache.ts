/**
 * @file On-disk cache of compiled programs: addressed by hash, written atomically, bounded in size, safe among
 * processes.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularFile } from '../../../files/index.js';
import { NativeEngineError } from '../../program/tensors.js';
import { dropOld, FAILED, folderBytes, MANIFEST } from './cacheEntries.js';
import { type CacheFolder, openFolder } from './cacheFolder.js';
import { diskFullError, InterruptedBuild, isDiskFull } from './interrupted.js';
import { markUse } from './useMarks.js';

/** Manifest of an entry. */
interface Manifest {
  readonly kind: 'runtime' | 'program' | 'plan' | 'mpi';
  /** Name of the program, for display. */
  readonly name: string;
  /** Name of the file in the entry: a library, or a plan. */
  readonly library: string;
  /** sha256 of that file: one damaged by a crash or a full disk would crash the process that loads it. */
  readonly sha256: string;
  /** Version of the compiler. */
  readonly compiler: string;
}

/** A request for an entry. */
export interface Wanted {
  readonly kind: Manifest['kind'];
  readonly name: string;
  /** Everything that the entry depends on. */
  readonly dependencies: readonly string[];
  readonly compiler: string;
}

/** An existing entry. */
export interface Entry {
  readonly folder: string;
  /** Path of the library, or of the plan. */
  readonly library: string;
}

/** Name of the file in an entry, by kind. */
const libraryOf = (kind: Manifest['kind'], key: string): string => {
  if (kind === 'plan') return 'plan.json';
  const extension = process.platform === 'darwin' ? 'dylib' : 'so';
  return kind === 'runtime' ? `libluthier-${key}.${extension}` : `program.${extension}`;
};

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** The cache in one folder. */
export class Cache {
  /** Entries that this process is building. */
  private readonly making = new Map<string, Promise<Entry>>();
  /** Bytes that this process may add before it looks at all entries again. */
  private room = 0;

  private constructor(private readonly folder: CacheFolder) {}

  /**
   * Opens the cache that the environment names.
   *
   * @throws NativeEngineError where the folder belongs to another user or is open to others.
   */
  static open(env: NodeJS.ProcessEnv): Cache {
    return new Cache(openFolder(env));
  }

  get path(): string {
    return this.folder.path;
  }

  /** Why entries will not survive this process, if so. */
  get notice(): string | undefined {
    return this.folder.notice;
  }

  /** Folder that keeps the source and the compiler's messages of a failed build. */
  failed(wanted: Wanted): string {
    return join(this.path, `${FAILED}${this.key(wanted)}`);
  }

  /** Name of the file that `build` must make. */
  libraryName(wanted: Wanted): string {
    return libraryOf(wanted.kind, this.key(wanted));
  }

  /**
   * Returns an entry, building it if it is missing or damaged. It stays as long as this process lives, unless someone
   * clears the cache by hand.
   *
   * @param build makes the library in the empty folder that it is given; its errors are passed on.
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

  /** The entry, if there is an intact one. */
  find(wanted: Wanted): Entry | undefined {
    return this.findIn(this.folderOf(wanted));
  }

  private folderOf(wanted: Wanted): string {
    return join(this.path, `${wanted.kind}-${this.key(wanted)}`);
  }

  private key({ kind, name, dependencies, compiler }: Wanted): string {
    return sha256(JSON.stringify([kind, name, compiler, ...dependencies])).slice(0, 32);
  }

  /** An intact entry, marked as used now. */
  private findIn(folder: string): Entry | undefined {
    try {
      markUse(folder);
    } catch {
      // Missing, or no space for the mark: an entry that can't be marked is still used.
    }
    try {
      const manifest = JSON.parse(readRegularFile(join(folder, MANIFEST)).toString()) as Manifest;
      const library = join(folder, manifest.library);
      if (sha256(readRegularFile(library)) !== manifest.sha256) return undefined;
      const now = new Date();
      utimesSync(join(folder, MANIFEST), now, now);
      return { folder, library };
    } catch {
      // Missing or incomplete.
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
      this.bound(entry);
      return entry;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      if (isDiskFull(code)) throw diskFullError(wanted.name, this.path);
      const { message } = error as Error;
      throw new InterruptedBuild(`${wanted.name}: the cache can't be written: ${message}.`, { cause: error });
    }
  }

  /**
   * Evicts old entries. The new entry stays, whatever fails here. Looking at all entries takes longer than compiling a
   * small program where there are thousands; other processes may meanwhile add entries, too.
   */
  private bound({ folder }: Entry): void {
    const { limit } = this.folder;
    try {
      this.room -= folderBytes(folder);
      if (this.room >= 0) return;
      this.room = Math.min(Math.max(limit - dropOld(this.path, limit), limit / 64), limit / 16);
    } catch {
      // The next addition tries again.
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
    throw new NativeEngineError(
      `${wanted.name}: ${wanted.compiler} ended without an error and without a result.`,
    );
  }

  /** Keeps the remains of a failed build for inspection. Errors here must not hide the build's. */
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

  /** A folder that no other process writes to. */
  private newFolder(): string {
    const folder = join(this.path, `.build-${process.pid}-${randomBytes(6).toString('hex')}`);
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }

  /** Renames a finished entry into place. If another process was faster, takes its entry. */
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
      // The existing entry is damaged.
      this.remove(folder);
    }
    throw new NativeEngineError(`${folder} can't be written: something else keeps changing it.`);
  }

  /** Removes a folder, atomically for observers, then its contents. */
  private remove(folder: string): void {
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) return;
    const aside = join(this.path, `.build-${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      renameSync(folder, aside);
    } catch {
      // Another process has just removed it.
      return;
    }
    rmSync(aside, { recursive: true, force: true });
  }
}
