/** @file Digests for fingerprints: of traced programs, and of plain data with arrays. */
import { createHash } from 'node:crypto';
import { failureOf } from '../../analysis/index.js';
import {
  dependencesOf,
  fingerprint,
  operationsOf,
  type Program,
  placesOf,
  type TensorFunction,
  type TensorSpec,
  type Tree,
  traceProgram,
} from '../../compiler/index.js';

/** Beginnings of paths in which versions differ, with replacements. */
let omitted: readonly (readonly [text: string, instead: string])[] = [];

/** Has digests leave out the root of the checked-out tree, and the beginning of paths around it. */
export function omitRoot(root: string, around?: string): void {
  omitted = [[root, '.'], ...(around === undefined ? [] : [[around, ''] as const])];
}

/** A digest of plain data; arrays of numbers count to the bit. */
export function digest(...parts: readonly unknown[]): string {
  const arrays: ArrayBufferView[] = [];
  const text = JSON.stringify(parts, (_, value: unknown) => {
    if (!ArrayBuffer.isView(value)) return value;
    arrays.push(value);
    return `${value.constructor.name} of ${value.byteLength} bytes`;
  });
  const named = omitted.reduce((from, [omit, instead]) => from.replaceAll(omit, instead), text);
  const hash = createHash('sha256').update(named);
  for (const { buffer, byteOffset, byteLength } of arrays)
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  return hash.digest('base64');
}

/** A program's fingerprints. */
export interface Traced {
  readonly hash: string;
  readonly operations: string;
  /** Of the operations of a kind in a layer, by both. */
  readonly places: Readonly<Record<string, string>>;
}

/** A function of tensors as a program. */
export function programOf(f: unknown, specs: unknown): Program {
  return traceProgram(f as TensorFunction, specs as Tree<TensorSpec>);
}

/** A program's fingerprints. */
export const fingerprintsOf = (program: Program): Traced => ({
  hash: fingerprint(program),
  operations: operationsOf(program),
  places: placesOf(program),
});

/** Traces a function of tensors, and forgets the program. */
export const trace = (f: unknown, specs: unknown): Traced => fingerprintsOf(programOf(f, specs));

/** Outputs of a training step that training goes on with. */
const TRAINED = /^(loss$|grads\.|rowGrads\.|updatedVars\.)/;

/** A training step's fingerprints. */
export interface TracedStep extends Traced {
  /** Of the loss, gradients and replaced variables alone. */
  readonly trained: string;
  /** Whether these depend on the step's key. */
  readonly drawsKeys: boolean;
}

/** Traces a training step, and forgets the program. */
export function traceStep(f: unknown, specs: unknown): TracedStep {
  const program = programOf(f, specs);
  const { graph, inputPaths, outputPaths } = program;
  const isTrained = (_: unknown, i: number): boolean => TRAINED.test(outputPaths[i]!);
  const part = { ...graph, outputs: graph.outputs.filter(isTrained) };
  const depends = [...dependencesOf(program)].filter(([path]) => TRAINED.test(path));
  return {
    ...fingerprintsOf(program),
    trained: fingerprint({ graph: part, inputPaths, outputPaths: outputPaths.filter(isTrained) }),
    drawsKeys: depends.some(([, inputs]) => inputs.has('prngKey')),
  };
}

/** An error's message, in a line. */
export function reasonOf(error: unknown): string {
  return failureOf(error).message.split('\n')[0]!;
}
