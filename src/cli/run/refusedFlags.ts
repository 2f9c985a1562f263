/** @file Pax's flags that have no counterpart here, each with the reason. */

const noTensorFlow = 'inputs are read and prepared ahead by threads of the run (prefetchBatches of an input)';
const byMpi =
  'ranks are started by MPI (mpirun -np N npx luthier train …, or srun), and each uses the cores that it is given (--num_threads)';
const fiddle = 'configs are changed by --set PATH=VALUE, --fiddler NAME(ARG=VALUE) and --config_file FILE';
const saving = 'checkpoints are safetensors files, always written by a worker while training goes on';

/** Reasons by flag. */
export const refusedFlags: Readonly<Record<string, string>> = {
  eval_on_test: 'use --mode=train_and_eval',
  decode_during_train: 'use --mode=train_and_decode',
  ...all('fdl fdl_config fdl_config_file fdl_help fdl_flags', fiddle),
  ...all(
    'maybe_use_persistence_checkpointing jax_fully_async_checkpoint tensorstore_use_ocdbt pmap_use_tensorstore',
    saving,
  ),
  enable_checkpoint_saving:
    'a run always saves its end, so that it can be evaluated and resumed (task.train.saveIntervalSteps spaces the others)',
  async_timeout_secs: `${saving}; the next one waits for it, and the end of the run too`,
  exit_after_ondemand_checkpoint:
    'a run that a signal stops always saves and exits, with the code of the signal',
  enforce_restore_shape_check:
    'shapes are always checked; task.train.initFromCheckpoint loads part of a checkpoint',
  decode_output_pickle:
    'decoded examples are written as JSON lines alone, since reading a pickle runs the code in it (loadDecoderOutputs reads them)',
  ...all(
    'enable_summary_writer pax_only_aggregate_summaries',
    'summaries are written every task.train.summaryIntervalSteps',
  ),
  jax_profiler_port: 'use --profile, which needs no server',
  jax_traceback_filtering_option: 'messages name the layer, its path and the line of the experiment',
  globally_use_hardware_rng:
    'random numbers are Threefry on every machine, so that a run has the same bits anywhere (task.train.randomSeed)',
  enable_auto_sharding: 'task.mesh says how tensors are split over ranks',
  startup_random_jitter_max_secs:
    'ranks begin when their launcher starts them, and rank 0 alone opens files of the run',
  ...all('multiprocess_gpu server_addr num_hosts host_idx', byMpi),
  ...all(
    'controller_mode tuner_group',
    'every process with the same --study asks for trials by itself, and each trial trains and evaluates in one process',
  ),
  metrics_from: "the metric of a search's searchReward has the name of its program, which --mode runs",
  pythia_port: 'algorithms of a search run in its own process',
  tfds_data_dir: "files are fields of inputs: --set 'datasets[*].files=…'",
  ...all(
    'tf_data_service_port tf_data_service_dispatcher_address tf_data_service_worker_address ' +
      'tf_data_service_data_transfer_protocol tf_data_service_data_transfer_address tf_data_service_work_dir ' +
      'tf_data_service_fault_tolerant_mode tf_data_service_worker_addresses tf_data_service_address',
    noTensorFlow,
  ),
};

function all(names: string, reason: string): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, reason]));
}
