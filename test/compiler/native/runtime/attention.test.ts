/** @file Attention of the native runtime against loops in doubles, by every microkernel, under sanitizers. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../command.js';
import { execute, hasCompiler } from '../compilerSupport.js';
import { buildCheck } from '../runtimeSupport.js';

const check = fileURLToPath(new URL('attentionCheck.c', import.meta.url));
const kernels = ['portable', 'avx2', 'avx512', 'avx512bf16'];
const parts = ['random', 'threads', 'slices', 'long', 'empty', 'nan'];

// Without the machine's instructions, loops are what other CPUs run.
describe.skipIf(!hasCompiler).each([
  { instructions: 'of this machine', machine: true, sources: /^(gemm.*|attention.*|team)\.c$/ },
  { instructions: 'of any machine', machine: false, sources: /^(gemm|gemmP.*|attention.*|team)\.c$/ },
])('attention, instructions $instructions', ({ machine, sources }) => {
  let program = '';
  beforeAll(async () => {
    program = await buildCheck(check, sources, machine, temporaryDirectory());
  });

  describe.each(machine ? kernels : ['portable'])('%s', (kernel) => {
    it.each(parts)('%s', async (part) => {
      const { stdout } = await execute(program, [kernel, part], { timeout: 60_000 });
      expect(['', `${kernel}: not here\n`]).toContain(stdout);
    });
  });
});
