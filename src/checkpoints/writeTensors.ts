/** @file A safetensors file for other programs, whose tensors are made while it is written. */
import { narrow } from '../compiler/index.js';
import { replaceDurably } from './durableFile.js';
import { encodePrefix, placeTensors } from './safetensors.js';

/** Names of types in files. */
const DTYPES = { float32: 'F32', bfloat16: 'BF16', float16: 'F16' } as const;

/** A tensor to write. */
export interface WrittenTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** How the file holds it; narrow ones are rounded to the nearest even. */
  readonly dtype: keyof typeof DTYPES;
  /** Its elements, which are not kept. */
  readonly values: () => Float32Array;
}

/** Writes a file whole, or not at all. @throws CheckpointError where it can't be written, and as `values` do */
export function writeTensors(
  path: string,
  tensors: readonly WrittenTensor[],
  metadata: Readonly<Record<string, string>>,
): void {
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const layout = placeTensors(
    tensors.map(({ name, shape, dtype }) => ({ name, shape, dtype: DTYPES[dtype] })),
    metadata,
  );
  function* contents(): Generator<ArrayBufferView> {
    yield encodePrefix(layout);
    for (const { name } of layout.tensors) {
      const { dtype, values } = byName.get(name)!;
      yield dtype === 'float32' ? values() : narrow(values(), dtype);
    }
  }
  replaceDurably(path, contents());
}
