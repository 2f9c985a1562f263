/** @file The console line on a terminal and in a log, and formatters. */

import { execFileSync } from 'node:child_process';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ProgressLine } from '../../src/summaries/index.js';
import { formatCount, formatDuration, formatGrouped } from '../../src/system/text/index.js';
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
  line.update({ step: 2, mfu: 0.5, inputWait: 0.05 });
  line.update({ step: 3, mfu: -0, inputWait: 0.125, waitTag: 'sampling' });
  expect(stream.text).toBe(
    'step 1/2  MFU 50.0%\nstep 2/2  MFU 50.0%  input wait 5%\nstep 3/2  MFU 0.0%  sampling 13%\n',
  );
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

test('a narrow terminal loses the last fields, not the first: a line leaves its last column free', () => {
  const widths = [1, 21, 22, 37, 38, 39, undefined];
  const lines = widths.map((columns) => {
    const stream = new Screen(true, columns);
    const options = { stream: Object.assign(stream, { columns }), totalSteps: 9, now: () => 0 };
    new ProgressLine(options).update({ step: 1, loss: 1, throughput: { unit: 'images', perSec: 1000 } });
    return stream.text.slice(CLEAR.length);
  });
  const [step, loss, all] = ['step 1/9', 'step 1/9  loss 1.0000', 'step 1/9  loss 1.0000  1.00k images/s'];
  expect([loss!.length, all!.length]).toEqual([21, 37]);
  expect(lines).toEqual([step, step, loss, loss, all, all, all]);
});

test('a log of no given interval has a line every ten seconds; its lines are whole, and messages keep their breaks', () => {
  const stream = Object.assign(new Screen(false), { columns: 10 });
  let now = 0;
  const line = new ProgressLine({ stream, totalSteps: 99, now: () => now });
  for (const [step, seconds] of [
    [1, 0],
    [2, 9.999],
    [3, 10],
    [4, 19.999],
  ] as const) {
    now = 1000 * seconds;
    line.update({ step, loss: -0.00004 });
  }
  line.message('a\n\u001b[1mb');
  line.finish();
  expect(stream.text).toBe(
    'step  1/99  loss -0.0000\nstep  3/99  loss -0.0000  8m 00s left\na\n\\u001b[1mb\n',
  );
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
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    // Both sides of each change of digits and scale, and the same below zero.
    ...(
      [
        [999.4, '999'],
        [999.5, '1.00k'],
        [9994, '9.99k'],
        [9995, '10.0k'],
        [99_940, '99.9k'],
        [99_950, '100k'],
        [999_499, '999k'],
        [999_500, '1.00M'],
        [999.5e6, '1.00B'],
        [999.4e9, '999B'],
        [999.5e9, '1.00T'],
        [1e15, '1000T'],
        [0.0012345, '0.00123'],
        [1.005, '1'],
      ] as const
    ).flatMap(([value, text]): [number, string][] => [
      [value, text],
      [-value, `-${text}`],
    ]),
    [-0, '0'],
  ];
  expect(cases.map(([value]) => formatCount(value))).toEqual(cases.map(([, text]) => text));
  expect([0, -0, 999, -999, 1000, -123_456, 10_745_088, 2 ** 53].map(formatGrouped)).toEqual([
    ...['0', '0', '999', '-999', '1,000', '-123,456', '10,745,088', '9,007,199,254,740,992'],
  ]);
});

test('durations have their two largest units', () => {
  const cases: [number, string][] = [
    [-1, '0s'],
    [-0.5, '0s'],
    [0, '0s'],
    [0.49, '0s'],
    [0.5, '1s'],
    [42.4, '42s'],
    [59.4, '59s'],
    [59.5, '1m 00s'],
    [60, '1m 00s'],
    [185, '3m 05s'],
    [3599.4, '59m 59s'],
    [3599.5, '1h 00m'],
    [3600, '1h 00m'],
    [7620, '2h 07m'],
    [7679, '2h 07m'],
    [86_399.4, '23h 59m'],
    [86_399.5, '1d 00h'],
    [97_200, '1d 03h'],
    [100 * 86_400, '100d 00h'],
    [Number.NaN, '?'],
    [Number.POSITIVE_INFINITY, '?'],
  ];
  expect(cases.map(([seconds]) => [seconds, formatDuration(seconds)])).toEqual(cases);
});
