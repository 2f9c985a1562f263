/** @file A run records on what it computes, and says what has changed where it goes on. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cpuName, nativeTools } from '../../src/compiler/index.js';
import { type Machine, machineChanges, machineOf, recordedMachine } from '../../src/runs/machine.js';
import { runCommand, startCommand, temporaryDirectory } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { folderOf, gccThat } from '../compiler/native/toolchain/fakes.js';
import { longTest } from '../longTest.js';

const machine: Machine = {
  engine: 'native',
  compiler: 'cc (Debian 12.2.0-14) 12.2.0',
  kernels: 'avx512 (float32), avx512bf16 (bfloat16)',
  cpu: 'AMD EPYC (avx2 fma)',
  threads: 2,
  precision: 'float32',
};

const line = (what: string, now: unknown, before: unknown) =>
  `Going on with another ${what}: ${now}, before ${before}. ` +
  'The bits may differ from those of a run that was not stopped.';

test('one line per difference; unrecorded properties have none', () => {
  expect(machineChanges(machine, machine)).toEqual([]);
  expect(machineChanges({}, machine)).toEqual([]);
  // Machine code gives the same bits on any number of threads.
  expect(machineChanges(machine, { ...machine, threads: 1, precision: 'bfloat16' })).toEqual([
    line('precision of products', 'bfloat16', 'float32'),
  ]);
  const onnx = { ...machine, engine: 'onnx', compiler: null, kernels: null };
  expect(machineChanges(onnx, { ...onnx, threads: 1 })).toEqual([line('number of threads', 1, 2)]);
  // ONNX Runtime has no compiler: that is the engine's difference.
  expect(machineChanges(machine, { ...machine, engine: 'onnx', compiler: null, kernels: null })).toEqual([
    line('engine', 'onnx', 'native'),
  ]);
  const moved = { ...machine, compiler: 'clang version 17.0.6', cpu: 'Neoverse-N1 (asimd)' };
  expect(machineChanges(machine, moved)).toEqual([
    line('C compiler', 'clang version 17.0.6', machine.compiler),
    line('CPU', 'Neoverse-N1 (asimd)', machine.cpu),
  ]);
  // A runtime that was compiled where its compiler lacked something.
  const portable = 'portable (float32), portable (bfloat16)';
  expect(machineChanges(machine, { ...machine, kernels: portable })).toEqual([
    line('set of kernels', portable, machine.kernels),
  ]);
});

test('a damaged, old or missing record counts as none', () => {
  const directory = temporaryDirectory();
  expect(recordedMachine(directory)).toBeUndefined();
  writeFileSync(join(directory, 'experiment.json'), '{"name": "x"}');
  expect(recordedMachine(directory)).toBeUndefined();
  writeFileSync(join(directory, 'experiment.json'), '{"mach');
  expect(recordedMachine(directory)).toBeUndefined();
  writeFileSync(join(directory, 'experiment.json'), JSON.stringify({ machine }));
  expect(recordedMachine(directory)).toEqual(machine);
});

test('without a training step, the engine is the requested one', async () => {
  expect(await machineOf({ engine: 'onnx', numThreads: 3 })).toEqual({
    engine: 'onnx',
    compiler: null,
    kernels: null,
    cpu: await cpuName(),
    threads: 3,
    precision: null,
  });
});

describe('runs', () => {
  const run = async (directory: string, steps: number, ...flags: string[]): Promise<string> => {
    const common = ['--exp=Tiny', `--job_log_dir=${directory}`, '--set', `numTrainSteps=${steps}`];
    const { code, stdout, stderr } = await runCommand([...common, ...flags]);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  const record = (directory: string) =>
    JSON.parse(readFileSync(join(directory, 'experiment.json'), 'utf8')).machine;
  const changes = (stdout: string) => stdout.split('\n').filter((text) => text.includes('another'));

  test('under other threads and in another precision', async () => {
    const directory = temporaryDirectory();
    const first = await run(directory, 2, '--num_threads=1', '--engine=onnx');
    expect(changes(first)).toEqual([]);
    const expected = { engine: 'onnx', compiler: null, kernels: null, cpu: await cpuName() };
    expect(record(directory)).toEqual({ ...expected, threads: 1, precision: 'float32' });
    expect(changes(await run(directory, 3, '--num_threads=1', '--engine=onnx'))).toEqual([]);
    expect(first).not.toContain('runs on engine');
    const bfloat16 = ['--set', 'task.model.fpropDtype=bfloat16'];
    const second = await run(directory, 4, '--num_threads=2', '--engine=onnx', ...bfloat16);
    expect(changes(second)).toEqual([
      line('number of threads', 2, 1),
      line('precision of products', 'bfloat16', 'float32'),
    ]);
    expect(record(directory)).toEqual({ ...expected, threads: 2, precision: 'bfloat16' });
  });

  longTest(
    'under auto, which explains its choice for all steps of the run, also where it resumes',
    async () => {
      const directory = temporaryDirectory();
      const chosen = (stdout: string) => stdout.split('\n').filter((text) => text.includes('runs on engine'));
      const first = await run(directory, 2);
      const explained = chosen(first);
      expect(explained).toEqual([
        expect.stringMatching(
          /^train_step runs on engine onnx: 2 runs should take .* \(--engine=native takes that\)\.$/,
        ),
      ]);
      const evaluated = await run(directory, 2, '--mode=eval');
      expect(chosen(evaluated)).toEqual([
        expect.stringMatching(/^eval_step runs on engine onnx: \d+ runs? should/),
      ]);
      const again = await run(directory, 2);
      expect(chosen(again)).toEqual(explained);
      expect(record(directory).engine).toBe('onnx');
    },
  );

  test.each([
    [
      'fails',
      gccThat('echo "x.c:1: error: \\033[31mno" >&2; exit 1'),
      'could not compile its C code (exit code 1): x.c:1: error: \\u001b[31mno',
    ],
    ['is killed', gccThat('kill -9 $$'), 'was kept from compiling its C code (ended by SIGKILL)'],
  ])(
    'a compiler that %s ends a run on engine native with one message and no stack',
    async (_, script, said) => {
      const CC = join(folderOf({ gcc: script }), 'gcc');
      const flags = [`--exp=tiny.Tiny`, `--job_log_dir=${temporaryDirectory()}`, '--engine=native'];
      const env = { CC, XDG_CACHE_HOME: temporaryDirectory() };
      const { code, stderr } = await startCommand(flags, undefined, undefined, env).finished;
      expect(stderr).toContain(said);
      expect(stderr).not.toContain('\n    at ');
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^train_step: .* Use --engine=onnx\.\n$/s),
      });
    },
  );

  longTest(
    'under another engine',
    async () => {
      const directory = temporaryDirectory();
      await run(directory, 2, '--num_threads=2', '--engine=native');
      expect(record(directory)).toEqual({
        engine: 'native',
        ...(await nativeTools()),
        cpu: await cpuName(),
        threads: 2,
        precision: 'float32',
      });
      const second = await run(directory, 3, '--num_threads=2', '--engine=onnx');
      expect(changes(second)).toEqual([line('engine', 'onnx', 'native')]);
    },
    hasCompiler,
  );
});
