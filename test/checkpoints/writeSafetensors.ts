/** @file Writes safetensors files for tests. */

import { type FileDigest, writeFileDurably } from '../../src/checkpoints/durableFile.js';
import { encodePrefix, placeTensors, type SafetensorsDtype } from '../../src/checkpoints/safetensors.js';

/** A tensor with its elements, in row-major order. */
export interface NamedTensor {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** Writes tensors to a new file at `path`. The tensors' bytes go to the file from where they are. */
export function writeSafetensors(
  path: string,
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>> = {},
): FileDigest {
  const layout = placeTensors(tensors, metadata);
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor.data]));
  const chunks = layout.tensors.map(({ name }) => byName.get(name)!);
  return writeFileDurably(path, [encodePrefix(layout), ...chunks]);
}
