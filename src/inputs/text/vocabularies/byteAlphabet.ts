/** @file GPT-2's alphabet of bytes: a printable character for each byte, by which files spell tokens. */

/** Bytes that spell themselves. */
const isPrintable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;

const bytes = Array.from({ length: 256 }, (_, byte) => byte);
const others = bytes.filter((byte) => !isPrintable(byte));

/** The character of each byte. */
export const byteCharacters: readonly string[] = bytes.map((byte) =>
  String.fromCharCode(isPrintable(byte) ? byte : 256 + others.indexOf(byte)),
);

/** The bytes by the code points of their characters: the order of their ids in a trained vocabulary. */
export const bytesInOrder: readonly number[] = [...bytes.filter(isPrintable), ...others];

const byteOf = new Map(byteCharacters.map((character, byte) => [character, byte]));

/** The bytes of a token's spelling; undefined for other characters. */
export function bytesOfSpelling(spelling: string): Uint8Array | undefined {
  const found = [...spelling].map((character) => byteOf.get(character) ?? -1);
  return found.includes(-1) ? undefined : Uint8Array.from(found);
}
