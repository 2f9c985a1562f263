/** @file The command as people run it: bad input gets one message and an exit code. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oneProcess, runCommand, temporaryDirectory } from './command.js';

/** Each message is the whole of what the command writes to stderr. */
const usage: [string, string[], string][] = [
  ['no experiment', [], 'No experiment provided: --exp=NAME is required. --help lists all flags.'],
  [
    'a misspelt mode',
    ['--exp=tiny.Tiny', '--mode=evl'],
    '--mode: expected one of train, eval, decode, decode_once, infer, train_and_eval, train_and_decode; ' +
      "got 'evl'. Did you mean 'eval'?",
  ],
  [
    'an unknown experiment',
    ['--exp=tiny.Tyni', '--job_log_dir=unused'],
    "Could not find experiment 'tiny.Tyni': experiments/tiny.ts exports no class 'Tyni'. " +
      "Did you mean 'tiny.Tiny'?\nExperiments: N in c4.*, N in c4Multislice.*, fiddled.Fiddled, hanging.Hanging, " +
      'lm.ShakespeareChar, lm.ShakespeareCharBfloat16, lm.Small, lm.SmallBpe, N in lmCloud.*, misspelt.Misspelt, ' +
      'nested.toy.Toy, pictures.Pictures, tiny.Tiny, toy.Other, ' +
      'toy.Toy (npx luthier list shows them all).',
  ],
  [
    'an unknown constant',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--set', 'modelDim=8'],
    "--set modelDim=8: Tiny has no constant 'modelDim'. Did you mean 'modelDims'? Its constants are: " +
      'dataPath, learningRate, modelDims, numSamples, numTrainSteps; ' +
      'paths into its configs begin with task., datasets[0]. or decodeDatasets[0].',
  ],
  [
    'a constant of the wrong type',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--set', 'modelDims=wide'],
    "Tiny.modelDims: expected a positive integer, got 'wide' (at --set modelDims=wide)",
  ],
  [
    'an unknown path',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--set', 'task.train.numTrainStep=8'],
    "No 'task.train.numTrainStep': Train at 'task.train' has no 'numTrainStep'. " +
      "Did you mean 'numTrainSteps'? (at --set task.train.numTrainStep=8)",
  ],
  [
    'a path of the wrong type',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--set', 'task.train.numTrainSteps=many'],
    "task.train.numTrainSteps: expected a non-negative integer, got 'many' (at --set task.train.numTrainSteps=many)",
  ],
  [
    'an unknown fiddler',
    ['--exp=fiddled.Fiddled', '--dump', '--fiddler', 'scaleStep(2)'],
    "--fiddler scaleStep(2): experiments/fiddled.ts exports no fiddler 'scaleStep'. Did you mean 'scaleSteps'? " +
      'Its fiddlers are: astray, batches, broken, rename, scaleSteps, wrong.',
  ],
  [
    'a config file that is not there',
    ['--exp=tiny.Tiny', '--dump', '--config_file=none.yaml'],
    "--config_file none.yaml: 'none.yaml' cannot be read: ENOENT: no such file or directory, open 'none.yaml'",
  ],
  [
    'the last value of a sweep, before the first run starts',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--sweep', 'modelDims=8,-8'],
    "Tiny.modelDims: expected a positive integer, got '-8' (at --sweep modelDims=8,-8)",
  ],
  [
    'a dataset that is not there',
    ['--exp=tiny.Tiny', '--job_log_dir=unused', '--set', 'datasets[2].batchSize=8'],
    "No 'datasets[2].batchSize': 'datasets' has 2 elements, counted from 0. (at --set datasets[2].batchSize=8)",
  ],
  [
    'a misspelt class constant',
    ['--exp=misspelt.Misspelt', '--job_log_dir=unused'],
    "Misspelt has no constant 'sise'. Did you mean 'size'? Its constants are: size. (at experiments/misspelt.ts:7)",
  ],
  [
    'a constant that must be set',
    ['--exp=lm.ShakespeareChar', '--job_log_dir=unused'],
    "ShakespeareChar needs a value for its constant 'dataPath' " +
      "(The text file: nanoGPT's data/shakespeare_char/input.txt): it has no default. " +
      'Set it with --set dataPath=PATH, or in the class with preset({ dataPath: … }).',
  ],
];

const command = oneProcess('src/main.ts');

test.each(usage)('exit code 2: %s', async (_, flags, message) => {
  const { code, stdout, stderr } = await command(flags);
  // Which experiments on made data, and how many others, come with the project is not this test's business.
  const made = /(\d+ in )?\b(bert|chat|sequences|shapes|speech|t5)\.(\w+|\*), /g;
  const told = stderr.replaceAll(made, '').replaceAll(/\d+(?= in \w+\.\*)/g, 'N');
  expect({ code, stdout, told }).toEqual({ code: 2, stdout: '', told: `${message}\n` });
});

test('exit code 2 is that of the process, too', async () => {
  const [[, flags, message]] = usage as [(typeof usage)[number]];
  expect(await runCommand(flags)).toEqual({ code: 2, signal: null, stdout: '', stderr: `${message}\n` });
});

