/** @file The command line's grammar and its error messages. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { flagsHelp } from '../../../src/cli/commandLine/flagTable.js';
import { shellText } from '../../../src/cli/index.js';
import { checkpointsOf } from '../../../src/cli/run/decodeFlags.js';
import { flagTable, parseFlags } from '../../../src/cli/run/flags.js';
import { refusedFlags } from '../../../src/cli/run/refusedFlags.js';

const flagNames = Object.keys(flagTable)
  .map((f) => `--${f}`)
  .join(', ');

test('both ways of writing a value, defaults, and changes in order', () => {
  const flags = parseFlags([
    '--exp=lm.Small',
    '--job_log_dir',
    'out/x',
    '--set',
    'numLayers=6',
    '--set=task.train.numTrainSteps=10',
    '--unset=task.train.evalIntervalSteps',
    '--sweep=learningRate=1e-3,1e-4',
    '--config_file',
    'a.yaml',
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
    changes: [
      { kind: 'set', path: 'numLayers', text: '6', origin: '--set numLayers=6' },
      {
        kind: 'set',
        path: 'task.train.numTrainSteps',
        text: '10',
        origin: '--set task.train.numTrainSteps=10',
      },
      {
        kind: 'unset',
        path: 'task.train.evalIntervalSteps',
        origin: '--unset task.train.evalIntervalSteps',
      },
      { kind: 'sweep', text: 'learningRate=1e-3,1e-4', origin: '--sweep learningRate=1e-3,1e-4' },
      { kind: 'file', file: 'a.yaml', origin: '--config_file a.yaml' },
    ],
    common: ['--exp=lm.Small', '--num_threads=2', '--peak_tflops=0.5', '--restore_previous_checkpoint'],
    numThreads: 2,
    peakTflops: 0.5,
    restorePreviousCheckpoint: true,
    evalDuringDecode: false,
    profile: false,
    help: false,
  });
});

test('of a flag given twice, the last one wins', () => {
  expect(parseFlags(['--mode=train', '--mode=eval']).mode).toBe('eval');
});

const settings = (...texts: string[]) =>
  parseFlags(texts.flatMap((text) => ['--set', text])).changes.map((change) =>
    change.kind === 'set' ? [change.path, change.text] : change.kind,
  );

test('a value of --set may contain = and be empty', () => {
  expect(settings('a=b=c', 'd=')).toEqual([
    ['a', 'b=c'],
    ['d', ''],
  ]);
});

test('--set splits at the first = outside of brackets and quotes', () => {
  expect(settings(`a["x=y"].b=1`, `a['x=y']=2`, `a['it\\'s=']=3`, `a["]="].c[0]=4`)).toEqual([
    ['a["x=y"].b', '1'],
    [`a['x=y']`, '2'],
    [`a['it\\'s=']`, '3'],
    ['a["]="].c[0]', '4'],
  ]);
});

test('--dump takes a format; text by default', () => {
  expect(parseFlags(['--dump', '--exp=a']).dump).toBe('text');
  expect(parseFlags(['--dump=tree']).dump).toBe('tree');
});

test('a change can be pasted into a shell', () => {
  const given = [
    ['--set', 'a=1e-3'],
    ['--set', `a["k"]=it's`],
    ['--unset', 'datasets[0]'],
    ['--fiddler', 'scale(2, by="a b")'],
    ['--config_file', '~/x.yaml'],
    ['--sweep', 'a=1..4'],
  ];
  const { changes } = parseFlags(given.flat());
  const pasted = changes.map(shellText);
  expect(pasted).toEqual([
    '--set a=1e-3',
    `--set 'a["k"]=it'\\''s'`,
    "--unset 'datasets[0]'",
    `--fiddler 'scale(2, by="a b")'`,
    "--config_file '~/x.yaml'",
    '--sweep a=1..4',
  ]);
  const printed = execFileSync('bash', ['-c', `printf '%s\\n' ${pasted.join(' ')}`], { encoding: 'utf8' });
  expect(printed.trimEnd().split('\n')).toEqual(given.flat());
});

test.each([
  [
    ['--mode=trian'],
    "--mode: expected one of train, eval, decode, decode_once, infer, train_and_eval, train_and_decode; got 'trian'. " +
      "Did you mean 'train'?",
  ],
  [['--exq=x'], `Unknown flag --exq. Did you mean '--exp'? The flags are: ${flagNames}.`],
  [
    ['--zzzzzzzzz'],
    `Unknown flag --zzzzzzzzz. Constants and fields are set by --set NAME=VALUE. The flags are: ${flagNames}.`,
  ],
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
  [['--set', '=3'], '--set =3: expected path=value, for example --set task.train.numTrainSteps=100.'],
  [['--set', 'a[0=3'], '--set a[0=3: expected path=value, for example --set task.train.numTrainSteps=100.'],
  [['--unset', 'a=3'], '--unset a=3: expected a path alone, for example --unset task.train.numTrainSteps.'],
  [['--config_file='], "--config_file: expected the name of a file; got ''."],
  [
    ['--dump=jsn'],
    "--dump: expected one of text, tree, json, yaml, history; got 'jsn'. Did you mean 'json'?",
  ],
  [
    ['--sweep', 'numLayers'],
    '--sweep numLayers: expected path=value,value or name(arguments), for example --sweep learningRate=1e-3,1e-4.',
  ],
  [
    ['--sweep', 'a=1,2', '--mode=decode'],
    '--sweep a=1,2 and --mode=decode do not go together: a sweep trains. ' +
      'To use its models, give --job_log_dir the directory of one of its runs.',
  ],
  [
    ['--fiddler', 'scale(g(1)'],
    "--fiddler scale(g(1): Expected a comma or ')' here.\n  scale(g(1)\n            ^",
  ],
  [
    ['--fiddler', 'scale(1)(2)'],
    '--fiddler scale(1)(2): Nothing can follow the call of scale.\n  scale(1)(2)\n          ^',
  ],
  [
    ['--fiddler', 'scale(*a)'],
    '--fiddler scale(*a): Arguments cannot be spread with *.\n  scale(*a)\n        ^',
  ],
])('%j is a usage error', (argv, message) => {
  expect(() => parseFlags(argv)).toThrow(expect.objectContaining({ name: 'UsageError', message }));
});

test('--sweep_parallel is a number of runs of a sweep', () => {
  const sweep = ['--sweep', 'numLayers=1,2'];
  expect(parseFlags([...sweep, '--sweep_parallel=2']).sweepParallel).toBe(2);
  for (const bad of ['0', '-1', '1.5', 'two'])
    expect(() => parseFlags([...sweep, `--sweep_parallel=${bad}`])).toThrow(
      `--sweep_parallel: expected a positive integer; got '${bad}'.`,
    );
  expect(() => parseFlags(['--sweep_parallel=2'])).toThrow(
    '--sweep_parallel=2: it is for --sweep=PATH=VALUES or --study=NAME, which is not given.',
  );
});

test('--help names every flag', () => {
  for (const name of Object.keys(flagTable)) expect(flagsHelp(flagTable)).toContain(`--${name}`);
});

test('--checkpoint is a step, best or a path', () => {
  const checkpoint = (...argv: string[]) => parseFlags(['--mode=eval', ...argv]).checkpoint;
  expect([checkpoint(), checkpoint('--checkpoint=1200'), checkpoint('--checkpoint', 'best')]).toEqual([
    undefined,
    1200,
    'best',
  ]);
  expect(['0', '9'.repeat(15), './1', 'a\\b'].map((text) => checkpoint(`--checkpoint=${text}`))).toEqual([
    ...[0, 999_999_999_999_999, './1', 'a\\b'],
  ]);
  for (const text of ['1'.repeat(16), '1.5', 'Best'])
    expect(() => checkpoint(`--checkpoint=${text}`)).toThrow(`or a path such as ./${text}; got '${text}'.`);
  expect(() => checkpoint('--checkpoint=')).toThrow("or a path such as ./out/run; got ''.");
  expect(() => checkpoint('--checkpoint=-1')).toThrow(
    "--checkpoint: expected the step of a checkpoint, best, or a path such as ./-1; got '-1'.",
  );
  const sweep = ['--sweep', 'numLayers=1,2'];
  expect(parseFlags([...sweep, '--checkpoint=out/run']).common).toEqual(['--checkpoint=out/run']);
  expect(() => parseFlags([...sweep, '--checkpoint=best'])).toThrow(
    '--checkpoint=best and --sweep numLayers=1,2 do not go together: each run of a sweep has a directory of its own. ' +
      'Use the path of a run or a checkpoint, as --checkpoint=out/run: every run then starts from its state.',
  );
});

test('--restore_checkpoint_dir and --restore_checkpoint_step name the checkpoints of the decode modes', () => {
  const read = (...argv: string[]) => checkpointsOf(parseFlags(['--mode=decode_once', ...argv]));
  const [directory, steps] = [
    '--restore_checkpoint_dir=out/run',
    ['--restore_checkpoint_step=200', '--restore_checkpoint_step=100'],
  ];
  expect(read()).toEqual([undefined]);
  expect(read('--checkpoint=best')).toEqual(['best']);
  expect(read(...steps)).toEqual([200, 100]);
  expect(read(directory)).toEqual(['out/run']);
  expect(read('--restore_checkpoint_dir=best')).toEqual(['./best']);
  expect(read(directory, ...steps)).toEqual([join('out', 'run', '200'), join('out', 'run', '100')]);
});

test.each([
  [
    ['--mode=eval', '--restore_checkpoint_step=4'],
    '--restore_checkpoint_step=4: only for --mode=decode_once, --mode=decode and --mode=infer. ' +
      'Use --checkpoint=STEP or --checkpoint=PATH.',
  ],
  [
    ['--restore_checkpoint_dir=a'],
    '--restore_checkpoint_dir=a: only for --mode=decode_once, --mode=decode and --mode=infer. ' +
      'Use --checkpoint=STEP or --checkpoint=PATH.',
  ],
  [
    ['--eval_during_decode'],
    '--eval_during_decode: only for --mode=decode_once and --mode=decode. Use --mode=eval or --mode=train_and_eval.',
  ],
  [
    ['--mode=decode', '--restore_checkpoint_step=4', '--checkpoint=5'],
    '--restore_checkpoint_step=4 and --checkpoint=5 name the checkpoint twice: leave one out.',
  ],
  [
    ['--mode=decode', '--restore_checkpoint_step=last'],
    "--restore_checkpoint_step: expected the step of a checkpoint; got 'last'.",
  ],
  [
    ['--tf_data_service_port=5050'],
    '--tf_data_service_port has no meaning here: inputs are read and prepared ahead by threads of the run ' +
      '(prefetchBatches of an input).',
  ],
  [['--eval_on_test'], '--eval_on_test has no meaning here: use --mode=train_and_eval.'],
])('flags of Pax: %j', (argv, message) => {
  expect(() => parseFlags(argv)).toThrow(expect.objectContaining({ name: 'UsageError', message }));
});

test('every flag of Pax is taken, refused with a reason, or one of its tuner', () => {
  const flags =
    'exp job_log_dir mode eval_on_test decode_during_train eval_during_decode fdl fdl_config fdl_config_file fiddler ' +
    'enable_checkpoint_saving maybe_use_persistence_checkpointing jax_fully_async_checkpoint tensorstore_use_ocdbt ' +
    'async_timeout_secs exit_after_ondemand_checkpoint restore_checkpoint_dir ' +
    'restore_checkpoint_step enforce_restore_shape_check decode_output_pickle enable_summary_writer jax_profiler_port ' +
    'jax_traceback_filtering_option globally_use_hardware_rng enable_auto_sharding startup_random_jitter_max_secs ' +
    'tfds_data_dir multiprocess_gpu server_addr num_hosts host_idx pax_only_aggregate_summaries pmap_use_tensorstore ' +
    'tf_data_service_port tf_data_service_dispatcher_address tf_data_service_worker_address ' +
    'tf_data_service_data_transfer_protocol tf_data_service_data_transfer_address tf_data_service_work_dir ' +
    'tf_data_service_fault_tolerant_mode tf_data_service_worker_addresses tf_data_service_address';
  const known = new Set([...Object.keys(flagTable), ...Object.keys(refusedFlags)]);
  expect(flags.split(' ').filter((name) => !known.has(name))).toEqual([]);
  expect(Object.keys(refusedFlags).filter((name) => Object.hasOwn(flagTable, name))).toEqual([]);
});

test('--tap is repeated, and its steps are numbers, ranges and every Nth', () => {
  const flags = parseFlags([
    '--tap=lm/**',
    '--tap',
    'lm/softmax',
    '--tap_steps=3,10-12,*/50',
    '--tap_values',
  ]);
  expect(flags.tap).toEqual(['lm/**', 'lm/softmax']);
  const tapped = Array.from({ length: 100 }, (_, i) => i + 1).filter(flags.tapSteps!);
  expect(tapped).toEqual([3, 10, 11, 12, 50, 100]);
  expect(flags.tapValues).toBe(true);
});

