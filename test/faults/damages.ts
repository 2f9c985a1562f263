/** @file Ways in which a file comes to harm: a bit, its length, its content, or something else in its place. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** How a file is damaged; `at` is a random number. Returns false where this can't be done to it. */
type Damage = (path: string, at: number) => unknown;

export const isJson = (path: string) => path.endsWith('.json');

function editJson(path: string, edit: (value: Record<string, unknown>) => void): boolean {
  if (!isJson(path)) return false;
  const value = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  edit(value);
  // With a digest that is right: what only a digest could see is tried by the other damages.
  if ('sha256' in value) {
    const { sha256: _, ...fields } = value;
    value.sha256 = createHash('sha256').update(JSON.stringify(fields)).digest('hex');
  }
  writeFileSync(path, JSON.stringify(value));
  return true;
}

/** Another file of the same directory, or undefined. */
function neighbour(path: string): string | undefined {
  const names = readdirSync(dirname(path)).filter((name) => join(dirname(path), name) !== path);
  return names.map((name) => join(dirname(path), name)).find((other) => statSync(other).isFile());
}

function replaced(path: string, make: () => unknown): void {
  rmSync(path, { recursive: true });
  make();
}

/** Writes a header length or a header into a safetensors file. */
function editHeader(path: string, edit: (bytes: Buffer) => Buffer): boolean {
  if (!path.endsWith('.safetensors')) return false;
  writeFileSync(path, edit(readFileSync(path)));
  return true;
}

const wrongValues = [null, -1, 1e300, 'text', [], {}, true, [[1e15, 1e15]], '9'.repeat(100)];

/** By what is done. */
export const damages: Record<string, Damage> = {
  'a bit flipped': (path, at) => {
    const bytes = readFileSync(path);
    if (bytes.length === 0) return false;
    bytes[at % bytes.length]! ^= 1 << (at % 8);
    writeFileSync(path, bytes);
  },
  truncated: (path, at) => truncateSync(path, at % Math.max(1, statSync(path).size)),
  emptied: (path) => writeFileSync(path, ''),
  removed: (path) => rmSync(path),
  garbage: (path, at) => {
    const bytes = readFileSync(path);
    bytes.fill(at % 256, at % Math.max(1, bytes.length));
    writeFileSync(path, bytes);
  },
  'garbage behind': (path, at) => {
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc((at % 5000) + 1, at % 256)]));
  },
  'gigabytes long': (path) => truncateSync(path, 6e9),
  swapped: (path) => {
    const other = neighbour(path);
    if (other === undefined) return false;
    renameSync(path, `${path}.moved`);
    renameSync(other, path);
    renameSync(`${path}.moved`, other);
  },
  'a named pipe': (path) => replaced(path, () => execFileSync('mkfifo', [path])),
  'a directory': (path) => replaced(path, () => mkdirSync(path)),
  'a full directory': (path) => replaced(path, () => mkdirSync(join(path, 'below'), { recursive: true })),
  'a link to a device': (path) => replaced(path, () => symlinkSync('/dev/zero', path)),
  'a link to itself': (path) => replaced(path, () => symlinkSync(path, path)),
  'a link to nowhere': (path) => replaced(path, () => symlinkSync('nowhere', path)),
  unreadable: (path) => chmodSync(path, 0),
  'a value of another type': (path, at) =>
    editJson(path, (value) => {
      const keys = Object.keys(value).filter((key) => key !== 'sha256');
      value[keys[at % keys.length]!] = wrongValues[at % wrongValues.length];
    }),
  'a field less': (path, at) =>
    editJson(path, (value) => {
      const keys = Object.keys(value).filter((key) => key !== 'sha256');
      delete value[keys[at % keys.length]!];
    }),
  'not an object': (path, at) => {
    if (!isJson(path)) return false;
    writeFileSync(path, ['null', '[]', '5', '"x"', '{', '[[[['][at % 6]!);
  },
  'a huge header length': (path, at) =>
    editHeader(path, (bytes) => {
      bytes.writeBigUInt64LE([2n ** 63n, 2n ** 40n, 99_999_999n, 0n, 1n][at % 5]!);
      return bytes;
    }),
  'huge numbers in the header': (path, at) =>
    editHeader(path, (bytes) => {
      const length = Number(bytes.readBigUInt64LE());
      const text = bytes.subarray(8, 8 + length).toString();
      const wrong = ['1e999', '9007199254740993', '-1', '1e15', '0.5'][at % 5]!;
      const header = Buffer.from(text.replace(/\d{3,}/g, wrong));
      const size = Buffer.alloc(8);
      size.writeBigUInt64LE(BigInt(header.length));
      return Buffer.concat([size, header, bytes.subarray(8 + length)]);
    }),
};
