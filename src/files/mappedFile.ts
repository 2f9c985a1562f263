/** @file Files in memory without being read: the system reads pages as they are used, and may forget them again. */
import { fstatSync, statfsSync } from 'node:fs';
import { loadKoffi } from '../system/index.js';

/**
 * An open file's bytes. The file may be closed and its name removed, but not shortened: what reads behind its end is killed by
 * the system. What is written to the bytes stays in this process.
 *
 * @returns undefined where the system refuses, and for a file of another machine, which may vanish while it is in use.
 */
export interface MapFile {
  (file: number, path: string): ArrayBuffer | undefined;
  /** Takes bytes that were read, and not written, out of this process's memory; whoever reads them again has them. */
  forget(bytes: ArrayBuffer, start: number, length: number): void;
}

const [PROT_READ, PROT_WRITE, MAP_PRIVATE, MADV_DONTNEED] = [1, 2, 2, 4];
/** Bytes of the largest pages that a system has, in kernels of 64-bit ARM. */
const PAGE = 1 << 16;
/** mmap(2)'s answer where it fails. */
const MAP_FAILED = 2n ** 64n - 1n;

/** Types of file systems by statfs(2): NFS, SMB, CIFS, SMB 2, FUSE, 9P, Ceph, Lustre, AFS. */
const REMOTE: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400, 0x0bd00bd0, 0x5346414f,
]);

let loading: Promise<MapFile | undefined> | undefined;

/** mmap(2) of the C library; undefined where the system has none, or no C function can be called. */
export function loadMapFile(): Promise<MapFile | undefined> {
  loading ??= process.platform === 'win32' ? Promise.resolve(undefined) : load().catch(() => undefined);
  return loading;
}

async function load(): Promise<MapFile> {
  const koffi = await loadKoffi();
  const library = koffi.load(null);
  const map = library.func(
    'void *mmap(void *address, size_t length, int protection, int flags, int file, int64_t offset)',
  );
  const unmap = library.func('int munmap(void *address, size_t length)');
  const unused = new FinalizationRegistry<readonly [bigint, number]>(([address, size]) =>
    unmap(address, size),
  );
  const advise = library.func('int madvise(void *address, size_t length, int advice)');
  const addresses = new WeakMap<ArrayBuffer, bigint>();
  const mapFile = (file: number, path: string): ArrayBuffer | undefined => {
    const { size } = fstatSync(file);
    if (size === 0 || REMOTE.has(statfsSync(path).type)) return undefined;
    const address = map(null, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) as bigint;
    if (address === MAP_FAILED) return undefined;
    const bytes = koffi.view(address, size);
    unused.register(bytes, [address, size]);
    addresses.set(bytes, address);
    return bytes;
  };
  const forget = (bytes: ArrayBuffer, start: number, length: number): void => {
    const [first, end] = [Math.floor(start / PAGE) * PAGE, start + length];
    advise(addresses.get(bytes)! + BigInt(first), end - first, MADV_DONTNEED);
  };
  return Object.assign(mapFile, { forget });
}
