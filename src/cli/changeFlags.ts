/** @file Flags that change an experiment before it is used, applied in the order given. */

import type { FlagTable } from './flagTable.js';
import { parseFiddler, parseFile, parseSet, parseSweep, parseUnset } from './overrides.js';

/** --set, --unset, --fiddler and --config_file. */
export const overrideFlags = {
  set: {
    key: 'changes',
    value: 'PATH=VALUE',
    repeated: true,
    about:
      'Sets a constant of the experiment (numLayers=6) or a field of its configs (task.train.numTrainSteps=100, ' +
      'datasets[0].batchSize=8). The flags that change the experiment are repeatable, and applied in order.',
    parse: parseSet,
  },
  unset: {
    key: 'changes',
    value: 'PATH',
    repeated: true,
    about: 'Brings back the default of a constant or a field, or takes out an entry of a list or a record.',
    parse: parseUnset,
  },
  fiddler: {
    key: 'changes',
    value: 'NAME(ARG=VALUE,…)',
    repeated: true,
    about: "Calls a function that the experiment's file exports, to edit the configs.",
    parse: parseFiddler,
  },
  config_file: {
    key: 'changes',
    value: 'FILE',
    repeated: true,
    about: 'Sets what a YAML or JSON file says, or takes the configs that --dump=json or --dump=yaml wrote.',
    parse: parseFile,
  },
} satisfies FlagTable;

/** --sweep. */
export const sweepFlags = {
  sweep: {
    key: 'changes',
    value: 'PATH=VALUES',
    repeated: true,
    about:
      'One run for each value (1e-3,1e-4 or 1..4 or 0..1:0.25 or log(1e-4,1e-1,4)), or for each entry of what ' +
      "NAME(ARG=VALUE,…) of the experiment's file returns; of several sweeps, for each combination. " +
      'Each run has a directory in --job_log_dir.',
    parse: parseSweep,
  },
} satisfies FlagTable;
