/** @file Mutants of Parquet files, which pyarrow 26.0.1 wrote: each encoding and compression, and page checksums. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parquetMetadata } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { ParquetSource } from '../../../src/inputs/index.js';
import { recordsOf } from '../oddFiles/oddFile.js';
import { integerSite, type MutantKind, type Seed, type Site } from './mutantKind.js';

const NAMES = ['v1', 'v2', 'checked', 'gzip', 'brotli', 'lz4'];

/** A number of seven bits a byte; of Thrift's integers, the sign is the lowest bit. */
function varintSite(bytes: Uint8Array, name: string, from: number, isSigned: boolean, isFree: boolean): Site {
  let to = from;
  let coded = 0n;
  do coded |= BigInt(bytes[to]! & 127) << BigInt(7 * (to - from));
  while (bytes[to++]! > 127);
  return {
    name,
    from,
    to,
    value: isSigned ? (coded >> 1n) ^ -(coded & 1n) : coded,
    encode(value) {
      if (value === 'NaN') return undefined;
      const parts: number[] = [];
      let rest = BigInt.asUintN(64, isSigned ? (value << 1n) ^ (value >> 63n) : value);
      for (; rest > 127n; rest >>= 7n) parts.push(Number(rest & 127n) | 128);
      return Uint8Array.of(...parts, Number(rest));
    },
    isFree,
  };
}

/** The numbers of a struct of Thrift's compact protocol, by the path of their fields, and where it ends. */
function structSites(
  bytes: Uint8Array,
  place: string,
  start: number,
  isFree: (path: string) => boolean,
): { readonly sites: Site[]; readonly end: number } {
  const sites: Site[] = [];
  let at = start;
  const add = (path: string, isSigned: boolean): Site => {
    const site = varintSite(bytes, `${place}${path}`, at, isSigned, isFree(path));
    at = site.to;
    sites.push(site);
    return site;
  };
  const element = (type: number, path: string): void => {
    if (type === 3) at++;
    else if (type === 7) at += 8;
    else if (type >= 4 && type <= 6) add(path, true);
    else if (type === 8) {
      const { to, value } = add(`${path}, length`, false);
      at = to + Number(value);
    } else if (type === 9) {
      const head = bytes[at++]!;
      const size = head >> 4 === 15 ? Number(add(`${path}, size`, false).value) : head >> 4;
      for (let i = 0; i < size; i++) element((head & 15) <= 2 ? 3 : head & 15, `${path}[${i}]`);
    } else if (type === 12) struct(path);
  };
  const struct = (path: string): void => {
    for (let field = 0; ; ) {
      const head = bytes[at++]!;
      if ((head & 15) === 0) return;
      field += head >> 4;
      element(head & 15, `${path}.${field}`);
    }
  };
  struct('');
  return { sites, end: at };
}

function seed(name: string): Seed {
  const path = fileURLToPath(new URL(`../../fixtures/columns/pyarrow-26-${name}.parquet`, import.meta.url));
  const bytes = readFileSync(path);
  const lengthAt = bytes.length - 8;
  const footerAt = lengthAt - bytes.readUInt32LE(lengthAt);
  const sites: Site[] = [integerSite(bytes, 'footer length', lengthAt, 4)];
  // What is said of the schema, of types, and of who wrote the file, can be said otherwise.
  sites.push(
    ...structSites(bytes, 'footer', footerAt, (path) => /^\.[1256]|\.3\.([1234]|12)\b/.test(path)).sites,
  );
  const checksummed: [number, number][] = [];
  const { row_groups } = parquetMetadata(bytes);
  for (const [g, { columns }] of row_groups.entries())
    for (const [c, { meta_data: chunk }] of columns.entries()) {
      let at = Number(chunk!.dictionary_page_offset ?? chunk!.data_page_offset);
      const end = at + Number(chunk!.total_compressed_size);
      for (let p = 0; at < end; p++) {
        // Types and encodings.
        const place = `group ${g}, column ${c}, page ${p} `;
        const head = structSites(bytes, place, at, (path) => /^\.(1|[578]\.[234])$/.test(path));
        sites.push(...head.sites);
        const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), offset: at };
        const header = parquetHeader(reader);
        at = head.end + header.compressed_page_size;
        if (header.crc !== undefined) checksummed.push([head.end, at]);
      }
    }
  return { name: basename(path), bytes, sites, checksummed };
}

export const parquet: MutantKind = {
  name: 'Parquet',
  seeds: () => NAMES.map(seed),
  read: (path) => recordsOf(ParquetSource.config({ files: [path] })),
  tries: 2000,
  short: 150,
};
