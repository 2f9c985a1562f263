/** @file Parquet and Arrow: files that pyarrow wrote, any rows, columns, splits, unpacking, and files that are damaged or do not agree. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { int32, tableFromArrays, tableToIPC, utf8 } from '@uwdata/flechette';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { expect, test, vi } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  ArrowSource,
  type DataRecord,
  NumberFeature,
  ParquetSource,
  RecordInput,
  type RecordTable,
} from '../../../src/inputs/index.js';
import { project, temporaryDirectory } from '../../command.js';
import { runs } from '../../faults/campaign.js';

const directory = temporaryDirectory();

type Columns = Record<string, unknown[]>;
type Source = typeof ParquetSource | typeof ArrowSource;

function write(name: string, bytes: Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

const parquet = (columns: Columns, rowGroupSize = 1000): Uint8Array => {
  const columnData = Object.entries(columns).map(([name, data]) => ({ name, data }));
  return new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize } as never));
};
const arrow = (columns: Columns, format: 'stream' | 'file' = 'stream'): Uint8Array =>
  tableToIPC(tableFromArrays(columns as never), { format })!;

const open = (Source: Source, files: string[], fields = {}): RecordTable =>
  build(Source.config({ files, ...fields })).open();
const all = (table: RecordTable): DataRecord[] =>
  Array.from({ length: table.numRecords }, (_, i) => table.read(i));

test.each<[string, Source]>([
  ['pyarrow.parquet', ParquetSource],
  ['pyarrow.arrow', ArrowSource],
])(
  '%s, as pyarrow wrote it: nulls, lists, structs, maps, times, decimals, integers of 64 bits',
  (name, Source) => {
    const path = join(project, '../columns', name);
    const table = open(Source, [path]);
    const none = {
      i64: null,
      f32: null,
      text: null,
      bytes: null,
      list: null,
      struct: null,
      map: null,
      time: null,
      price: null,
    };
    expect(all(table)).toEqual([
      {
        ...{ i64: 1, f32: 0.5, text: 'ü😀', word: 'a', bytes: Uint8Array.of(255, 0), list: [1, 2] },
        ...{ struct: { x: 1, y: ['p', null] }, map: { k: 1 }, time: 1704067200001.5, price: -12345678901.07 },
      },
      { ...none, f32: -1.25, word: 'b', bytes: new Uint8Array(), map: {}, price: 0.3 },
      {
        ...{ ...none, i64: 9007199254740993n, text: '', word: 'a', list: [] },
        ...{ struct: { x: null, y: [] }, time: -86_400_000 },
      },
    ]);
    expect(table.place(2)).toBe(`${path}, row 2`);
    table.close();
  },
);

test.each<[string, Source, object]>([
  ['pyarrow-units.parquet', ParquetSource, {}],
  // Parquet has no type for them.
  ['pyarrow-units.arrow', ArrowSource, { span: [1.5, null, -0.001] }],
])(
  '%s: times of all units in milliseconds, and decimals and integers with all digits',
  (name, Source, more) => {
    const table = open(Source, [join(project, '../columns', name)]);
    const columns = {
      s: [86_399_000, null, 0],
      ms: [86_399_999, null, 1],
      us: [86_399_999.999, null, 0.001],
      ns: [86_399_999.999999, null, 0.001],
      clocks: [[1.5, null], null, []],
      at_s: [-1000, null, 253_402_300_800_000],
      at_us: [36_028_797_018_963.969, null, -1.5],
      at_ns: ['1704067200123.456789', null, 1_704_067_200_123.456],
      day: [-86_400_000, null, 86_400_000],
      cents: [1.1, null, -0.07],
      long: ['123456789012345678.12345678901234567891', null, 0.3],
      whole: [10n ** 75n + 1n, null, 7],
      owed: [{ d: [0.3, null] }, null, { d: [] }],
      u64: [2n ** 64n - 1n, null, 2n ** 53n],
      u32: [2 ** 32 - 1, null, 0],
      f16: [65504, null, 2 ** -24],
      u8s: [[255, 0], null, []],
      ...more,
    };
    for (const [i, record] of all(table).entries())
      expect(record).toEqual(
        Object.fromEntries(Object.entries(columns).map(([column, values]) => [column, values[i]])),
      );
    table.close();
  },
);

test('any rows come back, in any order of reading, from several files with groups of any size', () => {
  const row = fc.record({
    x: fc.double({ noNaN: true, noInteger: true }),
    text: fc.string({ unit: 'grapheme' }),
  });
  const files = fc.array(fc.array(row, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(files, fc.integer({ min: 1, max: 8 }), (parts, groupSize) => {
      for (const [Source, encode] of [
        [ParquetSource, (columns: Columns) => parquet(columns, groupSize)],
        [ArrowSource, (columns: Columns) => arrow(columns, groupSize % 2 === 0 ? 'file' : 'stream')],
      ] as const) {
        const paths = parts.map((rows, p) =>
          write(`any${p}`, encode({ x: rows.map(({ x }) => x), text: rows.map(({ text }) => text) })),
        );
        const table = open(Source, paths);
        const wanted = parts.flat();
        expect(table.numRecords).toBe(wanted.length);
        for (let i = wanted.length - 1; i >= 0; i--) expect(table.read(i)).toEqual(wanted[i]);
        table.close();
      }
    }),
    { numRuns: runs(30, 8) },
  );
});

const rows = (from: number, to: number): Columns => {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  return { x: numbers.map((n) => n + 0.5), text: numbers.map((n) => `row ${n}`) };
};

test('columns, splits, a file without rows among others; digests follow the files', async () => {
  const [a, b] = [write('a.parquet', parquet(rows(0, 5), 2)), write('b.parquet', parquet(rows(5, 8)))];
  const empty = write('empty.parquet', parquet({ x: [], text: [] }));
  const source = build(
    ParquetSource.config({ files: { train: [a, empty, b], test: [b] }, columns: ['text'] }),
  );
  const part = source.open('train[60%:]+test[:1]');
  expect(all(part)).toEqual([5, 6, 7, 5].map((n) => ({ text: `row ${n}` })));
  expect(part.place(0)).toBe(`${b}, row 0`);
  const digests = ['train', 'test', 'all'].map((split) => source.open(split).digest);
  expect(new Set(digests).size).toBe(3);
  expect(open(ParquetSource, [b]).digest).toBe(digests[1]);
  const features = { x: NumberFeature.config({ columns: 'x' }) };
  const input = build(
    RecordInput.config({
      source: ArrowSource.config({ files: [write('c.arrow', arrow(rows(0, 3)))] }),
      features,
      split: 'all',
      batchSize: 3,
    }),
  );
  expect((await input.getNext()).x!.data).toEqual(Float32Array.of(0.5, 1.5, 2.5));
});

test('large files are unpacked once, into the cache; where it cannot be written they are read where they are', () => {
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
  const kept = () => readdirSync(join(directory, 'cache', 'luthier', 'records'));
  const text = 'x'.repeat(2000);
  const count = 10_000;
  const numbers = Array.from({ length: count }, (_, n) => n);
  const columns = { n: numbers, text: numbers.map((n) => `${text}${n * 7919}`) };
  const path = write('large.parquet', parquet(columns, 3000));
  const check = (table: RecordTable) => {
    expect(table.numRecords).toBe(count);
    for (const i of [9999, 0, 6001]) expect(table.read(i)).toEqual({ n: i, text: columns.text[i] });
    expect([table.place(6001), table.files.map(({ path }) => path)]).toEqual([`${path}, row 6001`, [path]]);
    return table.digest;
  };
  const first = open(ParquetSource, [path]);
  const digest = check(first);
  const [unpacked] = kept();
  const bytes = readFileSync(path);
  rmSync(path);
  expect(check(first)).toBe(digest);
  first.close();
  writeFileSync(path, bytes);
  expect(check(open(ParquetSource, [path]))).toBe(digest);
  expect(check(open(ParquetSource, [path]))).toBe(digest);
  expect(kept().filter((name) => name !== unpacked)).toHaveLength(1);
  expect(open(ParquetSource, [path], { columns: ['n'] }).read(77)).toEqual({ n: 77 });
  vi.stubEnv('XDG_CACHE_HOME', '/proc/none');
  expect(check(open(ParquetSource, [path]))).toBe(digest);
  const cut = write('cut.parquet', damaged(bytes, 1000));
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
  const before = kept();
  expect(() => open(ParquetSource, [cut])).toThrow(`${cut}, row group 0, column 'n' cannot be decoded: `);
  expect(kept()).toEqual(before);
  vi.unstubAllEnvs();
});

/** Bytes with some of them replaced. */
const damaged = (bytes: Uint8Array, at: number): Uint8Array =>
  Uint8Array.from(bytes, (byte, i) => (i >= 4 && i < at ? 0xff : byte));

