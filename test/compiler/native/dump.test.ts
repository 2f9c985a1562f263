/** @file Dumps: every stage of a program as a text that tells all of it, in a folder that is whole or not there. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  CompilerError,
  compile,
  ops,
  type Tensor,
  tf,
  valueAndGrad,
  withScope,
} from '../../../src/compiler/index.js';
import { lowerToC, type NativeProgram } from '../../../src/compiler/native/c/lowerToC.js';
import { dumpTexts } from '../../../src/compiler/native/dump/programTexts.js';
import { unitsText } from '../../../src/compiler/native/dump/unitText.js';
import type { Buffer, Home, Storage } from '../../../src/compiler/native/plan/views.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { graphText } from '../../../src/compiler/program/graphText.js';
import { writeDump } from '../../../src/compiler/program/writeDump.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { temporaryDirectory } from '../../command.js';

const specs = {
  x: { shape: [96, 32], dtype: 'float32' },
  w1: { shape: [32, 64], dtype: 'float32' },
  w2: { shape: [64, 8], dtype: 'float32' },
} as const;

/** Two layers, their loss and its gradients. */
function twoLayers({ x, ...params }: any): any {
  const loss = ({ w1, w2 }: any) => {
    const hidden = withScope('net/first', () => tf.relu(tf.matMul(x, w1)));
    const out = withScope('net/second', () => tf.matMul(hidden, w2));
    return { value: tf.mean(tf.square(out)) as tf.Tensor, aux: {} };
  };
  const { value, grads } = valueAndGrad(loss, params);
  return { value, grads };
}

function lowered(f = twoLayers, inputs: any = specs): NativeProgram {
  const result = lowerToC(optimize(traceProgram(f, inputs).graph));
  if ('missing' in result) throw new Error(result.missing);
  return result;
}

describe('texts', () => {
  it('of a graph: inputs, constants, nodes with attributes and layers, results', () => {
    const f = ({ x }: any): any => {
      const table = tf.tensor1d([1, 2, 3, 4, 5]);
      const y = withScope('net/first', () => tf.mul(x, table));
      return { sums: tf.sum(y, 1, true), parts: tf.split(y, [2, 3], 1) };
    };
    const { graph } = traceProgram(f, { x: { shape: [2, 5], dtype: 'float32' } });
    expect(graphText(graph)).toBe(
      [
        'v0 = float32[2,5] input x',
        'v1 = float32[5] constant 1, 2, 3, 4, … (5)',
        'v2 = float32[2,5] Multiply(v0, v1)  # net/first',
        'v3 = float32[2,1] Sum(v2) {axes: [1], keepDims: true}',
        'v4, v5 = float32[2,2], float32[2,3] SplitV(v2) {axis: 1, sizes: [2,3]}',
        'return v3, v4, v5',
        '',
      ].join('\n'),
    );
  });

  it('of units: storage, places, rounding', () => {
    const buffer = (id: number, home: Home, storage: Storage = 'float32'): Buffer => ({
      id,
      size: 64,
      storage,
      home,
    });
    const x = buffer(0, { kind: 'input', index: 0 });
    const sums = buffer(1, { kind: 'output', index: 2 });
    const kept = buffer(2, { kind: 'register' });
    const rounded = buffer(3, { kind: 'arena', offset: 0 }, 'bfloat16');
    const rows = (stride: number) => [{ size: 4, stride }];
    const node = { scope: 'a/b', wide: true, types: [], result: 'float32', attrs: {} } as const;
    const plain = { offset: 0, rows: rows(8), column: 1 };
    const text = unitsText([
      {
        kind: 'loop',
        rows: 4,
        columns: 8,
        nodes: [
          {
            ...node,
            op: 'Multiply',
            role: 'map',
            reads: [{ ...plain, buffer: x, offset: 16, rows: rows(24) }, 0.5],
            write: { ...plain, buffer: kept },
          },
          {
            ...node,
            op: 'Sum',
            role: 'column',
            attrs: { axes: [0], keepDims: false },
            reads: [{ ...plain, buffer: kept }],
            write: { buffer: sums, offset: 0, rows: rows(0), column: 1 },
          },
          {
            ...node,
            op: 'ClipByValue',
            role: 'map',
            attrs: { min: 0, max: 6 },
            reads: [{ ...plain, buffer: kept }],
            write: { ...plain, buffer: rounded },
          },
        ],
      },
      {
        kind: 'product',
        ...{ m: 4, n: 2, k: 8, alpha: 0.25, precision: 'bfloat16', scope: '' },
        a: { buffer: rounded, offset: 0, rs: 8, cs: 1 },
        b: { buffer: x, offset: 8, rs: 1, cs: 8 },
        c: { buffer: kept, offset: 0, rs: 2, cs: 1 },
        batch: [3],
        batchStrides: [[32], [0], [8]],
      },
      {
        kind: 'call',
        op: 'TopK',
        form: { kind: 'call', name: 'topK' },
        attrs: { k: 2, sorted: false },
        scope: 'c',
        inputs: [{ buffer: x, offset: 0, shape: [2, 4], strides: [4, 1] }],
        outputs: [{ buffer: sums, offset: 0, shape: [2, 2], strides: [1, 2] }],
      },
    ]);
    expect(text).toBe(
      [
        '0. loop, 4 rows of 8:',
        '     %2 = Multiply(in0+16:(4x24; 1), 0.5)  # a/b',
        '     out2 (stored) = Sum(%2) over all rows  # a/b',
        '     %3 bf16 (stored) = ClipByValue(%2) {min: 0, max: 6}  # a/b',
        '1. product, bfloat16: 3 times %2[4,2] = %3 bf16[4,8] x in0+8[8,2]:(1,8) * 0.25',
        '2. out2[2,2]:(1,2) = topK(in0[2,4]) {k: 2}  # c',
        '',
      ].join('\n'),
    );
  });

  it('of steps: every unit, and every barrier', () => {
    const program = lowered();
    const { 'steps.txt': text } = dumpTexts(program);
    const { plan, units } = program.plan;
    units.forEach((_, i) => {
      expect(text).toMatch(new RegExp(`unit ${i}: `));
    });
    expect(text!.match(/^step \d+: /gm)).toHaveLength(plan.steps.length);
    expect(text!.match(/^-- barrier --$/gm)).toHaveLength(plan.steps.at(-1)!.epoch);
    expect(text).toContain('chain of 96 rows, in blocks of 64');
    expect(text).toContain('# net/first');
  });

  it('of memory: live buffers do not overlap, within the totals', () => {
    const program = lowered();
    const { 'memory.txt': text } = dumpTexts(program);
    const total = (what: string) =>
      Number(new RegExp(`^${what}: ([\\d,]+) bytes`, 'm').exec(text!)![1]!.replaceAll(',', ''));
    expect(total('arena')).toBe(program.plan.arenaBytes);
    expect(total('scratch')).toBe(program.plan.scratchBytes);
    expect(total('packed operands')).toBeGreaterThan(0);
    expect(text).toMatch(/^partial sums\nsum +elements +blocks +buffer$/m);
    for (const { buffer, size, blocks } of program.plan.plan.accumulators)
      expect(text).toMatch(new RegExp(`^.* +${size} +${blocks} +%${buffer.id}$`, 'm'));
    const arena = text!.slice(0, text!.indexOf('\n\n'));
    const rows = [...arena.matchAll(/^%\d+ +\w+ +(.*)$/gm)].map(([, numbers]) =>
      numbers!.split(/ +/).map((number) => Number(number.replaceAll(',', ''))),
    );
    expect(rows.length).toBeGreaterThan(1);
    for (const [i, [, bytes, from, to, offset]] of rows.entries()) {
      expect(offset! + bytes!).toBeLessThanOrEqual(program.plan.arenaBytes);
      for (const [, otherBytes, otherFrom, otherTo, otherOffset] of rows.slice(i + 1)) {
        const apart = offset! + bytes! <= otherOffset! || otherOffset! + otherBytes! <= offset!;
        expect(apart || to! < otherFrom! || otherTo! < from!).toBe(true);
      }
    }
  });

  it('of loops and branches: their steps are indented', () => {
    const loop = ({ x }: any): any =>
      ops.scan(
        (state: Tensor, row: Tensor) => [
          ops.cond(
            tf.greater(tf.sum(row), 0),
            (given: Tensor) => tf.exp(given),
            (given: Tensor) => tf.sin(given),
            state,
          ),
          [],
        ],
        tf.ones([8]),
        x,
      )[0];
    const { 'steps.txt': text } = dumpTexts(lowered(loop, { x: { shape: [5, 2], dtype: 'float32' } }));
    const heads = text!.split('\n').filter((line) => /turns of|only if|step/.test(line));
    expect(heads.map((line) => line.replace(/%\d+/, '%n').replace(/(threads|blocks).*/, '$1'))).toEqual([
      'step 0: threads',
      '5 turns of',
      '  step 1: threads',
      '  step 2: add the blocks',
      '  step 3: threads',
      '  only if %n is true:',
      '    step 4: threads',
      '  only if %n is false:',
      '    step 5: threads',
      'step 6: threads',
    ]);
  });

  it('of a program that does nothing', () => {
    const texts = dumpTexts(lowered(({ x }: any) => ({ x }), { x: { shape: [2], dtype: 'float32' } }));
    expect(texts['graph.txt']).toBe('v0 = float32[2] input x\nreturn v0\n');
    expect(texts['memory.txt']).toContain('registers: none');
  });
});

