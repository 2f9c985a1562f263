/** @file Fresh random programs on each engine against the oracle, and the C that they become under sanitizers. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { expectAgreement } from '../compiler/agreement.js';
import { BFLOAT16, FLOAT32, SECOND } from '../compiler/campaign.js';
import { engines } from '../compiler/engines.js';
import { compilerPath, execute, hasSanitizer } from '../compiler/native/compilerSupport.js';
import { typescript } from '../typescriptEnvironment.js';
import { isShort, seed, title, tries } from './campaign.js';

const programs = Number(process.env.PROGRAMS ?? tries(1000, 8));

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)(title('agrees with the oracle'), async () => {
    await expectAgreement({ engine, programs, seed }, FLOAT32);
  });

  test.skipIf(!available)(title('agrees with the oracle to the bit where numbers are exact'), async () => {
    await expectAgreement({ engine, programs: Math.ceil(programs / 2), seed, exact: true }, 0);
  });

  test.skipIf(!available)(title('agrees with the oracle in bfloat16'), async () => {
    const plan = { engine, precision: 'bfloat16', programs: Math.ceil(programs / 4), seed } as const;
    await expectAgreement(plan, BFLOAT16);
  });

  test.skipIf(!available)(title('agrees with the oracle in gradients of gradients'), async () => {
    const plan = { engine, programs: Math.ceil(programs / 4), seed, order: 2 } as const;
    await expectAgreement(plan, SECOND);
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

/**
 * The compiler's path, wrapped so that what is asked for last is quick to compile: sanitizers see the same accesses. Few
 * programs take less time than compiling the runtime.
 */
function quickCompiler(): string {
  const path = join(folder, 'cc');
  const quick = isShort ? '-O0' : '-O1 -fno-tree-vectorize';
  const text = `#!/bin/sh\nexec '${compilerPath()}' "$@" ${quick}\n`;
  writeFileSync(path, text, { mode: 0o700 });
  return path;
}

test.skipIf(!sanitized)(
  title(`native, under sanitizers${sanitized ? '' : ' (the C compiler found has none)'}`),
  async () => {
    const [count, twice] = [Math.ceil(programs / tries(1, 2)), Math.ceil(programs / 20)];
    const numbers = [count, twice, seed].map(String);
    const args = ['--import', typescript, 'test/faults/sanitizedProgram.ts', ...numbers];
    const { stdout } = await execute(process.execPath, args, {
      env: {
        ...process.env,
        CC: `${quickCompiler()} -fsanitize=address,undefined -fno-sanitize-recover=all`,
        LD_PRELOAD: await sanitizerLibraries(),
        ASAN_OPTIONS: 'detect_leaks=0',
      },
      maxBuffer: 1 << 26,
    });
    expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toEqual({ programs: count + twice, failures: [] });
  },
);
