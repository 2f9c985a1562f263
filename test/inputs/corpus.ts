/** @file Corpora and batches for the tests of inputs. */

import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import type { Batch, InputSource, LmBatch } from '../../src/inputs/index.js';
import { EndOfData } from '../../src/inputs/index.js';

/** A new directory with these files; its path. */
export function corpusDirectory(files: { readonly [name: string]: string | Uint8Array }): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-corpus-')));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
  return directory;
}

/** All batches up to the end of the data. */
export async function readAll(input: InputSource): Promise<LmBatch[]> {
  const batches: LmBatch[] = [];
  for (;;) {
    try {
      batches.push((await input.getNext()) as LmBatch);
    } catch (error) {
      if (error instanceof EndOfData) return batches;
      throw error;
    }
  }
}

/** The next `count` batches. */
export async function take(input: InputSource, count: number): Promise<LmBatch[]> {
  const batches: LmBatch[] = [];
  for (let i = 0; i < count; i++) batches.push((await input.getNext()) as LmBatch);
  return batches;
}

/** The rows of a batch as text: ids, '>', labels; padding left out, and rows of nothing but padding. */
export function rowTexts(batch: Batch): string[] {
  const { ids, labels, weights } = batch as LmBatch;
  const [rows, length] = ids.shape as [number, number];
  return Array.from({ length: rows }, (_, row) => {
    const at = row * length;
    const size = weights.data.subarray(at, at + length).reduce((a, b) => a + b, 0);
    const text = (data: Int32Array) => Buffer.from(data.slice(at, at + size)).toString('latin1');
    return `${text(ids.data)}>${text(labels.data)}`;
  }).filter((row) => row !== '>');
}

/** Text of any characters: of the first 300 code points mostly, so that they repeat. */
export const anyText = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 300 }) },
      fc.integer({ min: 0xe000, max: 0xffff }),
      fc.integer({ min: 0x10000, max: 0x10ffff }),
    ),
    { maxLength: 20 },
  )
  .map((codePoints) => String.fromCodePoint(...codePoints));
