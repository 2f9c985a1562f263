/** @file The product's commands in processes that tests start: their rooms are loaded as bundles. */
import { afterAll, beforeAll, inject, vi } from 'vitest';
import { typescriptEnvironment } from './typescriptEnvironment.js';

/** The environment of the product's own commands, which load the rooms of src as bundles. */
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

/** Has the processes that are started meanwhile load the sources instead: of a class in a bundle, nobody knows its place. */
export async function withSources<T>(act: () => Promise<T>): Promise<T> {
  vi.stubEnv('LUTHIER_TEST_ROOMS', undefined);
  try {
    return await act();
  } finally {
    vi.stubEnv('LUTHIER_TEST_ROOMS', inject('rooms'));
  }
}
