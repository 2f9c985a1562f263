/** @file The experiment that a command is about, with its configs. */
import { type ConfiguredExperiment, configure, type Override } from '../cli/index.js';
import { type ResolvedExperiment, registerExports, resolveExperiment } from '../registry/index.js';
import type { Arguments } from './command.js';

/** The experiment called `name`; where flags change it, they can name the classes of the library, too. */
export async function resolveFor(name: string, changes: readonly Override[]): Promise<ResolvedExperiment> {
  const resolved = await resolveExperiment(name);
  // Experiments are made of it: it is loaded by now.
  if (changes.length > 0) registerExports(await import('../index.js'));
  return resolved;
}

/** A resolved experiment with its configs, changed as the flags say; warnings go to the terminal. */
export function configureResolved(
  resolved: ResolvedExperiment,
  { changes, warn }: Pick<Arguments, 'changes' | 'warn'>,
): ConfiguredExperiment {
  const configured = configure(resolved, changes);
  for (const warning of configured.warnings) warn(warning);
  return configured;
}

/** The experiment called `name` with its configs, changed as the flags say; warnings go to the terminal. */
export async function configureFor(
  name: string,
  args: Pick<Arguments, 'changes' | 'warn'>,
): Promise<ConfiguredExperiment> {
  return configureResolved(await resolveFor(name, args.changes), args);
}