describe('LUTHIER_DUMP', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('writes a folder per program, whether the machine can compile it or not', async () => {
    const directory = join(temporaryDirectory(), 'made/here');
    vi.stubEnv('LUTHIER_DUMP', directory);
    const options = { engine: 'native', name: 'two layers/x' } as const;
    for (let i = 0; i < 2; i++) {
      const executable = await compile(twoLayers, specs, options).catch(() => null);
      await executable?.dispose();
    }
    // The same program is there once, and nothing else.
    const [folder, ...others] = readdirSync(directory);
    expect(others).toEqual([]);
    expect(folder).toMatch(/^two_layers_x-[0-9a-f]{8}$/);
    const files = readdirSync(join(directory, folder!)).sort();
    expect(files).toEqual(['graph.txt', 'memory.txt', 'program.c', 'steps.txt', 'units.txt']);
    const read = (file: string) => readFileSync(join(directory, folder!, file), 'utf8');
    expect(Object.fromEntries(files.map((file) => [file, read(file)]))).toEqual(dumpTexts(lowered()));
  });

  it('separates programs with equal names', () => {
    const directory = temporaryDirectory();
    const first = writeDump(directory, 'step', dumpTexts(lowered()));
    expect(statSync(first).mode & 0o777).toBe(0o777 & ~process.umask());
    const second = writeDump(directory, 'step', dumpTexts(lowered(({ x }: any) => tf.relu(x), specs)));
    expect(new Set([first, second, writeDump(directory, 'step', dumpTexts(lowered()))]).size).toBe(2);
    expect(readdirSync(directory)).toHaveLength(2);
  });

  it('reports a folder that can’t be written', () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    expect(() => writeDump(file, 'step', dumpTexts(lowered()))).toThrow(
      new RegExp(`^LUTHIER_DUMP=${file}: can't be written: E\\w+: .*\\.$`),
    );
    expect(() => writeDump(file, 'step', dumpTexts(lowered()))).toThrow(CompilerError);
  });
});
