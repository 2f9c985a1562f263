/**
 * @file Headers of JPEG files (ITU-T T.81, annex B): size, colour space, and whether the data can be as much as the size
 * says, all before anything is decoded.
 */

import { InputError } from '../inputErrors.js';
import { checkSize, damaged } from './imageErrors.js';

/** Markers of segments (T.81, table B.1). */
const [START_OF_IMAGE, END_OF_IMAGE, START_OF_SCAN, JFIF, ADOBE] = [0xd8, 0xd9, 0xda, 0xe0, 0xee];

/** Scans of one image. Encoders make about ten; each skips all blocks, however few its bytes are. */
const MOST_SCANS = 100;

const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
/** Baseline, extended and progressive frames of Huffman codes. */
const isDecoded = (marker: number): boolean => marker <= 0xc2;
/** Markers without a segment: those of restarts and TEM. */
const isAlone = (marker: number): boolean => (marker >= 0xd0 && marker <= START_OF_IMAGE) || marker === 1;

interface Component {
  readonly id: number;
  /** Sampling factors. */
  readonly h: number;
  readonly v: number;
}

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly isProgressive: boolean;
  readonly components: readonly Component[];
}

/** The header of a file that may be decoded. */
export interface JpegHeader {
  readonly width: number;
  readonly height: number;
  /** Blocks of 8 × 8 samples of all components, with those of the padding. */
  readonly blocks: number;
  /** Whether the components are red, green and blue, not luma and chroma. */
  readonly storesRgb: boolean;
}

/** A segment and where the data behind it ends, which only scans have. */
interface Segment {
  readonly marker: number;
  readonly at: number;
  readonly body: Uint8Array;
  readonly dataBytes: number;
}

/** End of the coded data from `at`: the next marker but those of restarts, or the end of the file. */
function dataEnd(bytes: Uint8Array, at: number): number {
  for (let i = bytes.indexOf(0xff, at); i >= 0; i = bytes.indexOf(0xff, i + 1)) {
    const next = bytes[i + 1];
    if (next === undefined) break;
    if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return i;
  }
  return bytes.length;
}

/** The segments of a file up to its end. Bytes before a marker are skipped, as libjpeg does. */
function* segmentsOf(bytes: Uint8Array): Generator<Segment> {
  for (let at = 2; ; ) {
    at = bytes.indexOf(0xff, at);
    if (at < 0 || at + 1 >= bytes.length) return;
    const marker = bytes[at + 1]!;
    if (marker === END_OF_IMAGE) return;
    if (marker === 0xff || marker === 0 || isAlone(marker)) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    const length = at + 3 < bytes.length ? bytes[at + 2]! * 256 + bytes[at + 3]! : 0;
    const end = at + 2 + length;
    if (length < 2 || end > bytes.length)
      throw damaged('JPEG', `the segment at byte ${at} of ${length} bytes is cut off at ${bytes.length}`);
    const next = marker === START_OF_SCAN ? dataEnd(bytes, end) : end;
    yield { marker, at, body: bytes.subarray(at + 4, end), dataBytes: next - end };
    at = next;
  }
}

function frameOf({ marker, body }: Segment, mostPixels: number): Frame {
  if (!isDecoded(marker))
    throw new InputError(
      `is a JPEG image of kind ${marker - 0xc0} (arithmetic codes, lossless or hierarchical): expected a baseline or progressive one. Convert it.`,
    );
  const count = body[5] ?? 0;
  if (body.length < 6 + 3 * count) throw damaged('JPEG', 'its frame is cut off');
  if (body[0] !== 8) throw new InputError(`is a JPEG image of ${body[0]} bits: expected 8. Convert it.`);
  const [height, width] = [body[1]! * 256 + body[2]!, body[3]! * 256 + body[4]!];
  checkSize('JPEG', width, height, mostPixels);
  const components = Array.from({ length: count }, (_, i): Component => {
    const at = 6 + 3 * i;
    return { id: body[at]!, h: body[at + 1]! >> 4, v: body[at + 1]! & 15 };
  });
  if (![1, 3, 4].includes(count)) throw damaged('JPEG', `it has ${count} components: expected 1, 3 or 4`);
  if (new Set(components.map(({ id }) => id)).size < count)
    throw damaged('JPEG', 'two of its components have one name');
  const wrong = components.find(({ h, v }) => h < 1 || h > 4 || v < 1 || v > 4);
  if (wrong !== undefined)
    throw damaged('JPEG', `it has sampling factors ${wrong.h} × ${wrong.v}: expected 1 to 4`);
  return { width, height, isProgressive: marker === 0xc2, components };
}

