/** @file Colour space of a JPEG file with three components, as libjpeg finds it. */

/** Markers of segments (ITU-T T.81, table B.1). */
const [START_OF_SCAN, JFIF, ADOBE] = [0xda, 0xe0, 0xee];

const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

const textAt = (bytes: Uint8Array, at: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(at, at + length));

/**
 * Whether the components are red, green and blue, not luma and chroma. A JFIF marker means the latter, else Adobe's
 * marker says which, else the names of the components do (libjpeg, default_decompress_parms).
 */
export function storesRgb(bytes: Uint8Array): boolean {
  let isJfif = false;
  let transform: number | undefined;
  let components = '';
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes[at + 1]!;
    // Fill bytes may stand before a marker.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker === START_OF_SCAN) break;
    const body = at + 4;
    if (marker === JFIF && textAt(bytes, body, 4) === 'JFIF') isJfif = true;
    if (marker === ADOBE && textAt(bytes, body, 5) === 'Adobe') transform = bytes[body + 11];
    if (isFrame(marker)) components = String.fromCharCode(...[6, 9, 12].map((i) => bytes[body + i] ?? 0));
    at += 2 + view.getUint16(at + 2);
  }
  if (isJfif) return false;
  return transform === undefined ? components === 'RGB' : transform === 0;
}
