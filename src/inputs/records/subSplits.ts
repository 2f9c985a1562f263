/** @file Sub-splits by name and range: `train[:90%]`, `train[1000:]+validation` (the grammar of TensorFlow Datasets). */
import { didYouMean } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import { joinTables, sliceTable } from './joinedTables.js';
import type { RecordTable } from './recordTable.js';

/** The name of all splits of a source together, one behind the other. */
export const ALL = 'all';

/** A name as a sub-split can have it. */
export const SPLIT_NAME = /^[\w-]+$/;

/** A part of a split. */
interface SubSplit {
  readonly name: string;
  /** The records of it, of `count`. @throws InputError for a range that reaches beyond them */
  range(count: number): readonly [from: number, to: number];
}

const WHAT_IS_VALID =
  "A split is a name, a part of one such as 'train[:90%]', 'train[1000:]' or 'train[-10%:]', or several joined by '+'.";

const PART = /^(?<name>[\w-]+)(?:\[(?<range>.*)\])?$/;
const RANGE = /^(?:(?<from>-?\d[\d_]*)(?<fromUnit>%)?)?:(?:(?<to>-?\d[\d_]*)(?<toUnit>%)?)?$/;

/**
 * Opens the records of a split expression, in its order.
 *
 * @param names the existing splits.
 * @param owner of the splits, for messages.
 * @throws InputError for other names, other forms, and ranges beyond a split.
 */
export function openSubSplits(
  expression: string,
  names: readonly string[],
  owner: string,
  openSplit: (name: string) => RecordTable,
): RecordTable {
  const opened = new Map<string, RecordTable>();
  const close = (): void => {
    for (const table of opened.values()) table.close();
  };
  const open = (name: string): RecordTable => {
    const table = opened.get(name) ?? openSplit(name);
    opened.set(name, table);
    return table;
  };
  const tables = partsOf(expression, names, owner).map(({ name, range }) => {
    const whole = names.includes(name) ? open(name) : joinTables(names.map(open), close);
    return sliceTable(whole, ...range(whole.numRecords));
  });
  return tables.length === 1 ? tables[0]! : joinTables(tables, close);
}

function partsOf(expression: string, names: readonly string[], owner: string): SubSplit[] {
  return expression.split('+').map((text) => {
    const part = PART.exec(text.trim())?.groups;
    if (part === undefined) throw new InputError(`'${expression}' names no split. ${WHAT_IS_VALID}`);
    const name = part.name!;
    if (!names.includes(name) && name !== ALL)
      throw new InputError(
        `${owner} has no split '${name}'.${didYouMean(name, names)} It has: ${names.join(', ')}.`,
      );
    return { name, range: rangeOf(text.trim(), part.range) };
  });
}

function rangeOf(text: string, range: string | undefined): SubSplit['range'] {
  if (range === undefined) return (count) => [0, count];
  const { from, to, fromUnit, toUnit } = RANGE.exec(range)?.groups ?? {};
  const [start, end] = [boundOf(from, fromUnit), boundOf(to, toUnit)];
  if (start === undefined && end === undefined)
    throw new InputError(`'${text}' has no range of records. ${WHAT_IS_VALID}`);
  if (start && end && start.isPercent !== end.isPercent)
    throw new InputError(
      `'${text}' begins and ends in different units. Give both numbers in percent, or both in records.`,
    );
  if ([start, end].some((bound) => bound?.isPercent && Math.abs(bound.value) > 100))
    throw new InputError(`'${text}' reaches beyond 100 %. Percentages are from -100 to 100.`);
  return (count) => {
    const place = (bound: Bound | undefined, open: number): number => {
      if (bound === undefined) return open;
      const at = bound.isPercent ? closest((bound.value * count) / 100) : bound.value;
      if (Math.abs(at) <= count) return at < 0 ? count + at : at;
      throw new InputError(
        `'${text}' reaches beyond the split, which has ${count} record${count === 1 ? '' : 's'}.`,
      );
    };
    return [place(start, 0), place(end, count)];
  };
}

/** One end of a range. */
interface Bound {
  readonly value: number;
  readonly isPercent: boolean;
}

/** @param digits such as -1_000 */
function boundOf(digits: string | undefined, unit: string | undefined): Bound | undefined {
  if (digits === undefined) return undefined;
  return { value: Number(digits.replaceAll('_', '')), isPercent: unit !== undefined };
}

/** The closest integer; of two, the even one, as in Python and so in TensorFlow Datasets. */
function closest(x: number): number {
  const below = Math.floor(x);
  if (x - below !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}