test('files that are cut off or damaged are told with the place', () => {
  const whole = {
    parquet: parquet(rows(0, 9), 4),
    stream: arrow(rows(0, 9)),
    file: arrow(rows(0, 9), 'file'),
  };
  const error = (Source: Source, name: string, bytes: Uint8Array) => {
    const path = write(name, bytes);
    try {
      all(open(Source, [path]));
    } catch (caught) {
      expect((caught as Error).name).toBe('InputError');
      return (caught as Error).message.replaceAll(path, 'it');
    }
    return 'none';
  };
  for (let cut = 0; cut < whole.parquet.length; cut += 13)
    expect(error(ParquetSource, 'cut.parquet', whole.parquet.subarray(0, cut))).toBe(
      `it is not a complete Parquet file: expected 'PAR1' as its last 4 bytes, at byte ${Math.max(0, cut - 4)}. It may have been cut off.`,
    );
  expect(error(ParquetSource, 'bad.parquet', damaged(whole.parquet, 40))).toMatch(
    /^it, row group 0, column 'x' cannot be decoded: /,
  );
  const tail = Uint8Array.from(whole.parquet);
  tail.fill(0x7f, tail.length - 8, tail.length - 5);
  expect(error(ParquetSource, 'footer.parquet', tail)).toMatch(
    /^it, byte \d+: a footer of 8355711 bytes in a file of \d+ bytes\.$/,
  );
  expect(error(ArrowSource, 'cut.arrow', whole.file.subarray(0, -3))).toBe(
    "it is not a complete Arrow file: expected 'ARROW1' as its last 6 bytes. It may have been cut off.",
  );
  expect(error(ArrowSource, 'cut.stream', whole.stream.subarray(0, -40))).toMatch(
    /^it, byte \d+: expected a message of Arrow's IPC format that ends within the file's \d+ bytes\. It may have been cut off\.$/,
  );
  expect(error(ArrowSource, 'none.arrow', new Uint8Array())).toBe(
    'it is not an Arrow file: expected a schema at its first byte; it is empty.',
  );
  expect(error(ArrowSource, 'text.arrow', Buffer.from('this is text, not Arrow'))).toMatch(
    /^it, byte 0: expected a message/,
  );
});

