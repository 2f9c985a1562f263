/** @file Rooms that configs are made from, by the sub-path of the package that exports each. */
import * as decoding from './decoding/index.js';
import * as hparams from './hparams/index.js';
import * as inputs from './inputs/index.js';
import * as layers from './layers/index.js';
import * as learners from './learners/index.js';
import * as models from './models/index.js';
import * as search from './search/index.js';
import * as tasks from './tasks/index.js';

export const rooms = { decoding, hparams, inputs, layers, learners, models, search, tasks };

/** Makes the configurable classes of all rooms known by name to flags and files. */
export function registerLibrary(): void {
  for (const exports of Object.values(rooms)) {
    hparams.registerExports(exports);
    hparams.markLibrary(Object.values(exports).filter((value) => typeof value === 'function'));
  }
}
