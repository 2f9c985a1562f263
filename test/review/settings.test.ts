/** @file Review settings in package.json. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSettings } from '../../src/review/settings.js';
import { UsageError } from '../../src/system/text/index.js';
import { temporaryDirectory } from '../command.js';

function settingsOf(text: string) {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'package.json'), text);
  return readSettings(folder);
}

const review = (settings: unknown) => settingsOf(JSON.stringify({ luthier: { review: settings } }));
const none = { constants: {}, thresholds: [] };

test('a project without settings asks for nothing', () => {
  expect(readSettings(temporaryDirectory())).toEqual(none);
  expect(settingsOf('{}')).toEqual(none);
  expect(settingsOf('{ "luthier": {} }')).toEqual(none);
  expect(review({})).toEqual(none);
});

test('thresholds, constants and a device', () => {
  const settings = {
    constants: { 'lm.*': { dataPath: 'sample.txt', mixture: { rate: [1, 2] } } },
    device: 'devices/h100.json',
    thresholds: [
      { figure: 'checkpoints', when: 'incompatible', needsLabel: 'breaks-checkpoints' },
      { figure: 'parameters', moreThan: '10%', needsLabel: 'costs-more' },
      { figure: 'peakMemory', moreThan: '2.5%', needsLabel: 'costs-more' },
      { figure: 'experiments', when: 'broken', needsLabel: 'breaks-experiments' },
    ],
  };
  expect(review(settings)).toEqual(settings);
});

const threshold = (values: object) => ({ thresholds: [{ needsLabel: 'x', ...values }] });

test.each<[unknown, string]>([
  ['all', "luthier.review: expected an object with constants, device, thresholds, got 'all'."],
  [
    { treshholds: [] },
    "luthier.review: no field 'treshholds'. Did you mean 'thresholds'? The fields are: constants, device, thresholds.",
  ],
  [{ device: 3 }, 'luthier.review.device: expected a non-empty string, got 3.'],
  [
    { thresholds: {} },
    'luthier.review.thresholds: expected an array of (an object with figure, moreThan, needsLabel or an object with figure, when, needsLabel), got {}.',
  ],
  [
    { thresholds: [3] },
    'luthier.review.thresholds[0]: expected an object with figure, moreThan, needsLabel or an object with figure, when, needsLabel, got 3.',
  ],
  [
    threshold({ figure: 'paramters', moreThan: '10%' }),
    "luthier.review.thresholds[0].figure: expected 'parameters' or 'flopsPerToken' or 'tokensPerStep' or " +
      "'peakMemory' or 'checkpoints' or 'experiments', got 'paramters'.",
  ],
  [
    threshold({ figure: 'parameters', moreThan: 10 }),
    'luthier.review.thresholds[0].moreThan: expected a string like /^\\d+(\\.\\d+)?%$/, got 10.',
  ],
  [
    threshold({ figure: 'parameters', moreThan: '10 %' }),
    "luthier.review.thresholds[0].moreThan: expected a string like /^\\d+(\\.\\d+)?%$/, got '10 %'.",
  ],
  [
    threshold({ figure: 'parameters', morethan: '10%' }),
    'luthier.review.thresholds[0].moreThan: expected a string like /^\\d+(\\.\\d+)?%$/, got undefined\n' +
      "package.json: luthier.review.thresholds[0]: no field 'morethan'. Did you mean 'moreThan'? " +
      'The fields are: figure, moreThan, needsLabel.',
  ],
  [
    threshold({ figure: 'experiments', when: 'brokn' }),
    "luthier.review.thresholds[0].when: expected one of 'broken', 'removed', got 'brokn'.",
  ],
  [
    threshold({ figure: 'checkpoints', when: 'incompatible', needsLabel: '' }),
    "luthier.review.thresholds[0].needsLabel: expected a non-empty string, got ''.",
  ],
])('%j', (settings, message) => {
  expect(() => review(settings)).toThrow(new UsageError(`package.json: ${message}`));
});

test('a package.json that is no JSON', () => {
  expect(() => settingsOf('{')).toThrow(/^package\.json: .*JSON.*\.$/);
  expect(() => settingsOf('null')).toThrow('package.json: Invalid input: expected object, received null.');
});
