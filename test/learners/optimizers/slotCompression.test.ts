/** @file Slots in 16 and 8 bits: their memory, their values, what rounding keeps on average, rules of all kinds. */
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Adam,
  AdamW,
  type BaseOptimizer,
  Lamb,
  Learner,
  Lion,
  Muon,
  Sgd,
  slotBytes,
} from '../../../src/learners/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { bench, learnerOf, noise } from '../fixtures.js';

const learningRate = 0.1;
const SIZE = 4096 + 40;
/** Of a matrix of whole blocks. */
const SIDE = 64;
const START = noise(1, SIZE);
const rms = (of: readonly number[]): number => Math.hypot(...of) / Math.sqrt(of.length);
const gradientAt = (step: number): number[] => noise(7 + step, SIZE).map((each, i) => each * 10 ** -(i % 4));

type SlotDtype = 'float32' | 'bfloat16' | 'int8';
type Make = (fields: { learningRate: number; slotDtype: SlotDtype }) => Config<BaseOptimizer>;

/** The distance between parameters after steps with slots as given and in float32, over that which they went. */
async function distance(of: Make, dtype: SlotDtype, steps = 5): Promise<number> {
  const [full, found] = await Promise.all(
    [of({ learningRate, slotDtype: 'float32' }), of({ learningRate, slotDtype: dtype })].map(async (each) => {
      const shapes = { w: [44, 94], s: [2, 44, 94], b: [40] };
      const values = { w: START, s: [...START, ...START], b: START.slice(0, 40) };
      const { step, read } = await bench(values, learnerOf(each), { shapes, repeatPrefix: { s: [2] } });
      for (let t = 0; t < steps; t++) {
        const g = gradientAt(t);
        await step(t, { w: g, s: [...g, ...g], b: g.slice(0, 40) });
      }
      return [...read('w'), ...read('s')];
    }),
  );
  const far = full!.map((each, i) => each - found![i]!);
  return rms(far) / rms(full!.map((each, i) => each - START[i % SIZE]!));
}

test.each<[string, Make, SlotDtype, number]>([
  ['AdamW', (fields) => AdamW.config(fields), 'int8', 0.05],
  ['Lamb', (fields) => Lamb.config(fields), 'bfloat16', 0.004],
  ['Muon', (fields) => Muon.config(fields), 'int8', 0.05],
])('%s takes nearly the steps of float32', async (_, of, dtype, most) => {
  const found = await distance(of, dtype);
  expect(found).toBeGreaterThan(1e-5);
  expect(found).toBeLessThan(most);
});

test('slots take half or a quarter of the memory; small ones stay in float32, as those of other shapes', () => {
  const bytes = (config: Config<BaseOptimizer>) => {
    const learner = build(Learner.config({ optimizer: config }));
    const layouts = learner.slotLayouts(
      learner.layout([
        { path: 'w', shape: [4096, 256] },
        { path: 'b', shape: [256] },
      ]),
    );
    return Object.fromEntries(
      Object.entries(layouts).map(([name, layout]) => [name, slotBytes({ [name]: layout })]),
    );
  };
  expect(bytes(AdamW.config({ learningRate, slotDtype: 'int8' }))).toEqual({
    ...{ mInt8: 2 ** 20, mScale: 2 ** 14, vUint8: 2 ** 20, vScale: 2 ** 14 },
    ...{ m: 1024, v: 1024 },
  });
  expect(bytes(AdamW.config({ learningRate, slotDtype: 'bfloat16' }))).toEqual({
    ...{ m: 2 ** 21 + 512, v: 2 ** 21 + 512 },
  });
});

/** The values of codes, by the definition of the map: 2^i of them in the decade i below the scale. */
function valueFrom(code: number, scale: number): number {
  const size = Math.abs(code);
  if (size === 0) return 0;
  const decade = Math.floor(Math.log2(size));
  const part = decade === 0 ? 1 : 0.1 + (0.9 * (size - 2 ** decade + 1)) / 2 ** decade;
  return Math.sign(code) * scale * part * 10 ** (decade - 6);
}

