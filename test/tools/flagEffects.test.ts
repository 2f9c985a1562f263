/** @file Flags of the commands: each reaches an option or the report, here or in the test that the table names. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { overrideFlags } from '../../src/cli/run/changeFlags.js';
import { parseArguments } from '../../src/tools/command.js';
import { commands } from '../../src/tools/commands.js';
import { requestOf } from '../../src/tools/diff.js';
import { importOptions } from '../../src/tools/trained/importRun.js';
import { serveOptions } from '../../src/tools/trained/serve.js';
import { loadOptions } from '../../src/tools/trained/trainedFlags.js';

/** Where each flag of a command is tried: in this file, or in another one below test/. */
const triedIn: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  init: {},
  serve: {
    ...all('host port batch_size max_tokens max_waiting max_seconds max_body'),
    ...all('adapter chat_template', 'trained/server/adapters.long.ts'),
    ...all('checkpoint num_threads engine cache_bits cache_tokens'),
  },
  import: all('job_log_dir dtype max_length files adapter ignore_field ignore_tensor'),
  export: {
    ...all('out outputs', 'tools/trained/generate.test.ts'),
    ...all('config dtype', 'trained/published/exportPublished.test.ts'),
    ...all('checkpoint num_threads engine'),
  },
  quantize: {
    ...all('to bits table_bits group activations skip batches checkpoint', 'tools/trained/generate.test.ts'),
    ...all('calibration', 'trained/calibration.long.ts'),
  },
  generate: {
    ...all(
      'prompt temperature top_k top_p max_tokens seed stop constraint',
      'tools/trained/generate.test.ts',
    ),
    ...all(
      'min_p repetition_penalty presence_penalty frequency_penalty logit_bias',
      'tools/trained/generate.test.ts',
    ),
    ...all('checkpoint num_threads engine cache_bits'),
  },
  evaluate: {
    ...all('tasks', 'trained/languageTasks/evaluateTask.test.ts'),
    ...all('checkpoint num_threads engine'),
  },
  runs: all('sort', 'runs/compareRuns.test.ts'),
  metrics: all('only steps parquet', 'tools/metricsCommand.test.ts'),
  study: all('diff picture most', 'tools/studyCommand.test.ts'),
  ladder: all('at picture', 'tools/ladderCommand.test.ts'),
  list: all('abstract build', 'tools/list/list.test.ts'),
  dump: all('history defaults', 'tools/dump.test.ts'),
  diff: all('base exact timeout memory device pictures install fresh label report exit_code'),
  validate: all('level timeout', 'tools/validate/validate.test.ts'),
  inspect: all('dataset n length batches shards out', 'tools/inspect/index.test.ts'),
  'cache-task': {
    ...all('out shards shard_index shard_count', 'tools/cacheTask/index.test.ts'),
    ...all('dataset processes', 'tools/cacheTask/processes.long.ts'),
  },
  analyze: all('all depth peak_tflops mfu device', 'tools/analyze/command.test.ts'),
  mesh: all('devices device shape rows policies all', 'tools/mesh/command.test.ts'),
  codegen: all('out name style max_complexity history', 'tools/codegen/codegen.test.ts'),
  graph: all('out at dot depth defaults direction length', 'tools/graph.test.ts'),
  rename: {
    ...all('dry_run', 'tools/rename/commands.long.ts'),
    ...all('force no_alias', 'tools/rename/renamePlan.test.ts'),
  },
  'rename-class': {
    ...all('dry_run force no_alias', 'tools/rename/renamePlan.test.ts'),
  },
  snapshot: all('check remove', 'tools/snapshot/snapshot.test.ts'),
  tokenizer: all(
    'input text vocab_size min_frequency special_token out',
    'tools/tokenizer/tokenizer.test.ts',
  ),
  cache: {},
};

function all(names: string, file = 'tools/flagEffects.test.ts'): Record<string, string> {
  return Object.fromEntries(names.split(' ').map((name) => [name, file]));
}

test.each(Object.entries(commands))(
  '%s: every flag is tried where the table says',
  async (name, { load }) => {
    const { flags } = await load();
    expect(Object.keys(triedIn[name]!).sort()).toEqual(Object.keys(flags).sort());
    for (const [flag, file] of Object.entries(triedIn[name]!)) {
      const text = readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8');
      const mention = new RegExp(`--?${flag}\\b|\\b(${flag}|${flags[flag]!.key}):`);
      expect(mention.test(text), `${file} says --${flag}`).toBe(true);
    }
  },
);

/** The values of the flags of a command. */
async function parsed(name: string, ...argv: string[]) {
  const parsed = await parseArguments(name, await commands[name]!.load(), argv, () => {});
  if (parsed === 'help') throw new Error('asked for help');
  return parsed;
}

test('serve: an option for each flag', async () => {
  const values = {
    host: '::1',
    port: 0,
    batchSize: 3,
    maxTokens: 5,
    maxWaiting: 6,
    maxBody: 7,
    maxSeconds: 8,
  };
  const flags = [
    '--host=::1',
    '--port=0',
    '--batch_size=3',
    '--max_tokens=5',
    '--max_waiting=6',
    '--max_body=7',
    '--max_seconds=8',
  ];
  expect(serveOptions((await parsed('serve', 'dir', ...flags)).values)).toEqual(values);
  expect(serveOptions((await parsed('serve', 'dir')).values)).toEqual({
    ...{ host: '127.0.0.1', port: 8000, batchSize: 8 },
    ...{ maxTokens: undefined, maxSeconds: undefined, maxWaiting: 64, maxBody: 1_048_576 },
  });
  expect((await parsed('serve', 'dir', '--port=65535')).values.port).toBe(65_535);
  for (const port of ['65536', '-1', '1e3', ''])
    await expect(parsed('serve', 'dir', `--port=${port}`)).rejects.toThrow(
      `--port: expected a port from 0 (any that is free) to 65535; got '${port}'.`,
    );
});

