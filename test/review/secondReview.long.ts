/** @file Reviews of what an earlier one has evaluated: they take its answers, as long as these hold. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { isShort } from '../faults/campaign.js';
import { withCommandEnvironment } from '../loader.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

withCommandEnvironment();

const review = new ScratchReview({
  'experiments/family.ts': family,
  'experiments/small.ts': experimentsFile('export class Small extends Family {}'),
  'experiments/wide.ts': experimentsFile('export class Wide extends Family.preset({ modelDims: 32 }) {}'),
  'notes.md': 'Notes.',
});
const answers = temporaryDirectory();

/** Edits the answers that are kept, and their sum. */
function plant(edit: (text: string) => string): void {
  const file = join(answers, readdirSync(answers)[0]!);
  const bytes = readFileSync(file);
  const text = gunzipSync(bytes.subarray(bytes.indexOf('\n') + 1)).toString();
  expect(edit(text)).not.toBe(text);
  const packed = gzipSync(edit(text));
  const sum = createHash('sha256').update(packed).update('\0').digest('base64');
  writeFileSync(file, Buffer.concat([Buffer.from(`${sum}\n`), packed]));
}

test('what was read decides whether an answer is taken', async () => {
  const heads = { 'experiments/small.ts': instead('Family {}', 'Family.preset({ numHeads: 4 }) {}') };
  const layers = { ...heads, 'experiments/family.ts': instead('1e-3', '2e-3') };
  const alone = [await review.told(heads), await review.told(layers)];
  expect(await review.told(heads, { answers })).toBe(alone[0]);
  if (!isShort) expect(await review.told(heads, { answers })).toBe(alone[0]);
  // Half of the answers are of the base as it is now: the edited family is evaluated, and nothing is mixed up.
  expect(await review.told(layers, { answers })).toBe(alone[1]);
  expect(await review.told(heads, { answers })).toBe(alone[0]);
  // Another answer in the place of the one that is kept shows that no process was asked.
  plant((text) => text.replace(/("name":"numHeads","setBy":"[^"]*","value":)4/g, '$18'));
  const planted = await review.told(heads, { answers });
  expect(planted).not.toBe(alone[0]);
  // What differs is evaluated a second time, of which nothing is kept.
  const note = 'Note: Another value at each evaluation now, and not before: numHeads (small.Small).';
  expect(planted).toBe(`${alone[0]!.replace('numHeads : 2 → 4', 'numHeads : 2 → 8')}\n\n${note}`);
  if (!isShort) expect(await review.told(heads)).toBe(alone[0]);
});

test('a page reaches nothing, by the word of the first review', async () => {
  const page = { 'notes.md': 'More notes.' };
  const told = await review.told(page, { answers });
  expect(told).toBe('2 that the change does not reach');
  expect(await review.told(page, { answers })).toBe(told);
});
