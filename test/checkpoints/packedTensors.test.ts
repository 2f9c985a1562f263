/** @file Packed weights against torch and transformers (scripts/record_packed.py), in one file and in shards. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { orderAxes } from '../../src/checkpoints/axes.js';
import { WeightFiles } from '../../src/checkpoints/index.js';
import { temporaryDirectory } from '../command.js';
import { type NamedTensor, writeSafetensors } from './writeSafetensors.js';

const recorded: {
  readonly e4m3: readonly (number | null)[];
  readonly mxfp4: Readonly<Record<'blocks' | 'scales' | 'matrices', number[]>>;
} = JSON.parse(readFileSync(new URL('../fixtures/published/packed.json', import.meta.url), 'utf8'));

/** Weights in one file. */
function opened(tensors: readonly NamedTensor[]): WeightFiles {
  const path = join(temporaryDirectory(), 'x.safetensors');
  writeSafetensors(path, tensors);
  return WeightFiles.open(path);
}

function read(weights: WeightFiles, name: string, notation?: string, shape?: readonly number[]) {
  const stored = weights.shapeOf(name)!;
  const order = notation === undefined ? undefined : orderAxes(notation, stored, shape!);
  const target = new Float32Array((shape ?? stored).reduce((a, b) => a * b, 1));
  weights.readInto(name, target, order);
  return target;
}

/** More elements than are read at a time, and blocks that the matrix cuts off. */
const [ROWS, COLUMNS] = [1100, 2001];
const codeAt = (row: number, column: number): number => (row * 7 + column * 3) % 256;
const matrix: NamedTensor = {
  ...{ name: 'w.weight', dtype: 'F8_E4M3', shape: [ROWS, COLUMNS] },
  data: Uint8Array.from({ length: ROWS * COLUMNS }, (_, i) => codeAt(Math.floor(i / COLUMNS), i % COLUMNS)),
};
const [ROW_BLOCKS, COLUMN_BLOCKS] = [9, 16];
const ofMatrix: NamedTensor = {
  ...{ name: 'w.weight_scale_inv', dtype: 'F32', shape: [ROW_BLOCKS, COLUMN_BLOCKS] },
  data: Float32Array.from({ length: ROW_BLOCKS * COLUMN_BLOCKS }, (_, i) => 0.01 * (i + 1)),
};

/** Positions at which a matrix is not the torch's values of its codes times the factors of its blocks. */
function wrong(found: (row: number, column: number) => number): number {
  const values = Float32Array.from(recorded.e4m3, (value) => value ?? Number.NaN);
  const factors = ofMatrix.data as Float32Array;
  let count = 0;
  for (let row = 0; row < ROWS; row++)
    for (let column = 0; column < COLUMNS; column++) {
      const factor = factors[(row >> 7) * COLUMN_BLOCKS + (column >> 7)]!;
      const expected = Math.fround(values[codeAt(row, column)]! * factor);
      if (!Object.is(found(row, column), expected)) count++;
    }
  return count;
}

test('FP8 with a factor for each 128 x 128', () => {
  const weights = opened([matrix, ofMatrix]);
  expect(weights.names).toEqual(['w.weight']);
  const whole = read(weights, 'w.weight');
  expect(wrong((row, column) => whole[row * COLUMNS + column]!)).toBe(0);
  const turned = read(weights, 'w.weight', 'o i -> i o', [COLUMNS, ROWS]);
  expect(wrong((row, column) => turned[column * ROWS + row]!)).toBe(0);
  weights.close();
});

test.each([
  [
    'each block',
    [2, 2, 3],
    (matrix: number, row: number, column: number) => matrix * 6 + (row >> 7) * 3 + (column >> 7),
  ],
  ['each matrix', [2, 1, 1], (matrix: number) => matrix],
  ['the tensor', [], () => 0],
  ['the tensor', [1], () => 0],
] as const)('FP8 of several matrices with a factor for %s', (_, shape, factorOf) => {
  const [rows, columns] = [130, 260];
  const count = 2 * rows * columns;
  const codes = Uint8Array.from({ length: count }, (_, i) => codeAt(Math.floor(i / columns), i % columns));
  const factors = Float32Array.from({ length: 12 }, (_, i) => 0.5 + 0.1 * i).subarray(
    0,
    shape.reduce((a: number, b) => a * b, 1),
  );
  const weights = opened([
    { name: 'w', dtype: 'F8_E4M3', shape: [2, rows, columns], data: codes },
    { name: 'w_scale_inv', dtype: 'F32', shape: [...shape], data: factors },
  ]);
  const expected = Float32Array.from(codes, (code, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const factor = factors[factorOf(Math.floor(row / rows), row % rows, column)]!;
    return (recorded.e4m3[code] ?? Number.NaN) * factor;
  });
  expect(read(weights, 'w').findIndex((value, i) => !Object.is(value, expected[i]))).toBe(-1);
  weights.close();
});