test('columns that are not there, and files that do not agree', () => {
  const [a, b] = [
    write('1.parquet', parquet({ text: ['x'], n: [1] })),
    write('2.parquet', parquet({ text: [1.5], n: [1] })),
  ];
  const c = write('3.parquet', parquet({ text: ['y'] }));
  expect(() => open(ParquetSource, [a], { columns: ['txet'] })).toThrow(
    `${a} has no column 'txet'. Did you mean 'text'? It has: text, n.`,
  );
  expect(() => open(ParquetSource, [a, b])).toThrow(
    `${b} has numbers in column 'text', and ${a} has text. The files of a source need the same.`,
  );
  const advice = "Name those to read in 'columns' of the source.";
  expect(() => open(ParquetSource, [a, c])).toThrow(`${c} has no column 'n', and ${a} has one. ${advice}`);
  expect(() => open(ParquetSource, [c, a])).toThrow(`${c} has no column 'n', and ${a} has one. ${advice}`);
  expect(all(open(ParquetSource, [a, c], { columns: ['text'] }))).toEqual([{ text: 'x' }, { text: 'y' }]);
});

/** The bytes with all places of some bytes replaced by others of the same length, or the one of number `only`. */
function replaced(bytes: Uint8Array, from: Uint8Array, to: Uint8Array, only?: number): Uint8Array {
  const copy = Buffer.from(bytes);
  for (let at = copy.indexOf(from), i = 0; at >= 0; at = copy.indexOf(from, at + from.length), i++)
    if (only === undefined || i === only) copy.set(to, at);
  return copy;
}

