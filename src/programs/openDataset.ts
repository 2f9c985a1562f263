/** @file Opens the inputs of a job. */
import { type Config, classOf, iterate } from '../hparams/index.js';
import * as inputs from '../inputs/index.js';
import type { JobOptions } from './options.js';

const builtIn = new Set<unknown>(Object.values(inputs));

/**
 * Opens a dataset. Its prefetch thread loads the experiment's module only where the dataset has classes of its own:
 * an experiment brings the whole framework with it, which would keep the thread busy for the first steps.
 */
export function openDataset(options: JobOptions, dataset: Config<inputs.BaseInput>): inputs.InputSource {
  const classes = iterate(dataset, { defaults: true }).map(({ config }) => classOf(config));
  const modules = classes.every((cls) => builtIn.has(cls)) ? [] : [options.moduleUrl];
  return inputs.openInput(dataset, { modules });
}
