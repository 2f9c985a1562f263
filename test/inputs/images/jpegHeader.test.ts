/** @file Headers of JPEG files that say more than their bytes hold, or that no decoder here has. */
import jpeg from 'jpeg-js';
import { expect, test } from 'vitest';
import { imageDecoder } from '../../../src/inputs/images/imageDecoder.js';
import { jpegHeader } from '../../../src/inputs/images/jpegHeader.js';
import recorded from '../../fixtures/jpegs/jpegs.json' with { type: 'json' };

const decode = imageDecoder(2 ** 20);

const data = Uint8Array.from({ length: 4 * 24 * 16 }, (_, i) => (i * 31) % 256);
const whole = Buffer.from(jpeg.encode({ height: 16, width: 24, data }, 90).data);

/** Where a marker stands. */
const at = (marker: number) => whole.indexOf(Buffer.of(0xff, marker));
const [FRAME, SCAN] = [at(0xc0), at(0xda)];

/** The file with bytes written over others. */
function changed(where: number, ...bytes: number[]): Buffer {
  const copy = Buffer.from(whole);
  copy.set(bytes, where);
  return copy;
}
const without = (from: number, to: number) => Buffer.concat([whole.subarray(0, from), whole.subarray(to)]);
const FRAME_END = FRAME + 2 + whole.readUInt16BE(FRAME + 2);
const SCAN_HEAD = SCAN + 2 + whole.readUInt16BE(SCAN + 2);

test('the whole file is read, and bytes between segments are passed over', () => {
  const between = Buffer.concat([whole.subarray(0, FRAME), Buffer.of(1, 2), whole.subarray(FRAME)]);
  expect(jpegHeader(between, 2 ** 20)).toEqual(jpegHeader(whole, 2 ** 20));
  expect(decode(whole)).toMatchObject({ height: 16, width: 24, channels: 3 });
});

test.each<[string, Uint8Array, string]>([
  [
    'that is too large',
    changed(FRAME + 5, 0xff, 0xff, 0xff, 0xff),
    'is a JPEG image of 65535 × 65535 pixels, 4096 megapixels: maxMegapixels allows 1. Make it smaller, or raise maxMegapixels if you trust the file',
  ],
  [
    'with less data than pixels',
    changed(FRAME + 5, 0x04, 0x00, 0x04, 0x00),
    'is a damaged JPEG image: it has too little data for 1024 × 1024 pixels',
  ],
  ['without rows', changed(FRAME + 5, 0, 0), 'is a damaged JPEG image: it has 24 × 0 pixels'],
  ['of 12 bits', changed(FRAME + 4, 12), 'is a JPEG image of 12 bits: expected 8. Convert it.'],
  [
    'of arithmetic codes',
    changed(FRAME + 1, 0xc9),
    'is a JPEG image of kind 9 (arithmetic codes, lossless or hierarchical): expected a baseline or progressive one. Convert it.',
  ],
  ['without a scan', whole.subarray(0, SCAN), 'is a damaged JPEG image: there is no scan of component 1'],
  ['without a frame', without(FRAME, FRAME_END), 'is a damaged JPEG image: a scan stands before the frame'],
  ['of its first bytes', whole.subarray(0, 2), 'is a damaged JPEG image: it has no frame'],
  [
    'with two frames',
    Buffer.concat([whole.subarray(0, FRAME_END), whole.subarray(FRAME)]),
    'is a damaged JPEG image: it has two frames',
  ],
  [
    'of two components',
    changed(FRAME + 9, 2),
    'is a damaged JPEG image: it has 2 components: expected 1, 3 or 4',
  ],
  ['whose frame is cut', changed(FRAME + 9, 200), 'is a damaged JPEG image: its frame is cut off'],
  [
    'whose components have one name',
    changed(FRAME + 13, whole[FRAME + 10]!),
    'is a damaged JPEG image: two of its components have one name',
  ],
  [
    'with a sampling factor of 15',
    changed(FRAME + 11, 0xf1),
    'is a damaged JPEG image: it has sampling factors 15 × 1: expected 1 to 4',
  ],
  [
    'whose scan names another component',
    changed(SCAN + 5, 77),
    'is a damaged JPEG image: scan 1 names no component of the frame',
  ],
  [
    'with a scan for each byte',
    Buffer.concat([whole.subarray(0, -2), ...Array(101).fill(whole.subarray(SCAN, SCAN_HEAD))]),
    'is a damaged JPEG image: it has more than 100 scans',
  ],
  [
    'whose segment goes beyond the end',
    changed(4, 0xff, 0xf0),
    `is a damaged JPEG image: the segment at byte 2 of 65520 bytes is cut off at ${whole.length}`,
  ],
  [
    'without its tables',
    without(at(0xc4), at(0xc4) + 2 + whole.readUInt16BE(at(0xc4) + 2)),
    'is a damaged JPEG image: its tables do not match its data',
  ],
  ['that is cut off in its scan', whole.subarray(0, -9), 'is a damaged JPEG image: marker was not found'],
])('a file %s is refused', (_, bytes, message) => {
  expect(() => decode(bytes)).toThrow(expect.objectContaining({ name: 'InputError', message }));
});

test('a progressive image without the means of its blocks is refused', () => {
  const bytes = Buffer.from(recorded.files['JFIF, progressive'].bytes, 'base64');
  expect(decode(bytes)).toMatchObject({ height: 8, width: 16 });
  const scan = bytes.indexOf(Buffer.of(0xff, 0xda));
  // The first coefficient that the scan has.
  bytes[scan + 5 + 2 * bytes[scan + 4]!] = 1;
  expect(() => decode(bytes)).toThrow('is a damaged JPEG image: there is no scan of component 1');
});
