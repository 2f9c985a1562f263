/** @file Characters of a corpus, Unicode code points, and their ids. */

import { InputError } from '../../inputErrors.js';
import { readFiles, resolveFiles, type SourceFile } from '../corpusFiles.js';
import type { TokenArray } from '../tokens.js';
import { byteOf, utf8Text } from '../utf8.js';

/** The text of a file. @throws InputError where its bytes are not UTF-8 */
export function decodeUtf8(file: SourceFile): string {
  return utf8Text(file.bytes, byteOf(file.path), ' Characters need UTF-8; ByteTokenizer takes any file.');
}

/** The distinct characters of some texts, sorted by code point. */
export function charVocabulary(texts: readonly string[]): string {
  const units = new Uint8Array(1 << 16);
  const beyond = new Set<number>();
  for (const text of texts) {
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit < 0xd800 || unit > 0xdfff) units[unit] = 1;
      else {
        const codePoint = text.codePointAt(i)!;
        beyond.add(codePoint);
        if (codePoint > 0xffff) i++;
      }
    }
  }
  const codePoints = [...beyond];
  for (let unit = units.indexOf(1); unit >= 0; unit = units.indexOf(1, unit + 1)) codePoints.push(unit);
  return codePoints
    .sort((a, b) => a - b)
    .map((codePoint) => String.fromCodePoint(codePoint))
    .join('');
}

/** The vocabulary that CharTokenizer would learn from the files of `specs` (paths, globs, 'pkg:' specs). */
export function charVocabularyOf(specs: readonly string[]): string {
  return charVocabulary(readFiles(resolveFiles(specs)).map((file) => decodeUtf8(file)));
}

/** Encodes a text's characters. @throws InputError for a character without an id, with its place in `where` */
export function encodeCharacters(text: string, ids: ReadonlyMap<number, number>, where: string): TokenArray {
  const table = new Int32Array(1 << 16).fill(-1);
  for (const [codePoint, id] of ids) if (codePoint < table.length) table[codePoint] = id;
  const Type = ids.size <= 1 << 8 ? Uint8Array : ids.size <= 1 << 16 ? Uint16Array : Int32Array;
  const tokens = new Type(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    let id = table[text.charCodeAt(i)]!;
    if (id < 0) {
      const codePoint = text.codePointAt(i)!;
      id = ids.get(codePoint) ?? -1;
      if (id < 0) throw unknownCharacter(text, i, ids.size, where);
      if (codePoint > 0xffff) i++;
    }
    tokens[length++] = id;
  }
  return tokens.subarray(0, length);
}

function unknownCharacter(text: string, index: number, size: number, where: string): InputError {
  const codePoint = text.codePointAt(index)!;
  const code = codePoint.toString(16).toUpperCase().padStart(4, '0');
  const before = text.slice(0, index);
  const line = before.split('\n').length;
  const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1;
  return new InputError(
    `CharTokenizer: the character ${JSON.stringify(String.fromCodePoint(codePoint))} (U+${code}) at line ${line}, column ${column} of ${where} is not among the ${size} characters of its vocabulary.`,
  );
}
