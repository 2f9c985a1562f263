/** @file Flags that change an experiment, applied in the order given. */

import { type FlagTable, positive } from '../commandLine/flagTable.js';
import { parseFiddler, parseFile, parseSet, parseSweep, parseUnset } from '../overrides.js';

/** --set, --unset, --fiddler and --config_file. */
export const overrideFlags = {
  set: {
    key: 'changes',
    value: 'PATH=VALUE',
    repeated: true,
    about:
      'Sets a constant of the experiment (numLayers=6) or a field of its configs (task.train.numTrainSteps=100, ' +
      "datasets[0].batchSize=8), or each that a pattern means ('task.**.keepProb=0.9': * is one level, ** any depth). " +
      'Flags that change the experiment can be repeated, and apply in order.',
    parse: parseSet,
  },
  unset: {
    key: 'changes',
    value: 'PATH',
    repeated: true,
    about: 'Restores the default of a constant or field, or removes an entry of a list or record.',
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
    about:
      'Applies the settings of a YAML or JSON file, or the configs that --dump=json or --dump=yaml wrote.',
    parse: parseFile,
  },
} satisfies FlagTable;

/** --sweep and --sweep_parallel. */
export const sweepFlags = {
  sweep: {
    key: 'changes',
    value: 'PATH=VALUES',
    repeated: true,
    about:
      'Starts one run for each value (1e-3,1e-4 or 1..4 or 0..1:0.25 or log(1e-4,1e-1,4)), or for each entry of the list ' +
      "that NAME(ARG=VALUE,…) of the experiment's file returns. Several sweeps are combined. " +
      'Each run has its own directory in --job_log_dir.',
    parse: parseSweep,
  },
  sweep_parallel: {
    key: 'sweepParallel',
    value: 'N',
    about:
      'How many runs of a sweep or trials of a study train at once, each with an equal share of the threads. Default: 1.',
    parse: positive(true),
  },
} satisfies FlagTable;