/** Blocks of the components: those of their samples, and with those that pad the image to whole units. */
function blocksOf({ width, height, components }: Frame): { least: number; padded: number } {
  const [maxH, maxV] = [Math.max(...components.map(({ h }) => h)), Math.max(...components.map(({ v }) => v))];
  const across = (size: number, factor: number, max: number) =>
    Math.ceil((Math.ceil(size / 8) * factor) / max);
  const unit = (size: number, factor: number, max: number) => Math.ceil(size / 8 / max) * factor;
  const sum = (of: typeof across) =>
    components.reduce((all, { h, v }) => all + of(width, h, maxH) * of(height, v, maxV), 0);
  return { least: sum(across), padded: sum(unit) };
}

const textAt = (body: Uint8Array, length: number): string => String.fromCharCode(...body.subarray(0, length));

/**
 * The components are red, green and blue if no JFIF marker means luma and chroma, and Adobe's marker says so, or without
 * one the components' names do (libjpeg, default_decompress_parms).
 */
class Colors {
  #isJfif = false;
  #transform: number | undefined;

  see({ marker, body }: Segment): void {
    if (marker === JFIF && textAt(body, 4) === 'JFIF') this.#isJfif = true;
    if (marker === ADOBE && textAt(body, 5) === 'Adobe') this.#transform = body[11];
  }

  isRgb(components: readonly Component[]): boolean {
    if (this.#isJfif) return false;
    const names = String.fromCharCode(...components.map(({ id }) => id));
    return this.#transform === undefined ? names === 'RGB' : this.#transform === 0;
  }
}

/** Reads a file's headers. @throws InputError for files that are damaged, too large or of another kind */
export function jpegHeader(bytes: Uint8Array, mostPixels: number): JpegHeader {
  const colors = new Colors();
  let frame: Frame | undefined;
  let [scans, dataBytes] = [0, 0];
  const scanned = new Set<number>();
  for (const segment of segmentsOf(bytes)) {
    const { marker, body } = segment;
    if (scans === 0) colors.see(segment);
    if (isFrame(marker)) {
      if (frame !== undefined) throw damaged('JPEG', 'it has two frames');
      frame = frameOf(segment, mostPixels);
    }
    if (marker !== START_OF_SCAN) continue;
    if (frame === undefined) throw damaged('JPEG', 'a scan stands before the frame');
    if (++scans > MOST_SCANS) throw damaged('JPEG', `it has more than ${MOST_SCANS} scans`);
    dataBytes += segment.dataBytes;
    const count = body[0] ?? 0;
    const ids = Array.from({ length: count }, (_, i) => body[1 + 2 * i]);
    const unknown = ids.find((id) => !frame!.components.some((component) => component.id === id));
    if (count === 0 || unknown !== undefined || body.length < 4 + 2 * count)
      throw damaged('JPEG', `scan ${scans} names no component of the frame`);
    // In a progressive image, one scan of each component has the means of the blocks, which all others refine.
    const [start, , bits] = body.subarray(1 + 2 * count);
    if (!frame.isProgressive || (start === 0 && bits! >> 4 === 0)) for (const id of ids) scanned.add(id!);
  }
  if (frame === undefined) throw damaged('JPEG', 'it has no frame');
  const missing = frame.components.findIndex(({ id }) => !scanned.has(id));
  if (missing >= 0) throw damaged('JPEG', `there is no scan of component ${missing + 1}`);
  const { width, height, isProgressive, components } = frame;
  const { least, padded } = blocksOf(frame);
  // A block takes a code, of a bit at least; in baseline images a second one, which ends it.
  if (8 * dataBytes < least * (isProgressive ? 1 : 2))
    throw damaged('JPEG', `it has too little data for ${width} × ${height} pixels`);
  return { width, height, blocks: padded, storesRgb: components.length === 3 && colors.isRgb(components) };
}
