/** @file State files that several processes write and read in chunks: the bytes of one process's file, damage, parts that are missing. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FileDigest, writeFileDurably } from '../../src/checkpoints/durableFile.js';
import { createStateFile, type FilePart, writePart, writeParts } from '../../src/checkpoints/filePart.js';
import { encodePrefix, placeTensors, type SafetensorsLayout } from '../../src/checkpoints/safetensors.js';
import { SafetensorsFile } from '../../src/checkpoints/safetensorsFile.js';
import { chunkLength, digestOfChunks, digestsOf, rangeOf } from '../../src/checkpoints/stateChunks.js';
import { StateRange } from '../../src/checkpoints/stateRange.js';
import { temporaryDirectory } from '../command.js';

const layout: SafetensorsLayout = placeTensors([
  { name: 'step', dtype: 'I64', shape: [] },
  { name: 'params/w', dtype: 'F32', shape: [50, 200] },
  { name: 'params/b', dtype: 'F32', shape: [3] },
  { name: 'slots/m/w', dtype: 'BF16', shape: [50, 200] },
]);
/** Bytes of the file, none of which is like its neighbour. */
const data = Uint8Array.from({ length: layout.byteLength }, (_, i) => (i * 7 + (i >> 8)) % 251);
const whole = Buffer.concat([encodePrefix(layout), data]);
const COUNT = 3;

/** The parts of all processes, in a new directory. */
function partsIn(directory: string, step = 5): FilePart[] {
  mkdirSync(directory, { recursive: true });
  const ranges = Array.from({ length: COUNT }, (_, index) => new StateRange(layout, index, COUNT));
  for (const range of ranges) {
    for (const piece of range.pieces())
      if (piece.owner === range.index)
        for (const { name, inTensor, inBytes, byteLength } of piece.tensors) {
          const from = layout.tensors.find((each) => each.name === name)!.offset + inTensor;
          range.bytes(piece).set(data.subarray(from, from + byteLength), inBytes);
        }
  }
  createStateFile({ directory, fileLength: ranges[0]!.fileLength });
  return ranges.map(({ fileLength, chunk, begin, data: own, index, count }) => ({
    ...{ directory, step, index, count, fileLength, chunk, begin, data: own },
  }));
}

test('chunks are powers of two, of a page at least, and shared without rest', () => {
  expect([1, 4096 * 4096, 4096 * 4096 + 1, 1e12].map(chunkLength)).toEqual([4096, 4096, 8192, 2 ** 28]);
  for (const [length, chunk, count] of [
    [100_000, 4096, 3],
    [4096, 4096, 4],
    [0, 4096, 2],
  ] as const) {
    const ranges = Array.from({ length: count }, (_, i) => rangeOf(length, chunk, i, count));
    expect([ranges[0]!.begin, ranges.at(-1)!.end]).toEqual([0, length]);
    for (const [i, { begin }] of ranges.entries()) {
      expect(begin).toBe(ranges[i - 1]?.end ?? 0);
      expect(begin % chunk === 0 || begin === length).toBe(true);
    }
  }
});

test('parts of several processes are the file of one, with digests of chunks, and no record of parts stays', async () => {
  const directory = join(temporaryDirectory(), 'unfinished');
  const [first, ...others] = partsIn(directory) as [FilePart, ...FilePart[]];
  const written = writeParts(first);
  for (const part of others.reverse()) writePart(part);
  const digest = await written;
  expect(Buffer.compare(readFileSync(join(directory, 'state.safetensors')), whole)).toBe(0);
  expect(readdirSync(directory)).toEqual(['state.safetensors']);
  const chunks = { byteLength: 4096, sha256: digestsOf(whole, 4096) };
  expect(digest).toEqual(digestOfChunks(whole.length, chunks));
  expect(chunks.sha256.length).toBe(Math.ceil(whole.length / 4096));
  const file = new SafetensorsFile(join(directory, 'state.safetensors'));
  expect(file.digest(4096)).toEqual(digest);
  file.close();
});

test.each<[string, (parts: FilePart[]) => void, string]>([
  ['is missing', () => {}, 'the part of rank 2 is missing after 0.05 seconds'],
  [
    'is of another step',
    ([, , last]) => writePart({ ...last!, step: 4 }),
    'the part of rank 2 is of step 4, not of step 5',
  ],
  [
    'could not be written',
    ([, , last]) => writePart({ ...last!, data: -1 as never }),
    'the part of rank 2: Invalid typed array length: -1',
  ],
])('a part that %s is named', async (_, leave, problem) => {
  const parts = partsIn(join(temporaryDirectory(), 'unfinished'));
  writePart(parts[1]!);
  leave(parts);
  await expect(writeParts(parts[0]!, 0.05)).rejects.toThrow(problem);
});

test('a checkpoint that has been given up is nobody\u2019s error', () => {
  const [, part] = partsIn(join(temporaryDirectory(), 'unfinished'));
  writePart({ ...part!, directory: join(temporaryDirectory(), 'gone') });
});

test('a process reads its chunks and no others, and tells damage in them alone', () => {
  const path = join(temporaryDirectory(), 'state.safetensors');
  writeFileDurably(path, [whole]);
  const chunks = { byteLength: 4096, sha256: digestsOf(whole, 4096) };
  const expected: FileDigest = digestOfChunks(whole.length, chunks);
  const dataStart = whole.length - data.length;
  const read = (index: number): StateRange => {
    const range = new StateRange(layout, index, COUNT, { dataStart, chunk: 4096 });
    range.read(path, expected);
    return range;
  };
  for (let index = 0; index < COUNT; index++) {
    const before = bytesRead();
    const { begin, end, bytes } = read(index);
    const tellsItself = bytesRead() - before;
    const range = new StateRange(layout, index, COUNT, { dataStart, chunk: 4096 });
    range.read(path, expected);
    expect(Buffer.compare(range.bytes(), whole.subarray(begin, end))).toBe(0);
    expect(bytes).toBeDefined();
    expect(tellsItself).toBeGreaterThanOrEqual(end - begin);
    // What the counter itself reads is a few hundred bytes.
    expect(tellsItself).toBeLessThan(1.05 * (end - begin));
  }
  const damaged = Buffer.from(whole);
  damaged[5 * 4096 + 1]! ^= 1;
  writeFileSync(path, damaged);
  const at = rangeOf(whole.length, 4096, 1, COUNT);
  expect(at.begin <= 5 * 4096 && at.end > 5 * 4096).toBe(true);
  expect(() => read(1)).toThrow(`${path}: damaged in the 4096 bytes from ${5 * 4096} on`);
  read(0);
  read(2);
});

/** Bytes that this thread has read from files. */
const bytesRead = (): number =>
  Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/thread-self/io', 'utf8'))![1]);
