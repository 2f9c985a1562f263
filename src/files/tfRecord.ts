/** @file TFRecord frames. */
import { maskedCrc32c } from './crc32c.js';

/** Bytes before and behind the data of a frame. */
export const [TF_RECORD_HEAD_BYTES, TF_RECORD_TAIL_BYTES] = [12, 4];

/** A frame: the length of the data, a uint64, and its masked CRC; the data, and its masked CRC. */
export function tfRecord(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(TF_RECORD_HEAD_BYTES + data.length + TF_RECORD_TAIL_BYTES);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, TF_RECORD_HEAD_BYTES);
  view.setUint32(TF_RECORD_HEAD_BYTES + data.length, maskedCrc32c(data), true);
  return record;
}
