/** @file Effects of the flags of a run: the option of the job that each sets, and whether runs of a sweep inherit it. */
import { expect, test } from 'vitest';
import { flagTable, parseFlags } from '../../../src/cli/run/flags.js';
import { jobSettings } from '../../../src/cli/run/runFlags.js';

/** Flags that set an option of the job, with a value, the option and its value; every run of a sweep inherits them. */
const settings: Readonly<Record<string, readonly [text: string, option: string, value: unknown]>> = {
  exp: ['--exp=lm.Small', 'exp', 'lm.Small'],
  mode: ['--mode=train_and_eval', 'mode', 'train_and_eval'],
  num_threads: ['--num_threads=3', 'numThreads', 3],
  device: ['--device=gpu', 'device', 'gpu'],
  engine: ['--engine=onnx', 'engine', 'onnx'],
  peak_tflops: ['--peak_tflops=0.5', 'peakTflops', 0.5],
  checkpoint: ['--checkpoint=out/run', 'checkpoint', 'out/run'],
  restore_previous_checkpoint: ['--restore_previous_checkpoint', 'restorePreviousCheckpoint', true],
  checkpoint_todelete_subdir: ['--checkpoint_todelete_subdir=old', 'checkpointTodeleteSubdir', 'old'],
  restore_changed: ['--restore_changed=dry_run', 'restoreChanged', 'dry_run'],
  profile: ['--profile', 'profile', true],
  tap: ['--tap=lm/**', 'taps', { patterns: ['lm/**'], isTapped: expect.any(Function), values: false }],
  tap_steps: ['--tap_steps=2-3', 'taps', undefined],
  tap_values: ['--tap_values', 'taps', undefined],
  debug: ['--debug=nan', 'debug', 'nan'],
};
/** Flags of the modes that read checkpoints, which no sweep has. */
const decoding = [
  'eval_during_decode',
  'restore_checkpoint_dir',
  'restore_checkpoint_step',
  'wait_for_training',
];
/** Flags of the command alone. */
const own: Readonly<Record<string, string>> = {
  job_log_dir: '--job_log_dir=out/x',
  set: '--set=b=1',
  unset: '--unset=b',
  fiddler: '--fiddler=f(1)',
  config_file: '--config_file=a.yaml',
  sweep: '--sweep=c=1,2',
  sweep_parallel: '--sweep_parallel=2',
  dump: '--dump=tree',
  help: '--help',
};
/** Flags of a search, which no sweep has. */
const searching = ['study', 'num_trials'];
const needs = (name: string): string[] => (/^tap_/.test(name) ? ['--tap=lm/**'] : []);
const job = (...argv: string[]): Record<string, unknown> => jobSettings(parseFlags(argv));
const inherited = (...argv: string[]) => parseFlags(['--sweep=a=1,2', ...argv]).common;

test('every flag has a row here', () => {
  expect([...Object.keys(settings), ...Object.keys(own), ...decoding, ...searching].sort()).toEqual(
    Object.keys(flagTable).sort(),
  );
});

test.each(Object.entries(settings))('--%s is inherited by the runs of a sweep, as given', (name, [text]) => {
  expect(inherited(...needs(name), text)).toEqual([...needs(name), text]);
});

test.each(Object.entries(own))('--%s is of the command alone', (_, text) => {
  expect(inherited(text)).toEqual([]);
  expect(job('--sweep=a=1,2', text)).toEqual(job());
});

const options = Object.entries(settings).filter(([name]) => name !== 'exp' && needs(name).length === 0);
test.each(options)('--%s sets its option of the job, and no other', (_, [text, option, value]) => {
  expect(job(text)).toEqual({ ...job(), [option]: value });
});

test('flags of a search are of the command alone', () => {
  expect(parseFlags(['--study=first', '--num_trials=2', '--engine=native']).common).toEqual([
    '--engine=native',
  ]);
});

test('flags of the decode modes', () => {
  expect(job('--mode=decode', '--eval_during_decode')).toEqual({
    ...job('--mode=decode'),
    evalDuringDecode: true,
  });
  expect(job('--mode=eval', '--wait_for_training=60')).toEqual({ ...job('--mode=eval'), waitSeconds: 60 });
  for (const other of [['--mode=train'], ['--mode=eval', '--checkpoint=3']])
    expect(() => job(...other, '--wait_for_training=60')).toThrow(
      '--wait_for_training=60: it is for --mode=eval and --mode=decode without --checkpoint, which take each ' +
        'checkpoint of a run that trains.',
    );
  // The checkpoints are those of the command's jobs: checkpointsOf.
  const from = ['--restore_checkpoint_dir=out/x', '--restore_checkpoint_step=3'];
  expect(job('--mode=decode', ...from)).toEqual(job('--mode=decode'));
});

test('of a job without flags', () => {
  expect(job()).toEqual({
    mode: 'train',
    engine: 'auto',
    device: 'cpu',
    evalDuringDecode: false,
    restorePreviousCheckpoint: false,
    profile: false,
  });
});

test('taps are of the first step, or of those that are named, and write values on request', () => {
  const tapped = (...argv: string[]) => {
    const { taps } = jobSettings(parseFlags(['--tap=a', '--tap=b', ...argv]));
    return { ...taps!, isTapped: [1, 2, 3, 4, 5].filter((step) => taps!.isTapped(step)) };
  };
  expect(tapped()).toEqual({ patterns: ['a', 'b'], isTapped: [1], values: false });
  expect(tapped('--tap_steps=2-3,5', '--tap_values')).toEqual({
    patterns: ['a', 'b'],
    isTapped: [2, 3, 5],
    values: true,
  });
});
