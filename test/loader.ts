/** @file The TypeScript loader of processes that tests start. */
import { afterAll, beforeAll, inject, vi } from 'vitest';

/** What node imports first so that a process, and all that it starts, may run TypeScript. */
export const typescript = new URL('typescript.js', import.meta.url).href;

/** This environment with `more`, in which node runs TypeScript. */
export function typescriptEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env = { ...process.env, ...more };
  return { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} --import ${typescript}`.trim() };
}

/** The same for the product's own commands, which load the rooms of src as bundles. */
export function commandEnvironment(more?: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...typescriptEnvironment(more), LUTHIER_TEST_ROOMS: inject('rooms') };
}

/** Has the processes that the product starts from the tests of this file load TypeScript so, too. */
export function withCommandEnvironment(): void {
  beforeAll(() => {
    const { NODE_OPTIONS, LUTHIER_TEST_ROOMS } = commandEnvironment();
    vi.stubEnv('NODE_OPTIONS', NODE_OPTIONS);
    vi.stubEnv('LUTHIER_TEST_ROOMS', LUTHIER_TEST_ROOMS);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
  });
}
