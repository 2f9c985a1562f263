/** @file Compiled C as a backend: memory, threads, errors, turns, the end; with the machine's own compiler. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { OpenOptions } from '../../../src/compiler/native/nativeProgram.js';
import { installHint } from '../../../src/compiler/native/toolchain/compiler.js';
import { openToolchain } from '../../../src/compiler/native/toolchain/index.js';
import type { Backend } from '../../../src/compiler/program/backend.js';
import { CompilerError, type HostArray, NativeEngineError } from '../../../src/compiler/program/tensors.js';
import { startCommand, temporaryDirectory } from '../../command.js';
import { hasCompiler } from './compilerSupport.js';
import { openSource, programOf, scaling, waiting } from './programs.js';
import { folderOf, gccThat } from './toolchain/fakes.js';

const opened: Backend[] = [];
afterAll(() => Promise.all(opened.map((backend) => backend.dispose())));

async function open(
  source: string,
  constants: readonly HostArray[] = [],
  options: Partial<OpenOptions> = {},
): Promise<Backend> {
  const backend = await openSource(source, constants, { threads: 2, name: 'test', ...options });
  opened.push(backend);
  return backend;
}

const ten = new Float32Array([10]);

describe.skipIf(!hasCompiler)('a program', () => {
  it.each([1, 2, 3, 4])('runs on %i threads', async (threads) => {
    const backend = await open(scaling(1000), [ten], { threads });
    const input = Float32Array.from({ length: 1000 }, (_, i) => i);
    const output = new Float32Array(1000);
    const run = backend.bind({ inputs: [input], outputs: [output] });
    for (let i = 0; i < 100; i++) await run();
    expect(output).toEqual(input.map((x) => x * 10 + threads));
    // Bound memory is read anew.
    input.fill(1);
    await run();
    expect(output).toEqual(input.map(() => 10 + threads));
  });

  it('runs on a thread a core where the number is 0', async () => {
    const { availableParallelism } = await import('node:os');
    const backend = await open(scaling(1), [ten], { threads: 0 });
    const output = new Float32Array(1);
    await backend.bind({ inputs: [new Float32Array(1)], outputs: [output] })();
    expect(output[0]).toBe(availableParallelism());
  });

  it('has several calls bound, on views, on memory that threads share, and on none', async () => {
    const backend = await open(scaling(4), [new Float32Array([1, 10]).subarray(1)]);
    const memory = new Float32Array(64);
    const shared = new Float32Array(new SharedArrayBuffer(256), 64, 8);
    const [a, b] = [memory.subarray(3, 7), memory.subarray(20, 24)];
    const [c, d] = [shared.subarray(0, 4), shared.subarray(4)];
    a.fill(1);
    c.fill(2);
    const nothing = new Float32Array(0);
    const calls = [
      backend.bind({ inputs: [a, nothing], outputs: [b, nothing] }),
      backend.bind({ inputs: [c], outputs: [d] }),
    ];
    for (const call of calls) await call();
    expect([...b, ...d]).toEqual([12, 12, 12, 12, 22, 22, 22, 22]);
    expect(memory.filter((x) => x !== 0)).toHaveLength(8);
  });

  it('small arrays keep their addresses despite garbage collection', async () => {
    const backend = await open(scaling(4), [ten]);
    // Arrays of up to 64 bytes begin their lives in V8's heap, where they are moved.
    const calls = Array.from({ length: 50 }, (_, i) => {
      const input = new Float32Array([i, i, i, i]);
      const output = new Float32Array(4);
      return { i, output, run: backend.bind({ inputs: [input], outputs: [output] }) };
    });
    let garbage: unknown[] = [];
    for (let i = 0; i < 300_000; i++) {
      garbage.push(new Float32Array(8), { i });
      if (garbage.length > 50_000) garbage = [];
    }
    for (const { run } of calls) await run();
    for (const { i, output } of calls) expect([...output]).toEqual(Array(4).fill(i * 10 + 2));
  });

  it('leaves the main thread free while it runs', async () => {
    const backend = await open(waiting);
    const flag = new Uint8Array(1);
    const run = backend.bind({ inputs: [flag], outputs: [] })();
    // The program waits for what only a timer of this thread sets.
    setTimeout(() => {
      flag[0] = 1;
    }, 20);
    await run;
  });

  it('runs beside another, and takes turns with itself', async () => {
    const [slow, quick] = [await open(waiting), await open(scaling(4), [ten])];
    const flag = new Uint8Array(1);
    const waits = slow.bind({ inputs: [flag], outputs: [] });
    const order: string[] = [];
    const output = new Float32Array(4);
    const first = waits().then(() => order.push('first'));
    const second = waits().then(() => order.push('second'));
    const other = quick.bind({ inputs: [new Float32Array(4)], outputs: [output] })();
    flag[0] = 1;
    await Promise.all([first, second, other]);
    expect(order).toEqual(['first', 'second']);
    expect([...output]).toEqual([2, 2, 2, 2]);
  });

  it('opens twice, with separate memory', async () => {
    const counting = programOf('if (thread == 0) ((float *)out[0])[0] = p->runs;');
    const [a, b] = await Promise.all([open(counting), open(counting)]);
    const [x, y] = [new Float32Array(1), new Float32Array(1)];
    const [runA, runB] = [a.bind({ inputs: [], outputs: [x] }), b.bind({ inputs: [], outputs: [y] })];
    await runA();
    await runA();
    await runB();
    expect([x[0], y[0]]).toEqual([2, 1]);
  });

  it('has stacks that are deep enough on every thread', async () => {
    const backend = await open(
      programOf(`
  volatile char deep[4 << 20];
  for (int64_t i = 0; i < (int64_t)sizeof deep; i += 4096) deep[i] = (char)thread;
  ((float *)out[0])[thread] = deep[4096] + 1;
`),
    );
    const output = new Float32Array(2);
    await backend.bind({ inputs: [], outputs: [output] })();
    expect([...output]).toEqual([1, 2]);
  });
});

describe.skipIf(!hasCompiler)('what goes wrong', () => {
  it.each([
    [1, 'test: there is not enough memory.'],
    [2, 'test: an index was out of range.'],
    [7, 'test: it failed with code 7.'],
  ])('in a run with result %i', async (result, message) => {
    const backend = await open(programOf(`p->result = p->runs == 1 ? ${result} : 0;`));
    const run = backend.bind({ inputs: [], outputs: [] });
    await expect(run()).rejects.toMatchObject({ name: 'CompilerError', message });
    // The next run is another one.
    await run();
  });

  it('where there is no memory to begin with', async () => {
    await expect(open(programOf('', 'return NULL;'))).rejects.toThrow(
      new NativeEngineError('test: there is not enough memory for its intermediate values.'),
    );
  });

  it('arrays that do not match the program’s inputs', async () => {
    const backend = await open(scaling(4), [ten], {
      inputs: [{ shape: [2, 2], dtype: 'float32' }],
      outputs: [{ shape: [4], dtype: 'float32' }],
    });
    const four = new Float32Array(4);
    const message = (inputs: HostArray[], outputs: HostArray[]): string => {
      try {
        backend.bind({ inputs, outputs });
        return '';
      } catch (error) {
        expect(error).toBeInstanceOf(CompilerError);
        return (error as Error).message;
      }
    };
    expect(message([four], [four])).toBe('');
    expect(message([], [four])).toBe('test: it takes 1 inputs, and was given 0.');
    expect(message([four], [four, four])).toBe('test: it takes 1 outputs, and was given 2.');
    expect(message([new Float32Array(3)], [four])).toBe(
      'test: input 0 is float32[2,2], and was given a Float32Array of 3.',
    );
    expect(message([four], [new Uint8Array(4)])).toBe(
      'test: output 0 is float32[4], and was given a Uint8Array of 4.',
    );
  });

  it('detached or resized memory', async () => {
    const backend = await open(scaling(4), [ten]);
    const output = new Float32Array(4);
    const run = backend.bind({ inputs: [new Float32Array(4)], outputs: [output] });
    await run();
    structuredClone(output, { transfer: [output.buffer] });
    const message = 'test: the memory of a bound array was transferred or resized.';
    await expect(run()).rejects.toMatchObject({ name: 'CompilerError', message });
  });

  it('in C that does not compile', async () => {
    const error = await open(programOf('nonsense;\n  more_nonsense();')).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CompilerError);
    const { message } = error as Error;
    expect(message).toMatch(
      /^test: \/\S+ could not compile its C code \(exit code 1\):\nprogram\.c:.* error: /,
    );
    const log = /Its full output is in (.*)\.$/.exec(message)![1]!;
    expect(readFileSync(log, 'utf8')).toContain('nonsense');
    expect(readFileSync(log.replace('compiler.log', 'program.c'), 'utf8')).toContain('more_nonsense();');
  });

  it('C without a program', async () => {
    await expect(open('int nothing;\n')).rejects.toThrow(
      /^\S+program\.\w+ could not be loaded: .*lt_program_create.*/s,
    );
  });

  it('with more threads than there can be', async () => {
    await expect(open(scaling(4), [ten], { threads: 1000 })).rejects.toThrow(
      new NativeEngineError('test: expected 1000 threads, got 256 from the system.'),
    );
  });
});

