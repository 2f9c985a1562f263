/** @file Arrays of any nesting, ragged ones too, beside the shape that a feature declares. */
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { build } from '../../../src/hparams/index.js';
import { ArrayFeature, JsonLinesSource, ParquetSource, RecordInput } from '../../../src/inputs/index.js';
import type { OddKind, Truth } from './oddFile.js';

type Nested = number | readonly Nested[];

/** An array of a shape, with its elements counted from `first` on. */
function arrayOf([length, ...rest]: readonly number[], first = 0): Nested {
  if (length === undefined) return first;
  const size = rest.reduce((product, n) => product * n, 1);
  return Array.from({ length }, (_, i) => arrayOf(rest, first + i * size));
}

/** The shapes of all elements down to a depth; undefined where they are not the same. */
function regularShape(value: Nested): readonly number[] | undefined {
  if (typeof value === 'number') return [];
  const shapes = value.map(regularShape);
  const texts = new Set(shapes.map((shape) => String(shape)));
  if (texts.size > 1 || shapes.includes(undefined)) return undefined;
  return [value.length, ...(shapes[0] ?? [])];
}

/** An array with an element more, or fewer, somewhere. */
function ragged(value: Nested, path: readonly number[], isLonger: boolean): Nested {
  if (typeof value === 'number') return value;
  const [at = 0, ...rest] = path;
  const i = at % value.length;
  if (rest.length === 0 || typeof value[i] === 'number')
    return isLonger ? [...value, value[0]!] : value.slice(0, -1);
  return value.map((inner, j) => (j === i ? ragged(inner, rest, isLonger) : inner));
}

const shape = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 });

export const nesting: OddKind = {
  name: 'arrays of another nesting',
  cases: fc
    .record({
      declared: shape,
      given: fc.option(shape, { freq: 2 }),
      damage: fc.option(
        fc.record({ path: fc.array(fc.nat(5), { minLength: 1, maxLength: 3 }), isLonger: fc.boolean() }),
      ),
      before: fc.nat(2),
      isParquet: fc.boolean(),
    })
    .map(({ declared, given, damage, before, isParquet }) => {
      const whole = arrayOf(declared);
      const made = arrayOf(given ?? declared);
      const odd = damage === null ? made : ragged(made, damage.path, damage.isLonger);
      const rows = [...Array.from({ length: before }, () => whole), odd];
      const found = regularShape(odd);
      const size = declared.reduce((product, n) => product * n, 1);
      const fits = String(found) === String(declared) || (found?.length === 1 && found[0] === size);
      const place = isParquet ? `FILE, row ${before}` : `FILE:${before + 1}`;
      const truth: Truth = fits
        ? { values: rows.flatMap((row) => [row].flat(5)) }
        : {
            refused: new RegExp(
              `^RecordInput 'input': ${place}: feature 'y', column 'x'(, \\[[\\d, ]+\\])?: expected `,
            ),
          };
      const file = isParquet
        ? new Uint8Array(parquetWriteBuffer({ columnData: [{ name: 'x', data: rows, type: 'JSON' }] }))
        : rows.map((x) => `${JSON.stringify({ x })}\n`).join('');
      return {
        files: { 'a.data': file },
        async read(files) {
          const Source = isParquet ? ParquetSource : JsonLinesSource;
          const source = Source.config({ files: [...files] });
          const features = { y: ArrayFeature.config({ column: 'x', shape: declared, dtype: 'int32' }) };
          const input = build(RecordInput.config({ source, features, split: 'all', batchSize: rows.length }));
          return [...((await input.getNext()).y!.data as Int32Array)];
        },
        truth,
      };
    }),
  tries: 3000,
  short: 150,
};
