/** @file Arrays whose memory ends, or begins, at a page that nothing may touch: what reaches one element too far is killed. */

import type { BoundArray } from '../../src/compiler/index.js';
import { loadKoffi } from '../../src/system/index.js';

const [NONE, READ, READ_WRITE] = [0, 1, 3];
const [PRIVATE, ANONYMOUS] = [0x02, 0x20];
/** A multiple of the pages of every Linux. */
const PAGE = 1 << 16;

/** Which end of an array lies at a closed page. */
export type Side = 'end' | 'start';

/** Makes guarded arrays and takes their memory back. */
export interface GuardedMemory {
  /** A copy at such a place; one that is `readOnly` may not be written either. */
  copy<T extends BoundArray>(array: T, side: Side, readOnly: boolean): T;
  /** No array made before may be used any more. */
  release(): void;
}

/** Linux alone: the constants are its. */
export async function openGuardedMemory(): Promise<GuardedMemory> {
  const koffi = await loadKoffi();
  const libc = koffi.load(null);
  const mmap = libc.func(
    'void *mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t from)',
  );
  const mprotect = libc.func('int mprotect(void *at, size_t bytes, int protection)');
  const munmap = libc.func('int munmap(void *at, size_t bytes)');
  let mapped: [at: bigint, bytes: number][] = [];

  function copy<T extends BoundArray>(array: T, side: Side, readOnly: boolean): T {
    const open = Math.max(1, Math.ceil(array.byteLength / PAGE)) * PAGE;
    const at: bigint = mmap(null, open + 2 * PAGE, NONE, PRIVATE | ANONYMOUS, -1, 0);
    if (BigInt.asIntN(64, at) === -1n) throw new Error(`mmap has no ${open + 2 * PAGE} bytes.`);
    mapped.push([at, open + 2 * PAGE]);
    const middle = at + BigInt(PAGE);
    const protect = (protection: number): void => {
      if (mprotect(middle, open, protection) !== 0) throw new Error('mprotect failed.');
    };
    protect(READ_WRITE);
    const Type = array.constructor as new (buffer: ArrayBuffer, at: number, length: number) => T;
    const offset = side === 'end' ? open - array.byteLength : 0;
    const result = new Type(koffi.view(middle, open), offset, array.length);
    result.set(array);
    if (readOnly) protect(READ);
    return result;
  }

  return {
    copy,
    release: () => {
      for (const [at, bytes] of mapped) munmap(at, bytes);
      mapped = [];
    },
  };
}
