/** @file The text that stands for a CPU: the same for the same abilities, whatever the kernel says besides. */
import { expect, it } from 'vitest';
import { machineFlags } from '../../../../src/compiler/native/toolchain/compilerFlags.js';
import {
  cpuFeatures,
  describeCpuinfo,
  shortCpu,
} from '../../../../src/compiler/native/toolchain/cpuFeatures.js';

const x86 = (processor: number, flags: string): string =>
  `processor\t: ${processor}\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n` +
  `cpu MHz\t\t: ${2000 + processor}.125\nflags\t\t: ${flags}\nbugs\t\t: spectre_v1\n\n`;

it('contains the extensions that compilers use, sorted', () => {
  const flags = 'fpu sse2 tsc_known_freq avx512_bf16 fma avx2 hypervisor avx512f amx_bf16';
  const expected = 'AuthenticAMD 26 17 amx_bf16 avx2 avx512_bf16 avx512f fma sse2';
  expect(describeCpuinfo(x86(0, flags) + x86(1, 'sse2'))).toBe(expected);
  expect(describeCpuinfo(x86(0, 'avx2 avx512f sse2 fma arat avx512_bf16 amx_bf16'))).toBe(expected);
});

it('reads ARM and unknown formats', () => {
  const arm =
    'processor\t: 0\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd evtstrm aes atomics asimddp sve i8mm bf16\n' +
    'CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n';
  expect(describeCpuinfo(arm)).toBe('0x41 0xd4f aes asimd asimddp atomics bf16 fp i8mm sve');
  expect(describeCpuinfo('')).toBe('');
});

it('is the same each time', async () => {
  const text = await cpuFeatures();
  expect(text.startsWith(`${process.arch} `)).toBe(true);
  expect(await cpuFeatures()).toBe(text);
});

it('chooses the flags for this machine', () => {
  expect(machineFlags('x64 A 1 2 avx2 avx512f', 'x64')).toEqual([
    '-march=native',
    '-mprefer-vector-width=512',
  ]);
  expect(machineFlags('x64 A 1 2 avx2', 'x64')).toEqual(['-march=native', '-mprefer-vector-width=256']);
  expect(machineFlags('arm64 0x41 sve', 'arm64', 'linux')).toEqual(['-march=armv8-a']);
  expect(machineFlags('arm64 Apple M1', 'arm64', 'darwin')).toEqual([]);
  expect(machineFlags('riscv64', 'riscv64')).toEqual([]);
});

it('is displayed by its model and the extensions that results depend on', () => {
  const features = 'x64 AuthenticAMD 26 17 aes avx avx2 avx512_bf16 avx512f fma sse2';
  expect(shortCpu(features, 'AMD  EPYC 9B45 ')).toBe('AMD EPYC 9B45 (avx2 avx512_bf16 avx512f fma)');
  expect(shortCpu('arm64 0x41 0xd4f asimd bf16', '')).toBe(`${process.arch} (asimd)`);
  expect(shortCpu('x64 Intel AVX2 FMA', 'Core')).toBe('Core (avx2 fma)');
  expect(shortCpu('riscv64', 'U74')).toBe('U74');
});
