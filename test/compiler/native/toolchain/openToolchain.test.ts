/** @file Errors while the toolchain opens: those of the system are reasons to do without, those of the code are errors. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openToolchain } from '../../../../src/compiler/native/toolchain/index.js';
import { Cache } from '../../../../src/compiler/native/toolchain/programCache.js';
import { hasCompiler } from '../compilerSupport.js';

afterEach(() => void vi.restoreAllMocks());

/** What opening gives where the cache's folder fails; toolchains are kept by their environments. */
function openedDespite(error: Error): ReturnType<typeof openToolchain> {
  vi.spyOn(Cache, 'open').mockImplementation(() => {
    throw error;
  });
  return openToolchain({ ...process.env, LUTHIER_CFLAGS: `-DFAILS_BY=${error.name}` });
}

describe.skipIf(!hasCompiler)('openToolchain', () => {
  it('reports what the system refuses as the reason', async () => {
    const refused = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
    expect(await openedDespite(refused)).toEqual({ reason: 'ENOSPC: no space left' });
  });

  it('hides no defect', async () => {
    const defect = new TypeError('undefined is not a folder');
    await expect(openedDespite(defect)).rejects.toBe(defect);
  });
});
