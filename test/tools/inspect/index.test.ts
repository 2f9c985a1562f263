/** @file `luthier inspect`: datasets by name, formats, errors, exit codes. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { oneProcess, temporaryDirectory } from '../../command.js';
import { longTest } from '../../longTest.js';

const luthier = oneProcess('src/tools/commandLine.ts');

describe('luthier inspect', () => {
  longTest('shows examples of a dataset, with the changes of flags, and checks its shards', async () => {
    const flags = [
      '--dataset=datasets[1]',
      '-n',
      '1',
      '--batches=2',
      '--length=10',
      '--set',
      'datasets[1].batchSize=2',
    ];
    const { code, stdout } = await luthier(['inspect', 'tiny.Tiny', ...flags]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^tiny\.Tiny, dataset 'validation' \(datasets\[1\]\): TextInput\n2 batches of 2 rows, the first of the data\n\narray/,
    );
    expect(stdout).toMatch(/ids {5}\d+( \d+){9}\n +… \d+ more\n/);
    expect(stdout).toMatch(
      /Tokens of ids\n {2}tokens +(\d+) of \1 positions\n {2}a row +\d+\n {2}segments a row +1\n {2}padding +0 %\n {2}weight +100 %\n {2}ids +\d+ of 256 occur\n {2}unknown +the vocabulary has no such id\n {2}most frequent +"/,
    );
    expect(stdout).toMatch(
      /Shards, against \d+ batches of one host, \d+ rows: all the data\n {2}2 hosts {2}disjoint, complete, in one host's order\n/,
    );
  });

  it('gives whole rows as JSON, of the training dataset by default', async () => {
    const { stdout } = await luthier(['inspect', 'tiny.Tiny', '--format=json', '--shards=8', '-n', '5']);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({
      experiment: 'tiny.Tiny',
      dataset: 'train',
      path: 'datasets[0]',
      isEndless: true,
    });
    expect(found).toMatchObject({ batches: 3, pictures: [], shards: { holds: true, batches: 8, rows: 16 } });
    expect(found.examples).toHaveLength(5);
    const [{ ids, text }] = found.examples[2].sequences.ids;
    expect(String.fromCharCode(...ids)).toBe(text);
  });

  it('writes the images of a batch, with the names of their classes in the same places', async () => {
    const directory = temporaryDirectory();
    // Two bright images and one dark, of 4 × 4 pixels.
    const bytes = { bright: [[200], [220]], dark: [[10]] };
    for (const [name, values] of Object.entries(bytes)) {
      mkdirSync(join(directory, name));
      for (const [i, [value]] of values.entries()) {
        const data = new Uint8Array(16).fill(value!);
        const png = encode({ width: 4, height: 4, channels: 1, data });
        writeFileSync(join(directory, name, `${i}.png`), png);
      }
    }
    const out = join(directory, 'grids/batch.png');
    const all = { 'datasets[1].split': 'all', 'datasets[1].source': `ImageFolder(directory='${directory}')` };
    const sets = Object.entries(all).flatMap(([path, value]) => ['--set', `${path}=${value}`]);
    const flags = ['--dataset=datasets[1]', `--out=${out}`, ...sets, '--set', `directory=${directory}`];
    const { code, stdout, stderr } = await luthier(['inspect', 'pictures.Pictures', ...flags]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(
      `Wrote ${out}: 3 images of inputs, 2 in a row; labels:\n  bright  bright\n  dark\n`,
    );
    expect(stdout).toContain('batch  row  labels      weights\n    0    0  0 (bright)        1\n');
    expect(stdout).toMatch(/\n {2}2 hosts {2}disjoint, complete, in one host's order\n/);
    const { width, height, channels, data } = decode(readFileSync(out));
    // 64 pixels a side, and 2 between images; white where there is none.
    expect([width, height, channels]).toEqual([130, 130, 1]);
    const at = (x: number, y: number) => data[y * width + x];
    expect([at(5, 5), at(100, 5), at(5, 100), at(100, 100)]).toEqual([200, 220, 10, 255]);
  });

  it('says what is wrong with its flags', async () => {
    const out = join(temporaryDirectory(), 'a.png');
    const said = async (...flags: string[]) => {
      const { code, stderr } = await luthier(['inspect', 'tiny.Tiny', ...flags]);
      return `${code}: ${stderr}`;
    };
    expect(await said('--dataset=validatoin')).toMatch(
      /^2: --dataset=validatoin: tiny\.Tiny has no such dataset\. Did you mean 'validation'\? It has: train \(datasets\[0\]\), validation \(datasets\[1\]\)/,
    );
    expect(await said('--dataset=validation')).toBe(
      '2: --dataset=validation: tiny.Tiny has 2 of this name. Give the path of one: datasets[1], decodeDatasets[0].\n',
    );
    expect(await said('--shards=some')).toBe(
      "2: --shards: expected a number of batches, 0 or all; got 'some'.\n",
    );
    expect(await said('--shards=0', `--out=${out}`)).toBe(
      `2: --out=${out}: dataset 'train' has no images: no float32 array of shape [rows, height, width, 1 or 3].\n`,
    );
  });
});
