/** @file Digests for fingerprints: of traced programs, and of plain data with arrays. */
import { createHash } from 'node:crypto';
import { failureOf } from '../../analysis/index.js';
import {
  fingerprint,
  operationsOf,
  type TensorFunction,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';

/** A digest of plain data; arrays of numbers count to the bit. */
export function digest(...parts: readonly unknown[]): string {
  const arrays: ArrayBufferView[] = [];
  const text = JSON.stringify(parts, (_, value: unknown) => {
    if (!ArrayBuffer.isView(value)) return value;
    arrays.push(value);
    return `${value.constructor.name} of ${value.byteLength} bytes`;
  });
  const hash = createHash('sha256').update(text);
  for (const { buffer, byteOffset, byteLength } of arrays)
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  return hash.digest('base64');
}

/** A program's fingerprints. */
export interface Traced {
  readonly hash: string;
  readonly operations: string;
}

/** Traces a function of tensors, and forgets the program. */
export function trace(f: unknown, specs: unknown): Traced {
  const program = traceProgram(f as TensorFunction, specs as Tree<TensorSpec>);
  return { hash: fingerprint(program), operations: operationsOf(program) };
}

/** An error's message, in a line. */
export function reasonOf(error: unknown): string {
  return failureOf(error).message.split('\n')[0]!;
}
