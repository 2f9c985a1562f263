/** @file Mutants of Arrow files, which pyarrow 26.0.1 wrote: all types in the stream format, and compressed in the file format. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ArrowSource } from '../../../src/inputs/index.js';
import { recordsOf } from '../oddFiles/oddFile.js';
import { integerSite, type MutantKind, type Seed, type Site } from './mutantKind.js';

/** Where a field of a flatbuffer's table is; 0 for one that is not there. */
function fieldOf(bytes: Buffer, table: number, slot: number): number {
  const slots = table - bytes.readInt32LE(table);
  const offset = 4 + 2 * slot < bytes.readUInt16LE(slots) ? bytes.readUInt16LE(slots + 4 + 2 * slot) : 0;
  return offset === 0 ? 0 : table + offset;
}

/** The table or list to which a field leads. */
const follow = (bytes: Buffer, field: number): number => field + bytes.readUInt32LE(field);

/** Numbers of a record batch: of records, of nodes, and of buffers. */
function batchSites(bytes: Buffer, place: string, batch: number, bodyAt: number): Site[] {
  const sites: Site[] = [];
  const length = fieldOf(bytes, batch, 0);
  if (length > 0) sites.push(integerSite(bytes, `${place} records`, length, 8));
  for (const [slot, names] of [
    [1, ['length', 'nulls']],
    [2, ['offset', 'bytes']],
    [4, ['buffers']],
  ] as const) {
    const field = fieldOf(bytes, batch, slot);
    if (field === 0) continue;
    const list = follow(bytes, field);
    sites.push(integerSite(bytes, `${place} list ${slot}, size`, list, 4));
    const count = bytes.readUInt32LE(list);
    for (let i = 0; i < count; i++)
      for (const [n, name] of names.entries()) {
        const at = list + 4 + 8 * (names.length * i + n);
        // Paddings may be longer, and what is between buffers anything.
        sites.push(integerSite(bytes, `${place} ${slot}[${i}] ${name}`, at, 8, { isFree: slot === 2 }));
        const start = bodyAt + Number(bytes.readBigInt64LE(at));
        // Of buffers, the first numbers: offsets, sizes, indices, or values.
        if (slot === 2 && n === 0 && bytes.readBigInt64LE(at + 8) >= 12n)
          for (const more of [0, 4, 8])
            sites.push(
              integerSite(bytes, `${place} buffer ${i}, byte ${more}`, start + more, 4, { isFree: true }),
            );
      }
  }
  return sites;
}

function seed(name: string): Seed {
  const path = fileURLToPath(new URL(`../../fixtures/columns/pyarrow-26-${name}.arrow`, import.meta.url));
  const bytes = readFileSync(path);
  const sites: Site[] = [];
  for (let at = bytes.toString('latin1', 0, 6) === 'ARROW1' ? 8 : 0, m = 0; at < bytes.length; m++) {
    const length = bytes.readInt32LE(at + 4);
    if (length === 0) break;
    const place = `message ${m},`;
    sites.push(integerSite(bytes, `${place} length`, at + 4, 4));
    const message = follow(bytes, at + 8);
    const [kind, head] = [
      bytes.readUInt8(fieldOf(bytes, message, 1)),
      follow(bytes, fieldOf(bytes, message, 2)),
    ];
    const bodyLength = fieldOf(bytes, message, 3);
    const bodyAt = at + 8 + length;
    if (bodyLength > 0) sites.push(integerSite(bytes, `${place} body`, bodyLength, 8));
    if (kind === 3) sites.push(...batchSites(bytes, place, head, bodyAt));
    if (kind === 2) sites.push(...batchSites(bytes, place, follow(bytes, fieldOf(bytes, head, 1)), bodyAt));
    at = bodyAt + (bodyLength > 0 ? Number(bytes.readBigInt64LE(bodyLength)) : 0);
  }
  return { name: basename(path), bytes, sites };
}

export const arrow: MutantKind = {
  name: 'Arrow',
  seeds: () => ['types', 'zstd'].map(seed),
  read: (path) => recordsOf(ArrowSource.config({ files: [path] })),
  tries: 2000,
  short: 150,
};
