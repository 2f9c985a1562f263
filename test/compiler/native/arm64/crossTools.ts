/** @file A cross compiler and an emulator for ARM64: those on PATH, or what scripts/setup-arm64.sh has made. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

/** An ARM64 processor, by the compiler's flags and the emulator's name for one with its instructions. */
export interface Processor {
  readonly flags: readonly string[];
  readonly emulated: string;
}

/** NEON, as every ARM64 processor has it. */
export const neon: Processor = { flags: ['-mcpu=cortex-a53'], emulated: 'cortex-a53' };

/** As in use, but in programs without shared libraries, which the emulator would look for in the system's folders. */
export const targetOf = ({ flags }: Processor): Target => ({
  compiler: compiler!,
  machine: flags,
  flags: ['-static'],
});

/** The command that runs a program. */
export const emulating = ({ emulated }: Processor, program: string): [string, string[]] => [
  emulator!,
  ['-cpu', emulated, program],
];
