/** @file The command line's grammar and its error messages. */
import { expect, test } from 'vitest';
import { flagsHelp, flagTable, parseFlags } from '../src/flags.js';

const flagNames = Object.keys(flagTable)
  .map((f) => `--${f}`)
  .join(', ');

test('both ways of writing a value, defaults, and --set in order', () => {
  const flags = parseFlags([
    '--exp=lm.Small',
    '--job_log_dir',
    'out/x',
    '--set',
    'numLayers=6',
    '--set=task.train.numTrainSteps=10',
    '--num_threads=2',
    '--peak_tflops=0.5',
    '--restore_previous_checkpoint',
  ]);
  expect(flags).toEqual({
    exp: 'lm.Small',
    jobLogDir: 'out/x',
    mode: 'train',
    device: 'cpu',
    engine: 'auto',
    set: [
      { path: 'numLayers', text: '6', origin: '--set numLayers=6' },
      { path: 'task.train.numTrainSteps', text: '10', origin: '--set task.train.numTrainSteps=10' },
    ],
    numThreads: 2,
    peakTflops: 0.5,
    restorePreviousCheckpoint: true,
    help: false,
  });
});

test('of a flag given twice the last one counts', () => {
  expect(parseFlags(['--mode=train', '--mode=eval']).mode).toBe('eval');
});

test('a value of --set may contain = and be empty', () => {
  expect(parseFlags(['--set', 'a=b=c', '--set', 'd=']).set.map((s) => s.text)).toEqual(['b=c', '']);
});

test.each([
  [
    ['--mode=trian'],
    "--mode: expected one of train, eval, decode, decode_once, train_and_eval, train_and_decode; got 'trian'. " +
      "Did you mean 'train'?",
  ],
  [['--exq=x'], `Unknown flag --exq. Did you mean '--exp'? The flags are: ${flagNames}.`],
  [['--zzzzzzzzz'], `Unknown flag --zzzzzzzzz. The flags are: ${flagNames}.`],
  [['lm.Small'], "Unexpected argument 'lm.Small': flags are written --name=value."],
  [['--exp'], '--exp: expected a value: --exp=NAME.'],
  [['--exp', '--mode=eval'], '--exp: expected a value: --exp=NAME.'],
  [['--exp='], "--exp: expected a value; got ''."],
  [['--help=yes'], "--help: takes no value; got 'yes'."],
  [['--num_threads=1.5'], "--num_threads: expected a positive integer; got '1.5'."],
  [['--num_threads=0'], "--num_threads: expected a positive integer; got '0'."],
  [['--peak_tflops=fast'], "--peak_tflops: expected a positive number; got 'fast'."],
  [['--device=tpu'], "--device: expected one of cpu, gpu; got 'tpu'. Did you mean 'cpu'?"],
  [
    ['--set', 'numLayers'],
    '--set numLayers: expected path=value, for example --set task.train.numTrainSteps=100.',
  ],
])('%j is a usage error', (argv, message) => {
  expect(() => parseFlags(argv)).toThrow(expect.objectContaining({ name: 'UsageError', message }));
});

test('--help names every flag', () => {
  for (const name of Object.keys(flagTable)) expect(flagsHelp()).toContain(`--${name}`);
});
