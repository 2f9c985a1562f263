/** @file Device files, and what trainings cost on them. */
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { devicesOf, hoursOn, peakOf, readDevice, trainingCost } from '../../src/analysis/device.js';

const folder = mkdtempSync(join(tmpdir(), 'luthier-device-'));
const written = (text: string, name = 'device.yaml'): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};
const lines = {
  name: 'name: Toy',
  peak: 'peakFlops: { float32: 1e12, bfloat16: 4e12 }',
  mfu: 'assumedMfu: 0.5',
  memory: 'memoryBytes: 16e9',
};
const toy = (more: Partial<typeof lines> & { rest?: string } = {}): string =>
  Object.values({ ...lines, ...more }).join('\n');

const meshOf = (devices: number) => ({ devices, axes: { replica: 1, data: devices, mdl: 1 }, padded: [] });

test('a file in YAML or JSON', () => {
  const file = written(toy({ rest: 'count: 8\npricePerHour: 1.5\ncurrency: EUR' }));
  expect(readDevice(file)).toEqual({
    file,
    name: 'Toy',
    peakFlops: { float32: 1e12, bfloat16: 4e12 },
    assumedMfu: 0.5,
    memoryBytes: 16e9,
    count: 8,
    pricePerHour: 1.5,
    currency: 'EUR',
  });
  const json = written(
    '{"name": "Toy", "peakFlops": {"bfloat16": 4e12}, "assumedMfu": 1, "memoryBytes": 1e9}',
    'device.json',
  );
  expect(readDevice(json)).toMatchObject({ peakFlops: { bfloat16: 4e12 }, count: 1 });
  const short = written(toy({ name: 'name: T', rest: 'pricePerHour: 2\ncurrency: €' }), 'short.yaml');
  expect(readDevice(short)).toMatchObject({ name: 'T', currency: '€' });
});

const hint =
  'A device file has name, peakFlops (FLOP/s, by float32 and bfloat16), assumedMfu, memoryBytes, count (default: 1), ' +
  'pricePerHour (of one device) with currency or neither, and mesh (efficiency, memoryBytesPerSecond, links, overlap) where plans ' +
  'are made; devices/ has examples.';

test.each([
  [toy({ mfu: 'assumedMfu: 45' }), ': device.assumedMfu: expected a positive number at most 1, got 45. '],
  [toy({ memory: 'memory: 16e9' }), ': device.memoryBytes: expected a positive number, got undefined. '],
  [toy({ rest: 'peakTflops: 3' }), ": device: no field 'peakTflops'. Did you mean 'peakFlops'?"],
  [
    toy({ peak: 'peakFlops: { float16: 1e12 }' }),
    ": device.peakFlops: no field 'float16'. Did you mean 'bfloat16'?",
  ],
  [toy({ rest: 'pricePerHour: 2' }), ': device: expected pricePerHour and currency, or neither, got '],
])('what is wrong is told with what belongs there', (text, message) => {
  const file = written(text);
  const told = errorOf(() => readDevice(file));
  expect(told.slice(0, file.length + message.length)).toBe(`${file}${message}`);
  expect(told.endsWith(hint)).toBe(true);
});

test('a file that is not there, or no YAML', () => {
  const file = join(folder, 'none.yaml');
  expect(errorOf(() => readDevice(file))).toBe(`${file}: ENOENT: no such file or directory, open '${file}'`);
  expect(errorOf(() => readDevice(written('name: [')))).toMatch(
    /device\.yaml: Flow sequence .* at line 1, column 8/,
  );
});

test('the examples that come with the project', () => {
  const folder = 'devices';
  const devices = readdirSync(folder).map((name) => readDevice(join(folder, name)));
  const figures = devices.map(({ name, peakFlops, memoryBytes }) => [name, peakFlops.bfloat16, memoryBytes]);
  expect(figures).toEqual([
    ['NVIDIA A100 80GB', 312e12, 80e9],
    ['two cores of an AMD EPYC (Zen 4)', 473e9, 24 * 2 ** 30],
    ['NVIDIA H100 SXM', 989.4e12, 80e9],
    ['NVIDIA H200 SXM', 989.4e12, 141e9],
    ['TPU v4', 275e12, 32 * 2 ** 30],
    ['TPU v5e', 197e12, 16e9],
    ['TPU v5p', 459e12, 95e9],
    ['TPU v6e', 918e12, 32e9],
  ]);
});

test('a training takes its steps, its tokens, and hours by peak and MFU', () => {
  const device = readDevice(written(toy({ rest: 'count: 2' })));
  const analysis = { numTrainSteps: 1000, tokensPerStep: 512, flopsPerStep: 9e12 };
  expect(trainingCost(analysis)).toEqual({ steps: 1000, tokens: 512_000, flops: 9e15 });
  // 9e15 FLOPs at half of 1e12 and of 4e12 a second.
  expect(hoursOn(device, 9e15, 'float32')).toBe(5);
  expect(hoursOn(device, 9e15, 'bfloat16')).toBe(1.25);
  // What nobody set is no length of a training.
  expect(trainingCost({ ...analysis, numTrainSteps: 10_000_000 })).toBeUndefined();
});

test('devices are those of the mesh, else those of the file', () => {
  const device = readDevice(written(toy({ peak: 'peakFlops: { bfloat16: 4e12 }', rest: 'count: 2' })));
  expect(devicesOf(device, { mesh: meshOf(1) })).toBe(2);
  expect(devicesOf(device, { mesh: meshOf(16) })).toBe(16);
  const peak = peakOf(device, { mesh: meshOf(16), precision: 'bfloat16' });
  expect(peak).toEqual({ flops: 64e12, source: '16 × Toy' });
  expect(hoursOn(device, 1e15, 'float32')).toBeUndefined();
  expect(() => peakOf(device, { mesh: meshOf(1), precision: 'float32' })).toThrow(
    `${device.file}: peakFlops lacks float32, in which most products multiply.`,
  );
});

function errorOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}
