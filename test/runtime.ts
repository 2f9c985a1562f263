/** @file The native runtime, compiled once before the first test: workers that begin together would each compile it. */
import type { TestProject } from 'vitest/node';
import { openToolchain } from '../src/compiler/native/toolchain/index.js';

/** Once before the first test. What goes wrong here is for the tests to tell. */
export default async function compileRuntime({ config }: TestProject): Promise<void> {
  await openToolchain({ ...process.env, ...config.env }).catch(() => undefined);
}
