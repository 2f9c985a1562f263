/** @file Several processes that write a state together, in this one. */
import { createStateFile, type FilePart, writePart } from '../../src/checkpoints/filePart.js';
import type { StateWriters, TrainState } from '../../src/checkpoints/index.js';
import { StateRange } from '../../src/checkpoints/stateRange.js';
import { StateSnapshot, stateFileLayout } from '../../src/checkpoints/trainState.js';

/** Writers of a state, all of which but the first have written when a save begins. @param change of a part before it is written */
export function writersOf(
  state: TrainState,
  count: number,
  change: (part: FilePart) => FilePart = (part) => part,
): StateWriters {
  return {
    async begin(directory, step) {
      const snapshot = new StateSnapshot(state);
      snapshot.take(state);
      const file = Buffer.concat([snapshot.prefix, new Uint8Array(snapshot.data)]);
      const parts = Array.from({ length: count }, (_, index): FilePart => {
        const range = new StateRange(stateFileLayout(state), index, count);
        const { fileLength, chunk, begin, data } = range;
        range.bytes().set(file.subarray(begin, range.end));
        return change({ directory, step, index, count, fileLength, chunk, begin, data });
      });
      createStateFile(parts[0]!);
      for (const part of parts.slice(1)) writePart(part);
      return parts[0]!;
    },
  };
}