test.each([
  [
    ['--tap=lm/**', '--tap_steps=1,x'],
    "--tap_steps: expected steps from 1, such as 1,10 or 100-110 or */50 (every 50th); got 'x'.",
  ],
  [
    ['--tap=lm/**', '--tap_steps=0'],
    "--tap_steps: expected steps from 1, such as 1,10 or 100-110 or */50 (every 50th); got '0'.",
  ],
  ...['5-3', '0-3', '*/0', '', '1,', '-1', '1.5', '*/x'].map((steps): [string[], string] => [
    ['--tap=lm/**', `--tap_steps=${steps}`],
    `--tap_steps: expected steps from 1, such as 1,10 or 100-110 or */50 (every 50th); got '${steps === '1,' ? '' : steps}'.`,
  ]),
  [
    ['--tap=lm/**', '--mode=decode_once'],
    '--tap=lm/** and --mode=decode_once do not go together: taps read training steps. Use --mode=train.',
  ],
  [
    ['--debug=eager', '--mode=train_and_decode'],
    '--debug=eager and --mode=train_and_decode do not go together: decoding steps are compiled. Use --mode=train, train_and_eval or eval.',
  ],
  [
    ['--debug=eager', '--mode=decode'],
    '--debug=eager and --mode=decode do not go together: decoding steps are compiled. Use --mode=train, train_and_eval or eval.',
  ],
  [
    ['--debug=eager', '--tap=lm/**'],
    '--debug=eager and --tap do not go together: taps are compiled, and an eager layer can print every value.',
  ],
  [['--tap_values'], '--tap_values: it is for --tap=PATTERN, which is not given.'],
  [
    ['--tap=lm/**', '--mode=eval'],
    '--tap=lm/** and --mode=eval do not go together: taps read training steps. Use --mode=train.',
  ],
])('%j', (argv, message) => {
  expect(() => parseFlags(argv)).toThrow(message);
});
