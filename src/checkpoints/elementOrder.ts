/** @file Elements of a stored tensor in the order of a variable, any stretch of them at a time. */
import { nativeTransposition, type Transpose, type Words } from '../compiler/index.js';
import type { AxisOrder } from './axes.js';

/** Machine code, once it is loaded. */
let transposeNatively: Transpose | null = null;

/** Lets whatever is gathered from now on be transposed by machine code, where there is a C compiler. */
export async function loadTransposition(): Promise<void> {
  transposeNatively ??= await nativeTransposition();
}

/** An axis of the variable. */
interface Axis {
  readonly size: number;
  /** Elements of the file between two neighbours along the axis. */
  readonly between: number;
}

/** Rows and columns of a tile: its lines of the cache are few enough for those of the file and of the variable to stay. */
const [TILE_ROWS, TILE_COLUMNS] = [16, 64];
/** Columns from which a copy by the system is faster than one element by element. */
const LONG_ROW = 32;

/** The order in which a variable takes a stored tensor's elements. */
export class ElementOrder {
  /** The variable's axes before its rows, the first outermost. */
  readonly #outer: readonly Axis[];
  readonly #rows: Axis;
  readonly #columns: Axis;
  /** The variable's first element in the file. */
  readonly #first: number;

  /** Undefined for the order of the file. */
  static of(order: AxisOrder | undefined): ElementOrder | undefined {
    const isOther = order?.axes.length !== 1 || order.axes[0]!.stride !== 1;
    return order && isOther ? new ElementOrder(order) : undefined;
  }

  private constructor({ axes }: AxisOrder) {
    let [between, first] = [1, 0];
    const found: (Axis & { readonly stride: number })[] = [];
    for (const { size, stride, only } of axes.toReversed()) {
      if (stride === undefined) first += only * between;
      else found.push({ size, between, stride });
      between *= size;
    }
    found.sort((a, b) => b.stride - a.stride);
    const one: Axis = { size: 1, between: 0 };
    [this.#rows, this.#columns] = [one, one, ...found].slice(-2) as [Axis, Axis];
    this.#outer = found.slice(0, -2);
    this.#first = first;
  }

  /** How many elements to take at once, at most `most`: whole rows of tiles where there is room for them. */
  stretch(most: number): number {
    const tile = TILE_ROWS * this.#columns.size;
    return tile <= most ? most - (most % tile) : most;
  }

  /** The place in the file of an element of the variable. */
  placeOf(element: number): number {
    const { size, between } = this.#columns;
    return this.#rowPlace(Math.floor(element / size)) + (element % size) * between;
  }

  /** Fills `target` with the variable's elements from `from` on. @param elements all of the stored tensor, of the same type */
  gather<W extends Words>(target: W, from: number, elements: W): void {
    const [rows, columns] = [this.#rows, this.#columns];
    for (let done = 0; done < target.length; ) {
      const [row, column] = [Math.floor((from + done) / columns.size), (from + done) % columns.size];
      const left = target.length - done;
      const place = this.#rowPlace(row) + column * columns.between;
      if (column > 0 || left < columns.size) {
        const count = Math.min(columns.size - column, left);
        copyRow(target, done, elements, place, { ...columns, size: count });
        done += count;
      } else {
        const size = Math.min(rows.size - (row % rows.size), Math.floor(left / columns.size));
        copyRows(target, done, elements, place, { ...rows, size }, columns);
        done += size * columns.size;
      }
    }
  }

  #rowPlace(row: number): number {
    const { size, between } = this.#rows;
    let [place, rest] = [this.#first + (row % size) * between, Math.floor(row / size)];
    for (const axis of this.#outer.toReversed()) {
      place += (rest % axis.size) * axis.between;
      rest = Math.floor(rest / axis.size);
    }
    return place;
  }
}

function copyRow<W extends Words>(
  target: W,
  to: number,
  elements: W,
  from: number,
  { size, between }: Axis,
): void {
  if (between === 1 && size >= LONG_ROW) target.set(elements.subarray(from, from + size) as never, to);
  else for (let i = 0; i < size; i++) target[to + i] = elements[from + i * between]!;
}

function copyRows<W extends Words>(
  target: W,
  to: number,
  elements: W,
  from: number,
  rows: Axis,
  columns: Axis,
): void {
  const isLong = columns.between === 1 && columns.size >= LONG_ROW;
  if (!isLong && transposeNatively && rows.between === 1) {
    const matrix = { rows: rows.size, columns: columns.size, between: columns.between };
    transposeNatively(target.subarray(to) as W, elements.subarray(from) as W, matrix);
  } else if (!isLong) transposeRows(target, to, elements, from, rows, columns);
  for (let row = 0; isLong && row < rows.size; row++)
    copyRow(target, to + row * columns.size, elements, from + row * rows.between, columns);
}

/** Copies rows by tiles, and four rows at a time, whose elements the file mostly has side by side. */
function transposeRows<W extends Words>(
  target: W,
  to: number,
  elements: W,
  from: number,
  { size: height, between: down }: Axis,
  { size: width, between: right }: Axis,
): void {
  for (let top = 0; top < height; top += TILE_ROWS)
    for (let begin = 0; begin < width; begin += TILE_COLUMNS) {
      const [bottom, end] = [Math.min(top + TILE_ROWS, height), Math.min(begin + TILE_COLUMNS, width)];
      let row = top;
      for (; row + 4 <= bottom; row += 4) {
        let [read, write] = [from + row * down + begin * right, to + row * width + begin];
        for (let column = begin; column < end; column++, read += right, write++) {
          target[write] = elements[read]!;
          target[write + width] = elements[read + down]!;
          target[write + 2 * width] = elements[read + 2 * down]!;
          target[write + 3 * width] = elements[read + 3 * down]!;
        }
      }
      for (; row < bottom; row++)
        for (let column = begin; column < end; column++)
          target[to + row * width + column] = elements[from + row * down + column * right]!;
    }
}
