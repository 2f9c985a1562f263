// @ts-check
/**
 * @file Decompression of a file, in a process of its own, for streams of Node only move where others wait for them:
 * `node decompress.cjs gzip|zstd FROM TO MOST`. Where it fails, it writes { message, byte } to stderr, the byte being that of FROM;
 * and { most: true } where there are more than MOST bytes: before it begins, if the file says so.
 */
'use strict';

const { closeSync, createReadStream, createWriteStream, fstatSync, openSync, readSync } = require('node:fs');
const { pipeline } = require('node:stream/promises');
const { createGunzip } = require('node:zlib');

const [format, from, to, bound] = /** @type {[string, string, string, string]} */ (process.argv.slice(2));
const most = Number(bound);
let read = 0;

class TooLong extends Error {}

/** A frame of Zstandard with a larger window is none for a decoder without a limit of its own; zstd's is the same. */
const LARGEST_WINDOW = 2 ** 27;

/**
 * Bytes inside as the file says: of the last member of gzip, in 32 bits, or of the first frame of Zstandard, if it says so.
 *
 * @returns {number}
 */
function statedSize() {
  const file = openSync(from, 'r');
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(18);
    const length = format === 'gzip' ? 4 : bytes.length;
    if (readSync(file, bytes, 0, length, format === 'gzip' ? Math.max(0, size - 4) : 0) < length) return 0;
    if (format === 'gzip') return bytes.readUInt32LE(0);
    if (bytes.readUInt32LE(0) !== 0xfd2fb528) return 0;
    const flags = bytes.readUInt8(4);
    const isSingle = (flags >> 5) & 1;
    const window = 2 ** (10 + (bytes.readUInt8(5) >> 3));
    if (!isSingle && window > LARGEST_WINDOW)
      throw new Error(`a window of ${window} bytes; expected at most ${LARGEST_WINDOW}`);
    const sizeBytes = flags >> 6 === 0 ? isSingle : 1 << (flags >> 6);
    const at = 6 - isSingle + /** @type {number} */ ([0, 1, 2, 4][flags & 3]);
    let stated = sizeBytes === 2 ? 256 : 0;
    for (let i = 0; i < sizeBytes; i++) stated += bytes.readUInt8(at + i) * 256 ** i;
    return stated;
  } finally {
    closeSync(file);
  }
}

/** @param {AsyncIterable<Buffer>} chunks */
async function* bounded(chunks) {
  let written = 0;
  for await (const chunk of chunks) {
    written += chunk.length;
    if (written > most) throw new TooLong();
    yield chunk;
  }
}

/** @param {AsyncIterable<Buffer>} chunks */
async function* counted(chunks) {
  for await (const chunk of chunks) {
    yield chunk;
    read += chunk.length;
  }
}

/**
 * Node's own decoder of Zstandard takes a file that is cut off for a whole one, and stops after the first of several frames.
 *
 * @param {AsyncIterable<Buffer>} chunks
 */
async function* unzstd(chunks) {
  const { Decompress } = require('fzstd');
  /** @type {Uint8Array[]} */
  const out = [];
  const decoder = new Decompress((part) => void out.push(part));
  for await (const chunk of chunks) {
    decoder.push(chunk);
    yield* out.splice(0);
  }
  decoder.push(new Uint8Array(0), true);
  yield* out.splice(0);
}

const decoder = format === 'gzip' ? createGunzip() : unzstd;

/** @param {Error} error */
function fail(error) {
  const byte = 'bytesWritten' in decoder ? decoder.bytesWritten : read;
  const told = error instanceof TooLong ? { most: true } : { message: error.message, byte };
  process.stderr.write(JSON.stringify(told));
  process.exitCode = 1;
}

try {
  if (statedSize() > most) throw new TooLong();
  pipeline(
    createReadStream(from),
    counted,
    /** @type {any} */ (decoder),
    bounded,
    createWriteStream(to),
  ).catch(fail);
} catch (error) {
  fail(/** @type {Error} */ (error));
}
