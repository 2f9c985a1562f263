/** @file Memory of variables: flat host arrays that compiled programs read and write, seen through tf.Variable. */
import {
  CompilerError,
  type DType,
  type HostArray,
  newHostArray,
  type Tensor,
  tf,
} from '../compiler/index.js';
import { backendOf, engine, replaceData } from './engineState.js';

/** The cpu backend's record of a tensor. */
interface CpuData {
  values: HostArray;
  readonly refCount: number;
}

/** The array of a variable, or of a tensor that a program reads. */
interface Cell {
  readonly array: HostArray;
  /** The data whose values the array has. */
  dataId: object | null;
  /** The cpu backend's entry for the array; null if another backend has the values. */
  shown: CpuData | null;
  /** A copy of the array for readers, until a program writes the array. */
  copy: HostArray | null;
}

const cells = new WeakMap<Tensor, Cell>();

const cellOf = (tensor: Tensor): Cell => {
  let cell = cells.get(tensor);
  if (cell === undefined) {
    const array = newHostArray(tensor.dtype as DType, tensor.size);
    cell = { array, dataId: null, shown: null, copy: null };
    cells.set(tensor, cell);
  }
  return cell;
};

/** The array that programs bind for a tensor. */
export const arrayOf = (tensor: Tensor): HostArray => cellOf(tensor).array;

const copyOf = (cell: Cell): HostArray => (cell.copy ??= cell.array.slice());

/** Before a run: brings values that were assigned outside into the arrays. */
export async function bringValues(tensors: readonly Tensor[]): Promise<void> {
  for (const tensor of tensors) {
    const cell = cellOf(tensor);
    if (tensor.isDisposed) throw new CompilerError(`${nameOf(tensor)} has been disposed of.`);
    if (tensor.dataId === cell.dataId) continue;
    const { dataId } = tensor;
    cell.array.set((await tensor.data()) as HostArray);
    Object.assign(cell, { dataId, shown: null, copy: null });
  }
}

const nameOf = (tensor: Tensor): string =>
  tensor instanceof tf.Variable
    ? `Variable '${tensor.name}', which the compiled function uses,`
    : 'A tensor that the compiled function uses';

/** Before a run that writes these variables: leaves their values to clones, which share their data. */
export function partFromClones(variables: readonly Tensor[]): void {
  for (const variable of variables) {
    const cell = cellOf(variable);
    if (cell.shown === null || cell.shown.refCount === 1) continue;
    Object.defineProperty(cell.shown, 'values', { value: copyOf(cell), writable: true });
    cell.shown = null;
  }
}

/** After a run that wrote the arrays of these variables: shows the new values. */
export function showValues(variables: readonly Tensor[]): void {
  for (const variable of variables) {
    const cell = cellOf(variable);
    cell.copy = null;
    if (cell.shown === null || cell.dataId !== variable.dataId) show(variable, cell);
  }
}

/** Gives a variable that a trace has made its first data. */
export function adopt(variable: Tensor, values: HostArray): void {
  const cell = cellOf(variable);
  cell.array.set(values);
  show(variable, cell, false);
}

/**
 * Gives a variable data that show the array. tfjs's cpu backend keeps values in objects, which can copy the array when they
 * are read: a training step then costs no copy. Other backends get the values at once.
 */
function show(variable: Tensor, cell: Cell, disposeOld = true): void {
  const { shape, dtype } = variable;
  const fresh = engine().makeTensor(cell.array.slice(), shape, dtype);
  replaceData(variable, fresh, disposeOld);
  Object.assign(cell, { dataId: fresh.dataId, shown: null, copy: null });
  const entry = cpuData(fresh);
  if (entry === undefined) return;
  cell.copy = entry.values;
  cell.shown = entry;
  Object.defineProperty(entry, 'values', {
    get: () => copyOf(cell),
    configurable: true,
    enumerable: true,
  });
}

/** The entry of tfjs's cpu backend for a tensor; undefined if its data is elsewhere. */
function cpuData(tensor: Tensor): CpuData | undefined {
  const backend = backendOf(tensor) as { readonly data?: tf.DataStorage<CpuData> } | undefined;
  if (backend === undefined || backend !== (tf.findBackend('cpu') as object | null)) return undefined;
  const entry = backend.data?.get(tensor.dataId);
  return ArrayBuffer.isView(entry?.values) && typeof entry.refCount === 'number' ? entry : undefined;
}
