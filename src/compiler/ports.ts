/** @file A program's inputs, or its outputs, by path, and the arrays that calls bind to them. */
import type { Bound } from './overlap.js';
import {
  type BoundArray,
  byteSize,
  CompilerError,
  formatSpec,
  type HostArray,
  hostArrayIn,
  newHostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from './tensors.js';
import { flattenTree } from './tensorTrees.js';

/** Bytes of a cache line: arrays that lie in one buffer have none in common. */
const LINE = 64;

const isArrayOrNull = (value: unknown): value is BoundArray | null =>
  value === null || ArrayBuffer.isView(value);

export class Ports {
  constructor(
    /** Of the program, for messages. */
    private readonly name: string,
    private readonly kind: 'input' | 'output',
    readonly paths: readonly string[],
    readonly specs: readonly TensorSpec[],
    /** Which are bound to bfloat16 elements, Uint16Arrays. */
    private readonly halves: readonly boolean[] = [],
  ) {}

  /** @throws CompilerError where there is none of this path. */
  indexOf(path: string): number {
    const index = this.paths.indexOf(path);
    if (index < 0) throw new CompilerError(`${this.name}: there is no ${this.kind} '${path}'.`);
    return index;
  }

  /**
   * The arrays of a structure in the order of the ports, new ones for null leaves.
   *
   * @param arrays null for new ones throughout.
   * @param partsOf for how many runs an array may have a part.
   * @throws CompilerError where an array is missing, of another type or of another length than its tensor.
   */
  match(arrays: Tree<BoundArray | null> | null, partsOf: (index: number) => number): HostArray[] {
    const given = arrays === null ? null : flattenTree<BoundArray | null>(arrays, isArrayOrNull);
    const byPath = new Map(given?.map(({ path, value }) => [path, value]));
    return this.paths.map((path, i) => {
      const array = given === null ? null : byPath.get(path);
      if (array === undefined) {
        const told = formatSpec(this.specs[i]!);
        throw new CompilerError(`${this.name}: no array for ${this.kind} '${path}' (${told}).`);
      }
      if (array !== null) this.check(i, array, partsOf(i));
      // Halves are told as what they stand for.
      return (array ?? this.newArray(i, partsOf(i))) as HostArray;
    });
  }

  /** The arrays with what they are bound to. */
  bound(arrays: readonly BoundArray[]): Bound[] {
    return arrays.map((array, index) => ({ path: this.paths[index]!, index, array }));
  }

  /** Which arrays have a part for each run. */
  areParted(arrays: readonly BoundArray[]): boolean[] {
    return arrays.map(({ length }, i) => length > sizeOf(this.specs[i]!.shape));
  }

  /** Zeroed arrays for the ports at `paths`, in one buffer: large pages are possible in large pieces of memory alone. */
  newArrays(paths: readonly string[]): BoundArray[] {
    let end = 0;
    const places = paths.map((path) => {
      const index = this.indexOf(path);
      const spec = this.specs[index]!;
      const [isHalf, begin] = [this.isHalf(index), end];
      end += Math.ceil((isHalf ? 2 * sizeOf(spec.shape) : byteSize(spec)) / LINE) * LINE;
      return { spec, isHalf, begin };
    });
    const buffer = new ArrayBuffer(end);
    return places.map(({ spec: { dtype, shape }, isHalf, begin }) =>
      isHalf
        ? new Uint16Array(buffer, begin, sizeOf(shape))
        : hostArrayIn(buffer, begin, dtype, sizeOf(shape)),
    );
  }

  private isHalf(index: number): boolean {
    return this.halves[index] === true;
  }

  private newArray(index: number, parts: number): BoundArray {
    const { dtype, shape } = this.specs[index]!;
    const size = parts * sizeOf(shape);
    return this.isHalf(index) ? new Uint16Array(size) : newHostArray(dtype, size);
  }

  private check(index: number, array: BoundArray, parts: number): void {
    const spec = this.specs[index]!;
    const whole = { float32: Float32Array, int32: Int32Array, bool: Uint8Array }[spec.dtype];
    const type = this.isHalf(index) ? Uint16Array : whole;
    const size = sizeOf(spec.shape);
    if (array instanceof type && (array.length === size || array.length === parts * size)) return;
    throw new CompilerError(
      `${this.name}: ${this.kind} '${this.paths[index]}' is ${formatSpec(spec)} and needs a ${type.name} of ${size} elements` +
        `${parts === 1 ? '' : `, or ${parts} times as many`}, got a ${array.constructor.name} of ${array.length}.`,
    );
  }
}