test('a block has the nearest of the values of its scale', async () => {
  const { step, read } = await bench(
    { w: START },
    learnerOf(Sgd.config({ learningRate, momentum: 0.9, slotDtype: 'int8', slotRounding: 'nearest' })),
  );
  const grad = gradientAt(0);
  await step(0, { w: grad });
  const scales = read('w', 'mScale');
  for (const [i, code] of read('w', 'mInt8').entries()) {
    const scale = scales[Math.floor(i / 256)]!;
    const all = [-1, 0, 1].flatMap((by) => (Math.abs(code + by) <= 127 ? [valueFrom(code + by, scale)] : []));
    const nearest = Math.min(...all.map((each) => Math.abs(each - grad[i]!)));
    expect(Math.abs(valueFrom(code, scale) - grad[i]!)).toBeLessThanOrEqual(nearest + 1e-6 * scale);
  }
  expect(scales[0]).toBe(Math.fround(Math.max(...grad.slice(0, 256).map(Math.abs))));
});

test.each(['bfloat16', 'int8'] as const)(
  'a mean in %s goes on average where it goes in float32; to the nearest it stands still',
  async (slotDtype) => {
    const ends: Record<string, number> = {};
    for (const slotRounding of ['nearest', 'stochastic'] as const) {
      const config = Adam.config({ learningRate, beta2: 0.999, slotDtype, slotRounding });
      const { step, slots, read } = await bench({ w: Array(SIZE).fill(0) }, learnerOf(config));
      // The first element of a block is its largest, and stays as it is.
      const grads = noise(3, SIZE).map((each, i) => (i % 256 === 0 ? 1 : each));
      for (let t = 0; t < 40; t++)
        await step(t, { w: t === 0 ? grads : grads.map((_, i) => (i % 256 === 0 ? Math.sqrt(0.001) : 0)) });
      const values =
        slotDtype === 'int8'
          ? read('w', 'vUint8').map(
              (code, i) => valueFrom(code / 2, read('w', 'vScale')[Math.floor(i / 256)]!) ** 2,
            )
          : [...slots.v!].map((bits) => new Float32Array(Uint32Array.of(bits << 16).buffer)[0]!);
      const sum = (of: readonly number[]) => of.reduce((all, each, i) => all + (i % 256 === 0 ? 0 : each), 0);
      ends[slotRounding] = sum(values.slice(0, SIZE)) / sum(grads.map((each) => 0.001 * each * each));
    }
    expect(ends.nearest).toBeCloseTo(1, 2);
    expect(ends.stochastic).toBeCloseTo(0.999 ** 39, 2);
  },
);

test.skipIf(!hasCompiler)('machine code keeps the slots that ONNX Runtime keeps', async () => {
  const [onnx, native] = await Promise.all(
    (['onnx', 'native'] as const).map(async (engine) => {
      const config = AdamW.config({ learningRate, slotDtype: 'int8' });
      const made = await bench({ w: START.slice(0, SIDE ** 2) }, learnerOf(config), {
        shapes: { w: [SIDE, SIDE] },
        engine,
      });
      for (let t = 0; t < 3; t++) await made.step(t, { w: gradientAt(t).slice(0, SIDE ** 2) });
      return made;
    }),
  );
  for (const slot of ['mInt8', 'vUint8']) {
    const [one, other] = [onnx!.read('w', slot), native!.read('w', slot)];
    const apart = one.map((code, i) => Math.abs(code - other[i]!));
    // Where a rounding of the value decides, the noise gives the code beside it.
    expect(Math.max(...apart)).toBeLessThanOrEqual(1);
    expect(apart.filter((by) => by > 0).length / apart.length).toBeLessThan(0.01);
  }
  const far = onnx!.read('w').map((each, i) => each - native!.read('w')[i]!);
  expect(rms(far)).toBeLessThan(1e-3 * learningRate);
});

test('noise follows from the step, and a step that is not valid keeps every bit', async () => {
  const config = Lion.config({ learningRate, slotDtype: 'int8' });
  const [one, other] = await Promise.all([0, 1].map(() => bench({ w: START }, learnerOf(config))));
  for (const { step } of [one!, other!]) for (let t = 0; t < 2; t++) await step(t, { w: gradientAt(t) });
  expect(one!.slots).toEqual(other!.slots);
  await one!.step(2, { w: Array(SIZE).fill(Number.NaN) });
  expect([one!.slots, one!.params]).toEqual([other!.slots, other!.params]);
});

test('lazy rules have no blocks', () => {
  expect(() => build(Adam.config({ learningRate, lazyUpdate: true, slotDtype: 'int8' }))).toThrow(
    "Adam: slotDtype 'int8' has scales of many elements, and a lazy rule leaves some of these as they are: set slotDtype to 'bfloat16'.",
  );
});