describe.skipIf(!hasCompiler)('the end', () => {
  it('of a program waits for its runs, and comes once', async () => {
    const backend = await openSource(waiting, [], { threads: 2, name: 'test' });
    const flag = new Uint8Array(1);
    const run = backend.bind({ inputs: [flag], outputs: [] });
    let ran = false;
    const running = run().then(() => {
      ran = true;
    });
    const ending = backend.dispose().then(() => expect(ran).toBe(true));
    await expect(run()).rejects.toThrow(new CompilerError('test: the program has been disposed of.'));
    flag[0] = 1;
    await Promise.all([running, ending]);
    await backend.dispose();
  });

  it.each(['exit', 'worker', 'return'])('of the process, by %s', async (way) => {
    const { finished } = startCommand([way], undefined, 'test/compiler/native/endProgram.ts');
    expect(await finished).toEqual({ code: 0, signal: null, stdout: `${way}\n`, stderr: '' });
  });
});

describe('without a toolchain', () => {
  const reasonIn = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const toolchain = await openToolchain({ ...process.env, CC: '', ...env });
    return 'reason' in toolchain ? toolchain.reason : '';
  };

  it('says that there is no compiler', async () => {
    expect(await reasonIn({ PATH: temporaryDirectory() })).toMatch(
      /^There is no C compiler: PATH has neither cc, gcc nor clang\. (To install one: |Install ).*\.$/,
    );
  });

  it('reports the messages of a broken compiler, and keeps the full log', async () => {
    const cache = temporaryDirectory();
    const PATH = folderOf({ cc: gccThat('echo "cc: fatal error: no room for cc1" >&2; exit 4') });
    const reason = await reasonIn({ PATH, XDG_CACHE_HOME: cache });
    expect(reason).toMatch(
      /^The native runtime: \S+\/cc could not compile its C code \(exit code 4\): cc: fatal error: no room for cc1 Its full output is in \S+\. (To install one: |Install )/,
    );
    expect(existsSync(/ is in (\S+)\. /.exec(reason)![1]!)).toBe(true);
  });

  it('says that a compiler did nothing', async () => {
    const PATH = folderOf({ cc: gccThat('exit 0') });
    expect(await reasonIn({ PATH, XDG_CACHE_HOME: temporaryDirectory() })).toBe(
      `native runtime: gcc (Fake) 13.1.0 ended without an error and without a result. ${installHint()}`,
    );
  });
});
