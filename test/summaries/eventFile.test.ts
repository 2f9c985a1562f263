/** @file Event files: frames, messages, whole records after each call. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { decode } from 'fast-png';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { maskedCrc32c } from '../../src/files/index.js';
import { EventFile, SummaryError } from '../../src/summaries/index.js';
import { histogramBuckets } from '../../src/summaries/summaryValues.js';
import { fieldsOf, readEvents } from './readEvents.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'luthier-events-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The records of a file, each frame checked. */
function records(path: string): Buffer[] {
  const bytes = readFileSync(path);
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
    const data = bytes.subarray(at + 12, at + 12 + length);
    expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(data));
    found.push(data);
    at += 16 + length;
  }
  return found;
}

test('a scalar event has the bytes that the schema asks for', () => {
  const file = new EventFile(directory, { now: () => 1_700_000_000_500 });
  file.summaries(300, { loss: 1.5 });
  file.close();
  expect(basename(file.path)).toMatch(/^events\.out\.tfevents\.1700000000\./);
  const [version, event] = records(file.path);
  const wallTime = Buffer.alloc(9, 9);
  wallTime.writeDoubleLE(1_700_000_000.5, 1);
  expect(version).toEqual(Buffer.concat([wallTime, Buffer.from('\x1a\x0dbrain.Event:2', 'latin1')]));
  const value = Buffer.concat([Buffer.from('\x0a\x04loss\x15', 'latin1'), Buffer.from([0, 0, 0xc0, 0x3f])]);
  const summary = Buffer.concat([Buffer.from([0x0a, value.length]), value]);
  expect(event).toEqual(
    Buffer.concat([wallTime, Buffer.from([0x10, 0xac, 0x02, 0x2a, summary.length]), summary]),
  );
});

test('a file that is removed while the run goes on is told, and begins anew with its header', () => {
  const told: string[] = [];
  const file = new EventFile(directory, { notify: (message) => told.push(message) });
  const version = records(file.path)[0]!.subarray(9);
  rmSync(file.path);
  file.summaries(1, { loss: 1 });
  file.close();
  expect(records(file.path).length).toBe(2);
  expect(records(file.path)[0]!.subarray(9)).toEqual(version);
  expect(told).toEqual([`${file.path} was removed or replaced meanwhile; writing continues in a new file.`]);
});

test('each call leaves a whole record, and no values leave none', () => {
  const file = new EventFile(directory);
  expect(records(file.path).length).toBe(1);
  file.summaries(1, { loss: Number.NaN, accuracy: Number.POSITIVE_INFINITY });
  expect(records(file.path).length).toBe(2);
  file.summaries(1, { Model: '# α\n' });
  expect(records(file.path)[2]!.includes(Buffer.from('# α\n'))).toBe(true);
  file.summaries(2, {});
  expect(records(file.path).length).toBe(3);
  file.close();
});

test('a resumed run says from where', () => {
  const file = new EventFile(directory, { resumeStep: 100 });
  file.close();
  const [, start] = records(file.path);
  expect(start!.subarray(9)).toEqual(Buffer.from([0x10, 101, 0x3a, 2, 0x08, 1]));
});

test('two files of one second have two names', () => {
  const files = [1, 2].map(() => new EventFile(directory, { now: () => 0 }));
  expect(new Set(files.map((file) => file.path)).size).toBe(2);
  for (const file of files) file.close();
});

test('a directory that cannot be made is named with the cause', () => {
  writeFileSync(join(directory, 'file'), '');
  const inside = join(directory, 'file', 'train');
  expect(() => new EventFile(inside)).toThrow(SummaryError);
  expect(() => new EventFile(inside)).toThrow(
    /\/file\/train\/events\S+: summaries cannot be written here: ENOTDIR/,
  );
});

test('a histogram counts the finite values in thirty buckets', () => {
  const buckets = histogramBuckets(Float32Array.of(-1, 0, 0, 2, Number.NaN, Number.POSITIVE_INFINITY));
  expect(buckets.length).toBe(90);
  expect([buckets[0], buckets[2], buckets[32], buckets[89]]).toEqual([-1, 1, 2, 1]);
  expect(buckets[88]).toBeCloseTo(2, 12);
  expect([...histogramBuckets(Float32Array.of(3, 3))]).toEqual([2.5, 3.5, 2]);
  expect(histogramBuckets(Float32Array.of(Number.NaN))).toEqual(new Float64Array(0));
});

test('values reach the file as they are: scalars of any kind, texts, histograms, images, hyperparameters', () => {
  const file = new EventFile(directory, { now: () => 1500 });
  const images = { shape: [2, 1, 2, 3], data: [0, 0.5, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0] };
  file.summaries(0, { zero: -0, none: Number.NaN, most: Number.NEGATIVE_INFINITY, large: 1e39 });
  file.summaries(2 ** 31, { text: 'a', values: Float32Array.of(-1, -0, 1), empty: new Float32Array(0) });
  file.summaries(3, { images });
  file.hparams(4, { lr: -0, name: 'x' });
  file.close();
  const [zero, none, most, large, text, values, empty, shown, hparams] = readEvents(directory);
  expect([zero, none, most, large].map((each) => [each!.step, each!.tag, each!.scalar])).toEqual([
    [0, 'zero', -0],
    [0, 'none', Number.NaN],
    [0, 'most', Number.NEGATIVE_INFINITY],
    [0, 'large', Number.POSITIVE_INFINITY],
  ]);
  expect([text!.step, text!.plugin, String(text!.strings[0])]).toEqual([2 ** 31, 'text', 'a']);
  const numbers = (content: Buffer) => new Float64Array(new Uint8Array(content).buffer);
  expect([values!.plugin, [...numbers(values!.content!)]]).toEqual([
    'histograms',
    [...histogramBuckets(Float32Array.of(-1, 0, 1))],
  ]);
  expect(empty!.content!.length).toBe(0);
  const [width, height, ...pngs] = shown!.strings;
  expect([shown!.plugin, String(width), String(height)]).toEqual(['images', '2', '1']);
  expect(pngs.map((png) => [...decode(png).data])).toEqual([
    [0, 128, 255, 255, 255, 255],
    [0, 0, 0, 255, 0, 0],
  ]);
  const session = fieldsOf(fieldsOf(hparams!.pluginContent!).get(3)![0] as Buffer);
  const entries = session.get(1)!.map((entry) => {
    const [key, value] = [1, 2].map((field) => fieldsOf(entry as Buffer).get(field)![0] as Buffer);
    const [[field, [content]]] = [...fieldsOf(value!)] as [[number, [number | Buffer]]];
    return [String(key), field, field === 2 ? content : String(content)];
  });
  expect([hparams!.step, hparams!.tag, hparams!.plugin]).toEqual([
    4,
    '_hparams_/session_start_info',
    'hparams',
  ]);
  expect(entries).toEqual([
    ['lr', 2, -0],
    ['name', 3, 'x'],
  ]);
  expect(session.get(5)).toEqual([1.5]);
});

test('each value is in one bucket: the least in the first, the most in the last, those on an edge above it', () => {
  const values = Float32Array.from({ length: 31 }, (_, i) => i);
  const counts = [...histogramBuckets(values)].filter((_, i) => i % 3 === 2);
  expect(counts).toEqual([...Array<number>(29).fill(1), 2]);
});
