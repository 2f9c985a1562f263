/** @file The experiments of this repository, as tests look at them: found in the source, configured, built. */
import { fileURLToPath } from 'node:url';
import type { MeshExperiment } from '../../experiments/modelParams.js';
import { type ConfiguredExperiment, configure, type Override } from '../../src/cli/index.js';
import { sizeOf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { resolveExperiment } from '../../src/registry/index.js';
import { scanExperiments } from '../../src/registry/names/discovery.js';

export const directories = [fileURLToPath(new URL('../../experiments', import.meta.url))];

/** Names of all experiments. */
export const names = scanExperiments(directories).map(({ name }) => name);

/** Names of those that Pax ships. */
export const paxNames = names.filter((name) => /^(c4|c4Multislice|lmCloud)\./.test(name));

/** An experiment with its configs. */
export async function configured(name: string, overrides: Override[] = []): Promise<ConfiguredExperiment> {
  return configure(await resolveExperiment(name, directories), overrides);
}

/** One of those that Pax ships, with its constants. */
export async function meshExperiment(name: string): Promise<MeshExperiment> {
  return (await configured(name)).experiment as MeshExperiment;
}

/** Values in all variables of the model, which is built and not initialised. */
export function countParameters({ task }: ConfiguredExperiment): number {
  return build(task).variables.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
}
