/** @file Tables over other tables: their concatenation, and a part of one. */
import type { DataRecord, RecordTable } from './recordTable.js';

/** Records of several tables, concatenated. @param close tables to close, each once */
export function joinTables(
  tables: readonly RecordTable[],
  close = () => {
    for (const table of tables) table.close();
  },
): RecordTable {
  /** Number of the first record of each table, and of all. */
  const firsts = [0];
  for (const [t, { numRecords }] of tables.entries()) firsts.push(firsts[t]! + numRecords);
  const at = <T>(i: number, get: (table: RecordTable, i: number) => T): T => {
    let [low, high] = [0, tables.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (firsts[middle]! <= i) low = middle;
      else high = middle;
    }
    return get(tables[low]!, i - firsts[low]!);
  };
  let digest: string | undefined;
  // Two parts of a split have the same files.
  const files = new Map(tables.flatMap((table) => table.files.map((file) => [file.path, file])));
  return {
    numRecords: firsts.at(-1)!,
    read: (i): DataRecord => at(i, (table, j) => table.read(j)),
    place: (i): string => at(i, (table, j) => table.place(j)),
    files: [...files.values()],
    get digest() {
      // That of a file may be a matter of reading it.
      digest ??= tables.map((table) => table.digest).join(' ');
      return digest;
    },
    close,
  };
}

/** Records `from` to `to` − 1 of a table. */
export function sliceTable(table: RecordTable, from: number, to: number): RecordTable {
  if (from === 0 && to === table.numRecords) return table;
  return {
    numRecords: Math.max(0, to - from),
    read: (i) => table.read(from + i),
    place: (i) => table.place(from + i),
    files: table.files,
    get digest() {
      return `${table.digest}[${from}:${to}]`;
    },
    close: () => table.close(),
  };
}
