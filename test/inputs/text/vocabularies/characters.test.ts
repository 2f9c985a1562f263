import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFiles, resolveFiles } from '../../../../src/inputs/text/corpusFiles.js';
import {
  charVocabulary,
  charVocabularyOf,
  decodeUtf8,
  encodeCharacters,
} from '../../../../src/inputs/text/vocabularies/characters.js';
import { anyText } from '../../corpus.js';

const idsOf = (vocabulary: string) =>
  new Map([...vocabulary].map((character, id) => [character.codePointAt(0)!, id] as const));

test('the vocabulary is the distinct characters, sorted by code point', () => {
  const texts = fc.array(anyText, { maxLength: 5 });
  fc.assert(
    fc.property(texts, (parts) => {
      const expected = [...new Set(parts.flatMap((part) => [...part]))].sort(
        (a, b) => a.codePointAt(0)! - b.codePointAt(0)!,
      );
      expect(charVocabulary(parts)).toBe(expected.join(''));
    }),
  );
});

test('each character is one id, characters beyond 16 bits too', () => {
  expect([...encodeCharacters('b😀a😀', idsOf('ab😀'), 'x')]).toEqual([1, 2, 0, 2]);
});

test('an unknown character is named with its place', () => {
  expect(() => encodeCharacters('ab\nb😀é', idsOf('ab\n😀'), 'notes.txt')).toThrow(
    'CharTokenizer: the character "é" (U+00E9) at line 2, column 3 of notes.txt is not among the 4 characters of its vocabulary.',
  );
  expect(() => encodeCharacters('😀', idsOf('ab'), 'notes.txt')).toThrow(
    '"😀" (U+1F600) at line 1, column 1',
  );
});

test('a file that is not UTF-8 is an error that names it', () => {
  const file = { path: '/data/x.bin', name: 'x.bin', bytes: Uint8Array.of(65, 0xff, 66) };
  expect(() => decodeUtf8(file)).toThrow(
    '/data/x.bin, byte 1: the text is not UTF-8. Characters need UTF-8; ByteTokenizer takes any file.',
  );
  expect(decodeUtf8({ ...file, bytes: Uint8Array.of(0xef, 0xbb, 0xbf, 65) })).toBe('\ufeffA');
});

test('the vocabulary of files is that of their text', () => {
  const text = decodeUtf8(readFiles(resolveFiles(['pkg:typescript/lib/lib.es5.d.ts']))[0]!);
  expect(charVocabularyOf(['pkg:typescript/lib/lib.es5.d.ts'])).toBe([...new Set(text)].sort().join(''));
});