test('factors are found in another shard, and in any type of floats', () => {
  const folder = temporaryDirectory();
  mkdirSync(folder, { recursive: true });
  const data = Uint16Array.of(0x3f80, 0x4000);
  writeSafetensors(join(folder, 'a.safetensors'), [
    { name: 'a', dtype: 'F8_E4M3', shape: [1, 130], data: new Uint8Array(130).fill(0x3c) },
    { name: 'b', dtype: 'F8_E4M3', shape: [1, 130], data: new Uint8Array(130).fill(0x3c) },
  ]);
  writeSafetensors(join(folder, 'b.safetensors'), [
    { name: 'a_scale_inv', dtype: 'BF16', shape: [1, 2], data },
    { name: 'b_scale_inv', dtype: 'BF16', shape: [1, 2], data: data.slice().reverse() },
  ]);
  const places = { a: 'a', b: 'a', a_scale_inv: 'b', b_scale_inv: 'b' };
  const map = Object.entries(places).map(([name, shard]) => [name, `${shard}.safetensors`]);
  writeFileSync(
    join(folder, 'model.safetensors.index.json'),
    JSON.stringify({ weight_map: Object.fromEntries(map) }),
  );
  const weights = WeightFiles.open(folder);
  expect(weights.names).toEqual(['a', 'b']);
  expect(read(weights, 'a')).toEqual(Float32Array.from({ length: 130 }, (_, i) => (i < 128 ? 1.5 : 3)));
  expect(weights.areEqual('a', 'a')).toBe(true);
  expect(weights.areEqual('a', 'b')).toBe(false);
  weights.close();
});

const experts: NamedTensor = {
  ...{ name: 'x_blocks', dtype: 'U8', shape: [2, 3, 2, 16] },
  data: Uint8Array.from(recorded.mxfp4.blocks),
};
const ofExperts: NamedTensor = {
  ...{ name: 'x_scales', dtype: 'U8', shape: [2, 3, 2] },
  data: Uint8Array.from(recorded.mxfp4.scales),
};

test('MXFP4, whole and from an odd element on', () => {
  const weights = opened([experts, ofExperts]);
  expect(weights.names).toEqual(['x_blocks']);
  expect(weights.shapeOf('x_blocks')).toEqual([2, 3, 64]);
  const whole = read(weights, 'x_blocks', 'e o i -> e i o', [2, 64, 3]);
  expect(whole).toEqual(Float32Array.from(recorded.mxfp4.matrices));
  const every2nd = read(weights, 'x_blocks', 'e o (i 1/2) -> e i o', [2, 32, 3]);
  expect(every2nd).toEqual(whole.filter((_, i) => Math.floor(i / 3) % 2 === 1));
  weights.close();
});

test('an exponent of all ones is NaN', () => {
  const data = new Uint8Array(ofExperts.data.buffer.slice(0)).fill(255, 0, 1);
  const weights = opened([experts, { ...ofExperts, data }]);
  const whole = read(weights, 'x_blocks');
  expect(whole.slice(0, 32).every(Number.isNaN)).toBe(true);
  expect(whole.slice(32).some(Number.isNaN)).toBe(false);
  weights.close();
});

test('scales that are missing, and those of another number of blocks', () => {
  const alone = opened([matrix, experts]);
  expect(alone.names).toEqual(['w.weight', 'x_blocks']);
  expect(alone.shapeOf('x_blocks')).toEqual(experts.shape);
  expect(() => read(alone, 'w.weight')).toThrow(
    "tensor 'w.weight': F8_E4M3 is not read; convert it to F32, F16, BF16 or F64",
  );
  alone.close();
  expect(() => opened([matrix, { ...ofMatrix, shape: [COLUMN_BLOCKS, ROW_BLOCKS] }])).toThrow(
    "tensor 'w.weight_scale_inv': expected [9, 16], a scale for each block of 'w.weight', or [1, 1], or [], or [1], found [16, 9]",
  );
});