/** What is said of a file, for which `it` stands. */
function refusal(Source: Source, name: string, bytes: Uint8Array): string {
  const path = write(name, bytes);
  try {
    return JSON.stringify(all(open(Source, [path])).length);
  } catch (error) {
    expect((error as Error).name).toBe('InputError');
    return (error as Error).message.replaceAll(path, 'it');
  }
}

test('Parquet files that lie about rows, names and texts are refused by column and row group', () => {
  const numbers = Array.from({ length: 300 }, (_, i) => i + 0.5);
  const columns = { x1: numbers, x2: numbers.map((x) => `text ${x}`) };
  const columnData = Object.entries(columns).map(([name, data]) => ({ name, data }));
  const bytes = new Uint8Array(parquetWriteBuffer({ columnData, codec: 'UNCOMPRESSED' } as never));
  const refused = (other: Uint8Array) => refusal(ParquetSource, 'lie.parquet', other);
  expect(refused(bytes)).toBe('300');
  // Thrift's numbers: 300, 600 and -1 of two bytes.
  const [truth, more, less] = [
    Buffer.from('d804', 'hex'),
    Buffer.from('b009', 'hex'),
    Buffer.from('8100', 'hex'),
  ];
  const footer = Buffer.from(bytes).lastIndexOf('x1') - 200;
  const inFooter = (to: Uint8Array, only?: number) =>
    Buffer.concat([bytes.subarray(0, footer), replaced(bytes.subarray(footer), truth, to, only)]);
  expect(refused(inFooter(more))).toBe(
    "it, row group 0, column 'x1' cannot be decoded: its pages have 300 values; the file says 600.",
  );
  const said = [0, 1, 2, 3].map((only) => [refused(inFooter(more, only)), refused(inFooter(less, only))]);
  expect(said).toEqual([
    [
      'it has 300 rows in its row groups, and 600 in its footer: the file is damaged.',
      'it has 300 rows in its row groups, and -1 in its footer: the file is damaged.',
    ],
    ...['x1', 'x2'].map((name) =>
      [600, -1].map(
        (count) =>
          `it, row group 0, column '${name}' has ${count} values, and the row group 300 rows: the file is damaged.`,
      ),
    ),
    [
      "it, row group 0, column 'x1' has 300 values, and the row group 600 rows: the file is damaged.",
      'it, row group 0 has -1 rows; expected 0 to 67108864: the file is damaged.',
    ],
  ]);
  expect(refused(replaced(bytes, Buffer.from('x2'), Buffer.from('x1')))).toBe(
    "it: the schema cannot be decoded: two columns are called 'x1'. Give each its own name.",
  );
  expect(refused(replaced(bytes, Buffer.from('text 7.5'), Buffer.from('text \xff.5', 'latin1')))).toBe(
    "it, row group 0, column 'x2' cannot be decoded: a text is not UTF-8.",
  );
  // The length of the first text, -1 and 2^31.
  const first = Buffer.from('08000000746578742030', 'hex');
  for (const length of ['ffffffff', '00000080'])
    expect(
      refused(replaced(bytes, first, Buffer.concat([Buffer.from(length, 'hex'), first.subarray(4)]))),
    ).toMatch(
      /^it, row group 0, column 'x2' cannot be decoded: value 0 has \d+ bytes, and the page \d+ behind those before it\.$/,
    );
});

test('page checksums of Parquet are verified', () => {
  const bytes = readFileSync(join(project, '../columns/pyarrow-26-checked.parquet'));
  expect(refusal(ParquetSource, 'checked.parquet', bytes)).toBe('24');
  const at = bytes.indexOf('word 0');
  expect(at).toBeGreaterThan(0);
  bytes[at]! ^= 1;
  expect(refusal(ParquetSource, 'checked.parquet', bytes)).toBe(
    "it, row group 0, column 'word' cannot be decoded: page 0 has another CRC-32 than the file says: it is damaged.",
  );
});