test('import: an option for each flag', async () => {
  const flags = ['--dtype=bfloat16', '--max_length=9', '--files=a.txt, b/*.md', '--adapter=ad'];
  const ignored = ['--ignore_field=a.b', '--ignore_field=c', '--ignore_tensor=x.*'];
  expect(importOptions(await parsed('import', 'in', '--job_log_dir=out', ...flags, ...ignored))).toEqual({
    ...{ folder: 'in', jobLogDir: 'out', dtype: 'bfloat16', maxLength: 9, files: ['a.txt', 'b/*.md'] },
    ...{ adapter: 'ad', ignoredFields: ['a.b', 'c'], ignoredTensors: ['x.*'] },
  });
  expect(importOptions(await parsed('import', 'in', '--job_log_dir=out'))).toEqual({
    ...{ folder: 'in', jobLogDir: 'out', dtype: 'float32', maxLength: undefined, files: undefined },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  const args = await parsed('import', 'in');
  expect(() => importOptions(args)).toThrow(
    'luthier import: no directory for the run: --job_log_dir=DIR is required.',
  );
});

test.each(['serve', 'export', 'generate', 'evaluate'])(
  '%s: an option of the run for each flag',
  async (name) => {
    const flags = ['--checkpoint=12', '--num_threads=3', '--engine=onnx'];
    expect(loadOptions((await parsed(name, 'dir', ...flags)).values)).toEqual({
      ...{ checkpoint: 12, numThreads: 3, engine: 'onnx' },
    });
    expect(loadOptions((await parsed(name, 'dir')).values)).toEqual({});
  },
);

test.each(['serve', 'generate'])('%s: caches of fewer bits', async (name) => {
  expect(loadOptions((await parsed(name, 'dir', '--cache_bits=8')).values)).toEqual({ cacheBits: 8 });
  await expect(parsed(name, 'dir', '--cache_bits=4')).rejects.toThrow('--cache_bits: ');
});

test('serve: tokens of caches', async () => {
  const { values } = await parsed('serve', 'dir', '--cache_tokens=4096');
  expect(loadOptions(values)).toEqual({ cacheTokens: 4096 });
});

test('diff: an option for each flag', async () => {
  const asked = async (...argv: string[]) => requestOf(await parsed('diff', ...argv));
  const limits = { seconds: 60, gigabytes: 4 };
  expect(await asked('A', 'B', '--timeout=0.5', '--memory=1.5', '--device=d.yaml', '--exit_code')).toEqual({
    ...{ failOnChange: true, labels: [] },
    asked: { experiments: ['A', 'B'], device: 'd.yaml', limits: { seconds: 0.5, gigabytes: 1.5 } },
  });
  expect((await asked('A', 'B')).asked).toMatchObject({ limits });
  const flags = [
    '--exact',
    '--pictures=p',
    '--install',
    '--fresh',
    '--label=a',
    '--label=b',
    '--set=x=1',
    '--config_file=c.yaml',
  ];
  const changes = [
    { kind: 'set', path: 'x', text: '1', origin: '--set x=1' },
    { kind: 'file', file: resolve('c.yaml'), origin: '--config_file c.yaml' },
  ];
  const versions = {
    project: process.cwd(),
    base: 'main',
    exact: false,
    changes: [],
    installs: false,
    fresh: false,
    limits,
  };
  expect(await asked('--base=main')).toEqual({ failOnChange: false, labels: [], asked: versions });
  expect(await asked('A', '--base=main', '--device=d.yaml', ...flags)).toEqual({
    ...{ failOnChange: false, labels: [{ name: 'a' }, { name: 'b' }] },
    asked: {
      ...versions,
      name: 'A',
      exact: true,
      installs: true,
      fresh: true,
      pictures: 'p',
      device: 'd.yaml',
      changes,
    },
  });
  expect((await asked('--report=r.json', '--label=a')).asked).toEqual({ report: 'r.json' });
  for (const [argv, message] of [
    [
      ['--report=r', '--base=b'],
      '--report shows an earlier comparison: it takes neither --base nor experiments.',
    ],
    [['A', '--report=r'], '--report shows an earlier comparison: it takes neither --base nor experiments.'],
    [['A', 'B', '--base=b'], "--base compares one experiment, or all; got 'A' 'B'."],
    [
      ['A'],
      "luthier diff takes two experiments (A B), a run's directory, or --base=REF with an experiment or none. luthier diff --help explains more.",
    ],
  ] as const)
    await expect(asked(...argv)).rejects.toThrow(message);
});

test('every command that configures experiments takes all flags that change them', async () => {
  for (const [name, { load }] of Object.entries(commands)) {
    const { changes, positionals } = await load();
    const flags = ['--set=a=1', '--unset=b', '--fiddler=f(1)', '--config_file=c.yaml'];
    const given = Array<string>(positionals[0]).fill('x');
    if (!changes) await expect(parsed(name, ...given, flags[0]!)).rejects.toThrow('Unknown flag --set.');
    else
      expect((await parsed(name, ...given, ...flags)).changes.map(({ kind }) => kind)).toEqual([
        ...['set', 'unset', 'fiddler', 'file'],
      ]);
  }
  expect(Object.keys(overrideFlags)).toEqual(['set', 'unset', 'fiddler', 'config_file']);
});
