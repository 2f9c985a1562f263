/** @file Reading of a checkpoint by several processes, each its chunks of the state's file. */
import { join } from 'node:path';
import { readMetadata } from './checkedFiles.js';
import { STATE_FILE } from './metadata.js';
import { SafetensorsFile } from './safetensorsFile.js';
import { StateRange } from './stateRange.js';

/**
 * Reads the chunks of process `index` of `count`, and the header. Where metadata.json has digests of chunks, they are checked.
 *
 * @param directory of the checkpoint. @throws CheckpointError
 */
export function readRange(directory: string, index: number, count: number): StateRange {
  const digest = readMetadata(directory).files[STATE_FILE]!;
  const file = new SafetensorsFile(join(directory, STATE_FILE));
  const { layout, dataStart, path } = file;
  file.close();
  const range = new StateRange(layout, index, count, { dataStart, chunk: digest.chunks?.byteLength });
  range.read(path, digest);
  return range;
}
