/** @file The C compiler for tests: found as the product finds it, called without its cache. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { open } from '../../../src/compiler/native/library.js';
import { findCompiler } from '../../../src/compiler/native/toolchain/compiler.js';
import { openToolchain } from '../../../src/compiler/native/toolchain/index.js';

const found = await findCompiler(process.env);

/** Tests that need a compiler are skipped where there is none. */
export const hasCompiler = 'command' in found;

/** Path of the compiler. */
export function compilerPath(): string {
  if ('reason' in found) throw new Error(found.reason);
  return found.command;
}

/** Where the runtime's C files are. */
export const runtimeSources = fileURLToPath(
  new URL('../../../src/compiler/native/runtime/', import.meta.url),
);

/** Bytes of packed operands that all programs of the process share at present. */
export async function sharedBytes(): Promise<number> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) throw new Error(toolchain.reason);
  const [bytes] = await open(toolchain.runtime.library, 'int64_t lt_shared_bytes()');
  return Number(bytes!());
}

/** Runs a program to its end; the error of one that fails says what it wrote. */
export const execute = promisify(execFile);

/** Whether the compiler can make and run programs under a sanitizer. */
export async function hasSanitizer(name: string, folder: string): Promise<boolean> {
  if (!hasCompiler) return false;
  const source = join(folder, 'empty.c');
  writeFileSync(source, 'int main(void) { return 0; }\n');
  try {
    await execute(compilerPath(), [`-fsanitize=${name}`, source, '-o', join(folder, 'empty')]);
    await execute(join(folder, 'empty'), []);
    return true;
  } catch {
    return false;
  }
}
