/** @file GGUF files: reading and writing. */
export { GgufFile } from './ggufFile.js';
export type { GgufMetadata, GgufValue } from './ggufHeader.js';
export {
  type GgufEntry,
  type GgufTensor,
  ggmlBlock,
  type WrittenGgmlType,
  writeGguf,
  writtenGgmlTypes,
} from './writeGguf.js';
