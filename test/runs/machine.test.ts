/** @file A run records on what it computes, and says what has changed where it goes on. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  chooseBfloat16,
  cpuName,
  kernelRates,
  namedRates,
  nativeTools,
  productsBy,
} from '../../src/compiler/index.js';
import { openToolchain } from '../../src/compiler/native/toolchain/index.js';
import { type KernelTable, rateCases } from '../../src/compiler/native/toolchain/kernelTable.js';
import {
  keptProducts,
  type Machine,
  machineChanges,
  machineOf,
  recordedMachine,
} from '../../src/runs/machine.js';
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
  bfloat16Products: 'bf16 instructions',
  rates: { 'float32, arithmetic, 1 thread': 116.4 },
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
  // A run of AMX tiles goes on where there are none.
  const tiles: Machine = {
    ...machine,
    kernels: 'avx512 (float32), amx (bfloat16)',
    bfloat16Products: 'AMX tiles',
  };
  expect(machineChanges(tiles, machine)).toEqual([
    line('set of kernels', machine.kernels, tiles.kernels),
    line('way of multiplying bfloat16', 'bf16 instructions', 'AMX tiles'),
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
    bfloat16Products: null,
    rates: null,
  });
});

test('a run keeps to the products of bfloat16 that it has begun with', () => {
  const directory = temporaryDirectory();
  const keptWith = (machine: object) => {
    writeFileSync(join(directory, 'experiment.json'), JSON.stringify({ machine }));
    return keptProducts(directory);
  };
  expect(keptProducts(directory)).toEqual({});
  const kept = { bfloat16Products: 'float32 instructions' };
  expect(keptWith({ ...machine, ...kept })).toEqual(kept);
  // Records from before there was a choice name the kernels.
  expect(keptWith({ kernels: machine.kernels })).toEqual({ bfloat16Products: 'bf16 instructions' });
  expect(keptWith({ kernels: 'avx2 (float32), avx2 (bfloat16)' })).toEqual({});
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

  longTest('under other threads and in another precision', async () => {
    const directory = temporaryDirectory();
    const first = await run(directory, 2, '--num_threads=1', '--engine=onnx');
    expect(changes(first)).toEqual([]);
    const none = { compiler: null, kernels: null, bfloat16Products: null, rates: null };
    const expected = { engine: 'onnx', cpu: await cpuName(), ...none };
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
    'on a machine of slow bf16 instructions, as a table says, and then on one of fast ones: to the bit as without the change',
    async () => {
      const toolchain = await openToolchain();
      if ('reason' in toolchain) throw new Error(toolchain.reason);
      // No kernel has the name, so that all are as ever, but for the table.
      const simulate = (name: string, bfloat16: number): void => {
        const rates = rateCases().map((of) => ({ ...of, flops: of.way === 'bfloat16' ? bfloat16 : 1e11 }));
        const table: KernelTable = { kernels: name, rates };
        writeFileSync(join(toolchain.runtime.folder, `rates-${name}.json`), JSON.stringify(table));
      };
      onTestFinished(() => {
        for (const name of ['slow', 'fast'])
          rmSync(join(toolchain.runtime.folder, `rates-${name}.json`), { force: true });
      });
      simulate('slow', 5e10);
      simulate('fast', 2e11);
      const trained = async (directory: string, steps: number, name: string): Promise<string> => {
        const flags = ['--exp=Tiny', `--job_log_dir=${directory}`, '--set', `numTrainSteps=${steps}`];
        const more = ['--engine=native', '--set', 'task.model.fpropDtype=bfloat16'];
        const env = { LUTHIER_KERNEL: name };
        const { code, stdout, stderr } = await startCommand([...flags, ...more], undefined, undefined, env)
          .finished;
        expect(code, stderr).toBe(0);
        return stdout;
      };
      const [stopped, whole, fast] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
      await trained(stopped, 3, 'slow');
      expect(record(stopped).bfloat16Products).toBe('float32 instructions');
      expect(changes(await trained(stopped, 6, 'fast'))).toEqual([]);
      expect(record(stopped).bfloat16Products).toBe('float32 instructions');
      await trained(whole, 6, 'slow');
      await trained(fast, 6, 'fast');
      const { kernels } = (await nativeTools())!;
      expect(record(fast).bfloat16Products).toBe(productsBy(kernels, 'bf16 instructions'));
      const weights = (directory: string) =>
        readFileSync(join(directory, 'checkpoints/checkpoint_00000006/state.safetensors'));
      expect(weights(stopped)).toEqual(weights(whole));
      if (record(fast).kernels.includes('avx512bf16')) expect(weights(fast)).not.toEqual(weights(whole));
    },
    hasCompiler,
  );

  longTest(
    'under another engine',
    async () => {
      const directory = temporaryDirectory();
      await run(directory, 2, '--num_threads=2', '--engine=native');
      expect(record(directory)).toEqual({
        engine: 'native',
        ...(await nativeTools(chooseBfloat16((await kernelRates())!))),
        cpu: await cpuName(),
        threads: 2,
        precision: 'float32',
        bfloat16Products: productsBy((await nativeTools())!.kernels, chooseBfloat16((await kernelRates())!)),
        rates: namedRates((await kernelRates())!),
      });
      const second = await run(directory, 3, '--num_threads=2', '--engine=onnx');
      expect(changes(second)).toEqual([line('engine', 'onnx', 'native')]);
    },
    hasCompiler,
  );
});