test('Arrow files that lie about records, buffers, offsets, names and texts are refused by column and batch', () => {
  const numbers = Array.from({ length: 300 }, (_, i) => i);
  const columns = { x1: numbers, x2: numbers.map((x) => `text ${x}`) };
  const bytes = tableToIPC(tableFromArrays(columns, { types: { x1: int32(), x2: utf8() } }), {
    format: 'stream',
  })!;
  const refused = (other: Uint8Array) => refusal(ArrowSource, 'lie.arrow', other);
  expect(refused(bytes)).toBe('300');
  const int64 = (value: bigint) => {
    const part = Buffer.alloc(8);
    part.writeBigInt64LE(BigInt.asIntN(64, value));
    return part;
  };
  const body = Buffer.from(bytes).indexOf('text 0text 1');
  const description = (to: bigint, only?: number) =>
    Buffer.concat([replaced(bytes.subarray(0, body), int64(300n), int64(to), only), bytes.subarray(body)]);
  const place = expect.stringMatching(/^it: record batch 0, from byte \d+ on cannot be decoded: /);
  for (const count of [-1n, 600n, 2n ** 40n]) {
    const single = [0, 1, 2].map((only) => refused(description(count, only)));
    for (const message of single) expect(message).toEqual(place);
    expect(new Set(single.map((message) => message.replace(/.*: /, ''))).size).toBe(3);
  }
  expect(refused(description(600n))).toMatch(
    /^it: record batch 0, from byte \d+ on, column 'x1' cannot be decoded: a buffer has 1200 bytes; its values take 2400\.$/,
  );
  // The first two offsets of texts: 0 and 6, which then fall, or lead outside.
  const offsets = Buffer.from('00000000060000000c000000', 'hex');
  for (const [other, problem] of [
    ['000000000e0000000c000000', 'value 1 begins at 14 and ends at 12'],
    ['ffffffff060000000c000000', 'value 0 begins at -1'],
    ['00000000060000000000007f', 'value 2 begins at 2130706432 and ends at 18'],
  ] as const)
    expect(refused(replaced(bytes, offsets, Buffer.from(other, 'hex')))).toMatch(
      new RegExp(`^it: record batch 0, from byte \\d+ on, column 'x2' cannot be decoded: ${problem}\\.$`),
    );
  expect(refused(replaced(bytes, Buffer.from('text 7text'), Buffer.from('text \xfftext', 'latin1')))).toMatch(
    /, column 'x2' cannot be decoded: text 7 is not UTF-8\.$/,
  );
  expect(refused(replaced(bytes, Buffer.from('x2'), Buffer.from('x1')))).toBe(
    "it: the schema cannot be decoded: two columns are called 'x1'. Give each its own name.",
  );
  expect(
    open(ArrowSource, [write('lie.arrow', replaced(bytes, offsets, Buffer.alloc(12, 255)))], {
      columns: ['x1'],
    }).read(7),
  ).toEqual({ x1: 7 });
});

test('all types of Arrow, of which some columns are read, as pyarrow wrote them', () => {
  const path = join(project, '../columns/pyarrow-26-types.arrow');
  const whole = all(open(ArrowSource, [path]));
  expect(whole).toHaveLength(20);
  expect(whole[13]).toEqual({
    ...{ id: 381, big: null, half: 1.625, flag: null, text: null, long: 'text 13', view: null },
    ...{ bytes: Uint8Array.of(13), fixed: Uint8Array.of(13, 13, 13), word: 'word 1', list: null },
    ...{ pair: [13, -13], lists: [0], struct: null, map: { k: 13 }, time: 1_705_190_400_000, price: 0.91 },
    ...{ none: null, runs: 'c', either: '13', dense: '6' },
  });
  for (const name of Object.keys(whole[0]!))
    expect(all(open(ArrowSource, [path], { columns: [name] }))).toEqual(
      whole.map((record) => ({ [name]: record[name] })),
    );
});
