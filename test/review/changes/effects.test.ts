/** @file Effects of a change on cost: training as a whole, on a device, and whether it costs more. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Analysis } from '../../../src/analysis/analyze.js';
import type { Device } from '../../../src/analysis/device.js';
import { deviceFor, onDevice } from '../../../src/review/changes/deviceEffects.js';
import { costChange, effectsOf, hasEffect } from '../../../src/review/changes/effects.js';
import type { DiffReport, Effects } from '../../../src/review/reports/diffReport.js';
import { parseReport } from '../../../src/review/reports/parseReport.js';
import { summaryTable } from '../../../src/review/reports/summaryTable.js';
import { textOf } from '../../../src/review/reports/textReport.js';
import { plain } from '../../../src/system/text/terminalOutput.js';

const analysis = (more: Partial<Analysis> = {}): Analysis =>
  ({
    parameters: 100,
    variables: [],
    tokensPerStep: 1000,
    forwardFlopsPerToken: 3e9,
    flopsPerStep: 9e12,
    precision: 'float32',
    memory: { total: 8e9 },
    numTrainSteps: 1000,
    ...more,
  }) as Analysis;

const device: Device = {
  file: 'devices/toy.yaml',
  name: 'Toy',
  peakFlops: { float32: 1e12, bfloat16: 4e12 },
  assumedMfu: 0.5,
  memoryBytes: 16e9,
  count: 2,
  pricePerHour: 1.5,
  currency: 'EUR',
};

function reportOf(...effects: Effects[]): DiffReport {
  const experiments = effects.map((each, i) => ({
    name: `lm.No${i}`,
    status: 'changed' as const,
    constants: [],
    fields: [],
    effects: each,
  }));
  const versions = { old: { label: 'main', commit: 'a'.repeat(40) }, new: { label: 'working tree' } };
  const rest = { declarations: [], thresholds: [], unchanged: 0, untouched: 0, notes: [] };
  return { format: 'luthier-config-diff', version: 1, ...versions, experiments, ...rest };
}

test('tokens and FLOPs of the whole training, where both tasks say how long it is', () => {
  const effects = effectsOf(analysis(), analysis({ numTrainSteps: 2000 }));
  expect(effects).toMatchObject({
    trainingTokens: { old: 1e6, new: 2e6 },
    trainingFlops: { old: 9e15, new: 18e15 },
    precision: { old: 'float32', new: 'float32' },
    deviceHours: {},
    price: {},
  });
  expect(hasEffect(effects)).toBe(true);
  const open = effectsOf(analysis({ numTrainSteps: 10_000_000 }), analysis());
  expect(open).toMatchObject({ trainingTokens: { new: 1e6 }, trainingFlops: { new: 9e15 } });
  expect(hasEffect(effectsOf(analysis(), analysis()))).toBe(false);
});

test('hours and price of a device, of each version in its precision, and what does not fit', () => {
  const half = analysis({ precision: 'bfloat16', memory: { total: 17e9 } as Analysis['memory'] });
  const report = onDevice(reportOf(effectsOf(analysis(), half), effectsOf(undefined, analysis())), device);
  expect(report.experiments.map(({ effects }) => [effects!.deviceHours, effects!.price])).toEqual([
    [
      { old: 5, new: 1.25 },
      { old: 7.5, new: 1.875 },
    ],
    [{ new: 5 }, { new: 7.5 }],
  ]);
  expect(report.notes).toEqual([
    'Device-hours are those of Toy (devices/toy.yaml): 1.00 TFLOP/s in float32, 4.00 TFLOP/s in bfloat16, at MFU 0.5, 1.5 EUR an hour.',
    'Too large for the 16.0 GB of Toy: lm.No0 (17.0 GB).',
  ]);
  expect(parseReport(JSON.stringify(report))).toEqual(report);
  const table = textOf(report, plain).split('\n').slice(3, 7);
  expect(table.map((line) => line.replace(/ {2,}/g, '  '))).toEqual([
    'Consequences  before  after',
    'lm.No0  Device-hours  5  1.25  −3.75, −75%',
    '  Price of training  7.5  1.88  −5.63, −75%',
    '  Peak memory of training  8.00 GB  17.0 GB  +9.00 GB, +113%',
  ]);
});

test('a device file that lacks the precision, or a price, gives no figure', () => {
  const { bfloat16 } = device.peakFlops;
  const { pricePerHour: _, currency: __, ...free } = device;
  const { experiments, notes } = onDevice(
    reportOf(effectsOf(analysis({ precision: 'bfloat16' }), analysis())),
    { ...free, peakFlops: { bfloat16: bfloat16! } },
  );
  expect(experiments[0]!.effects).toMatchObject({ deviceHours: { old: 1.25 }, price: {} });
  expect(notes).toEqual([
    'Device-hours are those of Toy (devices/toy.yaml): 4.00 TFLOP/s in bfloat16, at MFU 0.5.',
  ]);
});

test('the device that was given, else that of the settings; one that cannot be read is a note', () => {
  const folder = mkdtempSync(join(tmpdir(), 'luthier-settings-'));
  expect(deviceFor(device, 'none.yaml', folder)).toEqual({ device, notes: [] });
  expect(deviceFor(undefined, undefined, folder)).toEqual({ notes: [] });
  const text = 'name: Ours\npeakFlops: { float32: 1e12 }\nassumedMfu: 0.5\nmemoryBytes: 1e9\n';
  writeFileSync(join(folder, 'ours.yaml'), text);
  expect(deviceFor(undefined, 'ours.yaml', folder)).toMatchObject({
    device: { file: 'ours.yaml', name: 'Ours' },
    notes: [],
  });
  expect(deviceFor(undefined, 'none.yaml', folder)).toEqual({
    notes: [
      "The cost of training on the base's device is unknown: none.yaml: ENOENT: no such file or directory, open " +
        `'${join(folder, 'none.yaml')}'`,
    ],
  });
});

test('cost: device-hours, else FLOPs of the whole training, else of a token, by more than a hundredth', () => {
  const change = (old: Partial<Analysis>, now: Partial<Analysis>, on?: Device): number => {
    const report = reportOf(effectsOf(analysis(old), analysis(now)));
    return costChange((on ? onDevice(report, on) : report).experiments[0]!.effects!);
  };
  expect(change({}, { flopsPerStep: 9.08e12 })).toBe(0);
  expect(change({}, { flopsPerStep: 9.1e12 })).toBe(1);
  expect(change({}, { flopsPerStep: 8e12 })).toBe(-1);
  // Larger batches in fewer steps cost the same.
  expect(change({}, { numTrainSteps: 500, tokensPerStep: 2000, flopsPerStep: 18e12 })).toBe(0);
  const endless = { numTrainSteps: 10_000_000 };
  expect(change(endless, { ...endless, tokensPerStep: 2000, flopsPerStep: 18e12 })).toBe(0);
  expect(change(endless, { forwardFlopsPerToken: 4e9, flopsPerStep: 12e12 })).toBe(1);
  // More FLOPs, of which the device does four times as many a second.
  expect(change({}, { flopsPerStep: 18e12, precision: 'bfloat16' })).toBe(1);
  expect(change({}, { flopsPerStep: 18e12, precision: 'bfloat16' }, device)).toBe(-1);
  // There was nothing before.
  expect(costChange(effectsOf(undefined, analysis()))).toBe(0);
});

test('figures are told in the unit of the input', () => {
  const [rows, tokens] = ['rows', 'tokens'].map((unit) =>
    effectsOf(analysis({ unit }), analysis({ unit, forwardFlopsPerToken: 6e9, tokensPerStep: 2000 })),
  );
  const told = textOf(reportOf(rows!), plain);
  expect(told).toMatch(/Forward FLOPs per row +3\.00 GFLOPs? /);
  expect(told).toContain('Rows per step');
  expect(told).toContain('Rows of training');
  expect(textOf(reportOf(tokens!), plain)).toContain('Forward FLOPs per token');
  const experiments = (...effects: Effects[]) => reportOf(...effects).experiments;
  const header = (...effects: Effects[]) => summaryTable(experiments(...effects)).split('\n')[0];
  expect(header(rows!)).toMatch(/ FLOPs\/row +\| Rows\/step +\| Training rows /);
  expect(header(rows!, tokens!)).toMatch(/ FLOPs\/unit +\| Units\/step +\| Training units /);
});
