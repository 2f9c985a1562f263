/** @file Files on disk: written whole or not at all, appended to, read with checks. */
export { AppendedFile, type AppendOptions } from './append.js';
export { crc32c, maskedCrc32c } from './crc32c.js';
export { explain, isDamage } from './fileErrors.js';
export { GrowingFile } from './growingFile.js';
export { parseJson, readJsonFile, schemaProblem } from './jsonFile.js';
export { type LineRange, linesFromEnd } from './linesFromEnd.js';
export { loadMapFile, type MapFile } from './mappedFile.js';
export { ProtobufMessage } from './protobuf.js';
export { ProtobufReader } from './protobufReader.js';
export { isThere, openRegularFile, readFully, readRegularFile } from './read.js';
export { removeTemporaries, temporaryName } from './temporaries.js';
export { TF_RECORD_HEAD_BYTES, TF_RECORD_TAIL_BYTES, tfRecord } from './tfRecord.js';
export {
  keepRanges,
  makeDirectory,
  type Rewrite,
  removeQuietly,
  syncDirectory,
  syncFile,
  writeFully,
  writeTogether,
  writeWhole,
} from './write.js';
