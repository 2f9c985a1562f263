/** @file Fresh random programs on each engine against the oracle, and the C that they become under sanitizers. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BFLOAT16, expectAgreement, FLOAT32 } from '../compiler/agreement.js';
import { engines } from '../compiler/engines.js';
import { compilerPath, execute, hasSanitizer } from '../compiler/native/compilerSupport.js';
import { seed, title, tries } from './campaign.js';

const programs = Number(process.env.PROGRAMS ?? tries(1000, 100));

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)(title('agrees with the oracle'), async () => {
    await expectAgreement({ engine, programs, seed }, FLOAT32);
  });

  test.skipIf(!available)(title('agrees with the oracle in bfloat16'), async () => {
    const plan = { engine, precision: 'bfloat16', programs: Math.ceil(programs / 4), seed } as const;
    await expectAgreement(plan, BFLOAT16);
  });
});

const folder = mkdtempSync(join(tmpdir(), 'luthier-sanitized-'));
const sanitized = process.platform === 'linux' && (await hasSanitizer('address,undefined', folder));

/** Which the compiler links, and which are to be in a process before it loads what they watch. */
async function sanitizerLibraries(): Promise<string> {
  const paths = ['libasan.so', 'libubsan.so'].map(async (name) => {
    const { stdout } = await execute(compilerPath(), [`-print-file-name=${name}`]);
    return stdout.trim();
  });
  return (await Promise.all(paths)).join(' ');
}

test.skipIf(!sanitized)(
  title(`native, under sanitizers${sanitized ? '' : ' (the C compiler found has none)'}`),
  async () => {
    const count = Math.ceil(programs / 2);
    const args = ['--import', 'tsx', 'test/faults/sanitizedProgram.ts', String(count), String(seed)];
    const { stdout } = await execute(process.execPath, args, {
      env: {
        ...process.env,
        CC: `${compilerPath()} -fsanitize=address,undefined -fno-sanitize-recover=all`,
        LD_PRELOAD: await sanitizerLibraries(),
        ASAN_OPTIONS: 'detect_leaks=0',
        XDG_CACHE_HOME: folder,
      },
      maxBuffer: 1 << 26,
    });
    expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toEqual({ programs: count, failures: [] });
  },
);
