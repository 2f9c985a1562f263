/** @file Ports: a program's inputs or outputs by path, and the arrays that calls bind to them. */
import type { PortStorages } from './backend.js';
import type { Bound } from './overlap.js';
import {
  arrayTypeOf,
  type BoundArray,
  CompilerError,
  formatSpec,
  type HostArray,
  sizeOf,
  type TensorSpec,
  type Tree,
} from './tensors.js';
import { flattenTree } from './tensorTrees.js';

/** Bytes of a cache line; arrays in one buffer share none. */
const LINE = 64;

const isArrayOrNull = (value: unknown): value is BoundArray | null =>
  value === null || ArrayBuffer.isView(value);

/** Specs as an engine holds them. */
export const heldSpecs = (
  specs: readonly TensorSpec[],
  storages: PortStorages['inputs'] = {},
): readonly TensorSpec[] =>
  specs.map((spec, i) => (storages[i] === undefined ? spec : { ...spec, storage: storages[i] }));

export class Ports {
  constructor(
    /** Name of the program, for messages. */
    private readonly name: string,
    private readonly kind: 'input' | 'output',
    readonly paths: readonly string[],
    /** As the engine holds them. */
    readonly specs: readonly TensorSpec[],
  ) {}

  /** @throws CompilerError for an unknown path. */
  indexOf(path: string): number {
    const index = this.paths.indexOf(path);
    if (index < 0) throw new CompilerError(`${this.name}: there is no ${this.kind} '${path}'.`);
    return index;
  }

  /**
   * The arrays of a structure in port order, allocated for null leaves.
   *
   * @param arrays null allocates all of them.
   * @param stackOf the number of runs that an array may be stacked over.
   * @throws CompilerError where an array is missing or has another type or length than its tensor.
   */
  match(arrays: Tree<BoundArray | null> | null, stackOf: (index: number) => number): HostArray[] {
    const given = arrays === null ? null : flattenTree<BoundArray | null>(arrays, isArrayOrNull);
    const byPath = new Map(given?.map(({ path, value }) => [path, value]));
    return this.paths.map((path, i) => {
      const array = given === null ? null : byPath.get(path);
      if (array === undefined) {
        const told = formatSpec(this.specs[i]!);
        throw new CompilerError(`${this.name}: no array for ${this.kind} '${path}' (${told}).`);
      }
      if (array !== null) this.check(i, array, stackOf(i));
      // Narrow arrays pass for the dtype that they store.
      return (array ?? this.newArray(i, stackOf(i))) as HostArray;
    });
  }

  /** Arrays with their ports. */
  bound(arrays: readonly BoundArray[]): Bound[] {
    return arrays.map((array, index) => ({ path: this.paths[index]!, index, array }));
  }

  /** Whether each array is stacked over runs. */
  areStacked(arrays: readonly BoundArray[]): boolean[] {
    return arrays.map(({ length }, i) => length > sizeOf(this.specs[i]!.shape));
  }

  /** Zeroed arrays for the ports at `paths`, in one buffer, since only large buffers get large pages. */
  newArrays(paths: readonly string[]): BoundArray[] {
    let end = 0;
    const places = paths.map((path) => {
      const index = this.indexOf(path);
      const [type, size, begin] = [this.typeOf(index), sizeOf(this.specs[index]!.shape), end];
      end += Math.ceil((size * type.BYTES_PER_ELEMENT) / LINE) * LINE;
      return { type, size, begin };
    });
    const buffer = new ArrayBuffer(end);
    return places.map(({ type, size, begin }) => new type(buffer, begin, size));
  }

  private typeOf(index: number) {
    return arrayTypeOf(this.specs[index]!);
  }

  private newArray(index: number, runs: number): BoundArray {
    return new (this.typeOf(index))(runs * sizeOf(this.specs[index]!.shape));
  }

  private check(index: number, array: BoundArray, runs: number): void {
    const spec = this.specs[index]!;
    const type = this.typeOf(index);
    const size = sizeOf(spec.shape);
    if (array instanceof type && (array.length === size || array.length === runs * size)) return;
    throw new CompilerError(
      `${this.name}: ${this.kind} '${this.paths[index]}' is ${formatSpec(spec)} and needs a ${type.name} of ${size} elements` +
        `${runs === 1 ? '' : `, or ${runs} times as many`}, got a ${array.constructor.name} of ${array.length}.`,
    );
  }
}
