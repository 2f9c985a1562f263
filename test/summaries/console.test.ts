/** @file The console line on a terminal and in a log, and formatters. */

import { execFileSync } from 'node:child_process';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { formatCount, formatDuration, formatGrouped, ProgressLine } from '../../src/summaries/index.js';
import { typescript } from '../typescriptEnvironment.js';

class Screen extends Writable {
  text = '';
  constructor(
    readonly isTTY: boolean,
    readonly columns = 80,
  ) {
    super();
  }
  getColorDepth(): number {
    return 1;
  }
  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

const CLEAR = '\r\u001b[2K';

test('a log gets the first line, one every so many seconds, and the last', () => {
  const stream = new Screen(false);
  let now = 0;
  const line = new ProgressLine({ stream, totalSteps: 100, everySeconds: 10, now: () => now });
  for (let step = 1; step <= 100; step++) {
    now = step * 250;
    line.update({ step, loss: 3 - step / 100, throughput: { unit: 'tokens', perSec: 45_234 }, mfu: 0.4126 });
  }
  line.update({ step: 100, loss: 2 });
  line.finish();
  expect(stream.text).toBe(
    [
      'step   1/100  loss 2.9900  45.2k tokens/s  MFU 41.3%',
      'step  41/100  loss 2.5900  45.2k tokens/s  MFU 41.3%  15s left',
      'step  81/100  loss 2.1900  45.2k tokens/s  MFU 41.3%  5s left',
      'step 100/100  loss 2.0000  45.2k tokens/s  MFU 41.3%',
      '',
    ].join('\n'),
  );
});

test('waiting for batches is shown from 5 % on', () => {
  const stream = new Screen(false);
  const line = new ProgressLine({ stream, totalSteps: 2, everySteps: 1, now: () => 0 });
  line.update({ step: 1, mfu: 0.5, inputWait: 0.049 });
  line.update({ step: 2, mfu: 0.5, inputWait: 0.12 });
  expect(stream.text).toBe('step 1/2  MFU 50.0%\nstep 2/2  MFU 50.0%  input wait 12%\n');
});

test('examples left out are shown where there are any', () => {
  const stream = new Screen(false);
  const line = new ProgressLine({ stream, totalSteps: 2, everySteps: 1, now: () => 0 });
  line.update({ step: 1, loss: 1, skipped: 0 });
  line.update({ step: 2, loss: 1, skipped: 7 });
  expect(stream.text).toBe('step 1/2  loss 1.0000\nstep 2/2  loss 1.0000  skipped 7\n');
});

test('a log can have a line every so many steps', () => {
  const stream = new Screen(false);
  const line = new ProgressLine({ stream, totalSteps: 10, everySteps: 4, now: () => 0 });
  for (let step = 1; step <= 10; step++) line.update({ step });
  expect(stream.text).toBe('step  1/10\nstep  4/10  0s left\nstep  8/10  0s left\nstep 10/10\n');
});

test('a terminal has one line, redrawn at most ten times a second, and messages stay above it', () => {
  const stream = new Screen(true);
  let now = 0;
  const line = new ProgressLine({ stream, totalSteps: 9, now: () => now });
  line.update({ step: 1 });
  now = 99;
  line.update({ step: 2 });
  now = 100;
  line.update({ step: 3, loss: Number.NaN });
  line.message('saved');
  line.finish();
  now = 300;
  line.update({ step: 4 });
  line.finish();
  line.message('done');
  expect(stream.text).toBe(
    `${CLEAR}step 1/9${CLEAR}step 3/9  loss NaN  0s left${CLEAR}saved\n${CLEAR}step 4/9  1s left\ndone\n`,
  );
});

test('a narrow terminal loses the last fields, not the first', () => {
  const stream = new Screen(true, 24);
  const line = new ProgressLine({ stream, totalSteps: 9, now: () => 0 });
  line.update({ step: 1, loss: 1, throughput: { unit: 'images', perSec: 1000 } });
  expect(stream.text).toBe(`${CLEAR}step 1/9  loss 1.0000`);
});

test('a terminal with colours gets them unless NO_COLOR is set', () => {
  const library = new URL('../../src/summaries/index.ts', import.meta.url).href;
  const script = `
    import { ProgressLine } from ${JSON.stringify(library)};
    process.stdout.isTTY = true;
    process.stdout.getColorDepth ??= () => (process.env.NO_COLOR === undefined ? 8 : 1);
    new ProgressLine({ stream: process.stdout, totalSteps: 2 }).update({ step: 1 });`;
  const run = (color: Record<string, string>) => {
    const { NO_COLOR, FORCE_COLOR, ...env } = process.env;
    const node = ['--import', typescript, '--input-type=module', '--eval', script];
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    return execFileSync(process.execPath, node, {
      env: { ...env, TERM: 'xterm-256color', ...color },
      cwd,
      encoding: 'utf8',
    });
  };
  expect(run({})).toBe(`${CLEAR}\u001b[1mstep 1/2\u001b[22m`);
  expect(run({ NO_COLOR: '1' })).toBe(`${CLEAR}step 1/2`);
});

test('counts have three digits and a scale', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [950, '950'],
    [12.345, '12.3'],
    [999.6, '1.00k'],
    [1000, '1.00k'],
    [45_234, '45.2k'],
    [99_960, '100k'],
    [999_600, '1.00M'],
    [10_745_088, '10.7M'],
    [-2_500, '-2.50k'],
    [1.236e9, '1.24B'],
    [3e12, '3.00T'],
    [Number.NaN, 'NaN'],
  ];
  expect(cases.map(([value]) => formatCount(value))).toEqual(cases.map(([, text]) => text));
  expect([0, 999, 1000, -123_456, 10_745_088].map(formatGrouped)).toEqual([
    '0',
    '999',
    '1,000',
    '-123,456',
    '10,745,088',
  ]);
});

test('durations have their two largest units', () => {
  const seconds = [-1, 0, 42.4, 59.6, 185, 3599.7, 7620, 97_200, Number.NaN];
  expect(seconds.map(formatDuration)).toEqual([
    '0s',
    '0s',
    '42s',
    '1m 00s',
    '3m 05s',
    '1h 00m',
    '2h 07m',
    '1d 03h',
    '?',
  ]);
});