test('exit code 1: a corpus that is not there, and nothing is written', async () => {
  const directory = join(temporaryDirectory(), 'job');
  const flags = ['--exp=Tiny', `--job_log_dir=${directory}`, '--set', 'dataPath=corpus/countng.txt'];
  const { code, stderr } = await runCommand(flags);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^TextInput 'train': No file matches 'corpus\/countng\.txt' \(looked in .*\)\. Did you mean 'corpus\/counting\.txt'\? .*\n$/,
  );
  expect(existsSync(join(directory, 'experiment.json'))).toBe(false);
});

test('exit code 1: a directory that cannot be written', async () => {
  const file = join(temporaryDirectory(), 'a_file');
  writeFileSync(file, '');
  const { code, stderr } = await runCommand(['--exp=Tiny', `--job_log_dir=${file}/job`]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `--job_log_dir=${file}/job: can't be written: ENOTDIR: not a directory, mkdir '${file}/job'.\n`,
  });
});

test.runIf(existsSync('/proc/self'))('exit code 1: a file system without room for directories', async () => {
  const { code, stderr } = await runCommand(['--exp=Tiny', '--job_log_dir=/proc/luthier']);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr:
      "--job_log_dir=/proc/luthier: can't be written: ENOENT: no such file or directory, mkdir '/proc/luthier'.\n",
  });
});

test('exit code 1: --device=gpu without its package says what to install', async () => {
  const flags = ['--exp=Tiny', `--job_log_dir=${temporaryDirectory()}`, '--device=gpu'];
  const { code, stderr } = await runCommand(flags);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^--device=gpu needs the package @tensorflow\/tfjs-node-gpu, which could not be loaded \(.*\)\. Install it with `npm install @tensorflow\/tfjs-node-gpu@4\.22\.0` on a machine with CUDA 11 and cuDNN 8, or use --device=cpu\.\n$/,
  );
});

test('exit code 1: an error inside an experiment keeps its stack', async () => {
  const { code, stderr } = await command(['--exp=failing.Anything', '--job_log_dir=unused']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Experiment 'failing\.Anything': experiments\/failing\.ts failed to load\.\nError: this module fails while it loads\n {4}at .*failing\.ts/,
  );
});

test('exit code 1: evaluating where there is no checkpoint', async () => {
  const directory = temporaryDirectory();
  const { code, stderr } = await runCommand(['--exp=Tiny', `--job_log_dir=${directory}`, '--mode=eval']);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr:
      `--job_log_dir=${directory}: --mode=eval needs a checkpoint, and there is none in ${directory}/checkpoints. ` +
      'Train with --mode=train first, or give the directory of a run that was trained.\n',
  });
});

test('--help lists the flags; with --exp also what can be set', async () => {
  const plain = await command(['--help']);
  expect(plain.code).toBe(0);
  expect(plain.stdout).toContain('  --job_log_dir=DIR\n      Directory for all output of the run');
  const { code, stdout } = await command(['--help', '--exp=Tiny']);
  expect(code).toBe(0);
  expect(stdout).toContain(
    'Constants of tiny.Tiny:\n' +
      '  numTrainSteps  a positive integer = 12\n                 Training steps.\n',
  );
  expect(stdout).toMatch(/^\* task\.train\.saveIntervalSteps +a positive integer = 4, default \d+, set at /m);
  expect(stdout).toMatch(
    /^ {2}datasets\[0\]\.batchSize +a positive integer = 2, set at experiments\/tiny\.ts:\d+$/m,
  );
});

test('--help of an experiment whose constants are not all set says so', async () => {
  const { code, stdout } = await command(['--help', '--exp=lm.ShakespeareChar']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}dataPath +a non-empty string = \(not set\).*\n +The text file: nanoGPT's/m);
  expect(stdout).toContain('Set it with --set dataPath=PATH');
});

test('--dump prints the configs without a job_log_dir, and its output is taken back', async () => {
  const flags = ['--exp=Fiddled', '--set', 'modelDims=8', '--fiddler', 'batches(5)'];
  const first = await command([...flags, '--dump=yaml']);
  expect({ code: first.code, stderr: first.stderr }).toEqual({ code: 0, stderr: '' });
  const file = join(temporaryDirectory(), 'dump.yaml');
  writeFileSync(file, first.stdout);
  const second = await command(['--exp=Fiddled', '--config_file', file, '--dump=yaml']);
  expect(second.stdout).toBe(first.stdout);
});

test('a constant that no config is made with is warned of', async () => {
  const flags = ['--exp=Fiddled', '--set', 'spare=7', '--set', 'modelDims=8', '--dump'];
  const { code, stderr } = await command(flags);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr:
      '--set spare=7: Fiddled never reads the constant spare while it makes its configs, so the flag has no effect.\n',
  });
});

test('exit code 1: a fiddler that fails keeps its stack', async () => {
  const { code, stderr } = await command(['--exp=Fiddled', '--dump', '--fiddler', 'broken()']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^--fiddler broken\(\): broken\(\) failed\.\nTypeError: a fault of the fiddler\n {4}at .*fiddled\.ts/,
  );
});
