/** @file Mutants of TFRecord files of tf.train.Example. */
import { maskedCrc32c, ProtobufMessage } from '../../../src/files/index.js';
import { TfRecordSource } from '../../../src/inputs/index.js';
import { recordsOf } from '../oddFiles/oddFile.js';
import { integerSite, type MutantKind, type Seed, type Site } from './mutantKind.js';

/** A record is its length and that one's checksum, the data, and its checksum. */
const [HEAD_BYTES, TAIL_BYTES] = [12, 4];

function example(i: number): Uint8Array {
  const [ids, texts, xs] = [new ProtobufMessage(), new ProtobufMessage(), new ProtobufMessage()];
  ids.int(1, i - 3);
  texts.string(1, `row ${i}, ü😀`);
  xs.blob(1, Buffer.from(Float32Array.of(i, i / 8, -i).buffer));
  const map = new ProtobufMessage();
  for (const [name, list, values] of [
    ['id', 3, ids],
    ['text', 1, texts],
    ['x', 2, xs],
  ] as const) {
    const feature = new ProtobufMessage().message(list, values);
    map.message(1, new ProtobufMessage().string(1, name).message(2, feature));
  }
  return new ProtobufMessage().message(1, map).bytes();
}

/** Writes the checksums of all records up to the first one that the file has not whole. */
function mend(damaged: Uint8Array): Uint8Array {
  const bytes = Buffer.from(damaged);
  for (let at = 0; at + HEAD_BYTES <= bytes.length; ) {
    bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(at, at + 8)), at + 8);
    const end = at + HEAD_BYTES + Number(bytes.readBigUInt64LE(at));
    if (end + TAIL_BYTES > bytes.length) break;
    bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(at + HEAD_BYTES, end)), end);
    at = end + TAIL_BYTES;
  }
  return bytes;
}

/** The lengths of an example's fields, all of which take a byte; other ones make other examples. */
function fieldSites(bytes: Uint8Array, name: string, from: number, to: number): Site[] {
  const sites: Site[] = [];
  // Example, Features, and one of its entries; then whatever has the form of a field.
  for (let at = from; at + 1 < to; at++)
    if ((bytes[at]! & 7) === 2 && bytes[at + 1]! < 128 && at + 2 + bytes[at + 1]! <= to)
      sites.push(integerSite(bytes, `${name}, length at ${at + 1 - from}`, at + 1, 1, { isFree: true }));
  return sites;
}

function seed(): Seed {
  const examples = Array.from({ length: 40 }, (_, i) => example(i));
  const frames = examples.map((data) =>
    Buffer.concat([new Uint8Array(HEAD_BYTES), data, new Uint8Array(TAIL_BYTES)]),
  );
  for (const [i, frame] of frames.entries()) frame.writeBigUInt64LE(BigInt(examples[i]!.length));
  const bytes = mend(Buffer.concat(frames));
  let at = 0;
  const sites = examples.flatMap((data, i): Site[] => {
    const [start, from] = [at, at + HEAD_BYTES];
    at = from + data.length + TAIL_BYTES;
    const inner = i < 2 ? fieldSites(bytes, `record ${i}`, from, from + data.length) : [];
    return [integerSite(bytes, `length of record ${i}`, start, 8), ...inner];
  });
  return { name: 'a.tfrecord', bytes, sites, checksummed: [[0, bytes.length]] };
}

export const tfRecord: MutantKind = {
  name: 'TFRecord',
  seeds: () => [seed()],
  read: (path) =>
    recordsOf(
      TfRecordSource.config({
        files: [path],
        features: {
          id: { dtype: 'int64' },
          text: { dtype: 'string' },
          x: { dtype: 'float32', shape: [3] },
        },
      }),
    ),
  mend,
  tries: 2000,
  short: 150,
};
