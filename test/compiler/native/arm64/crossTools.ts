/** @file A cross compiler and an emulator for ARM64: those on PATH, or what scripts/setup-arm64.sh has made. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machineFlags } from '../../../../src/compiler/native/toolchain/compilerFlags.js';
import type { Target } from '../runtimeSupport.js';

const made = fileURLToPath(new URL('../../../../out/arm64/bin', import.meta.url));

const find = (name: string): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter), made]
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));

const compiler = find('aarch64-linux-gnu-gcc');
const emulator = find('qemu-aarch64');

/** Whether ARM64 programs can be built and run here. */
export const hasCrossTools = compiler !== undefined && emulator !== undefined;

/** For the titles of tests that are skipped. */
export const whyWithout = hasCrossTools
  ? ''
  : ` (skipped: no ${compiler === undefined ? 'aarch64-linux-gnu-gcc' : 'qemu-aarch64'}; run scripts/setup-arm64.sh)`;

/** As in use, but without shared libraries, which the emulator would look for in the system's folders. */
export const crossTarget = (): Target => ({
  compiler: compiler!,
  machine: machineFlags('', 'arm64', 'linux'),
  flags: ['-static'],
});

/** The command that runs a program, on a processor that has nothing but what all have. */
export const emulating = (program: string): [string, string[]] => [
  emulator!,
  ['-cpu', 'cortex-a53', program],
];
