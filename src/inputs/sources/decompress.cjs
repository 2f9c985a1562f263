// @ts-check
/**
 * @file Decompression of a file, in a process of its own, for streams of Node only move where others wait for them:
 * `node decompress.cjs gzip|zstd FROM TO`. Where it fails, it writes { message, byte } to stderr, the byte being that of FROM.
 */
'use strict';

const { createReadStream, createWriteStream } = require('node:fs');
const { pipeline } = require('node:stream/promises');
const { createGunzip } = require('node:zlib');

const [format, from, to] = /** @type {[string, string, string]} */ (process.argv.slice(2));
let read = 0;

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
pipeline(createReadStream(from), counted, decoder, createWriteStream(to)).catch((error) => {
  const byte = 'bytesWritten' in decoder ? decoder.bytesWritten : read;
  process.stderr.write(JSON.stringify({ message: error.message, byte }));
  process.exitCode = 1;
});
