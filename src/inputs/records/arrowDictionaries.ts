/** @file Dictionaries of an Arrow file, whose values columns name by number. */
import { type Column, type DataType, type Field, Type } from '@uwdata/flechette';
import { BatchReader } from './arrowBatch.js';
import { DICTIONARY, type Message } from './arrowMessages.js';
import type { WatchedFile } from './watchedFile.js';

/** Dictionaries after the first so many of their messages; the most recently used are kept. */
export class Dictionaries {
  readonly #messages: readonly Message[];
  #count = -1;
  #found: ReadonlyMap<number, Column<unknown>> = new Map();

  constructor(
    private readonly file: WatchedFile,
    messages: readonly Message[],
    private readonly fields: readonly Field[],
  ) {
    this.#messages = messages.filter(({ kind }) => kind === DICTIONARY);
  }

  /** @throws Error for a damaged one */
  first(count: number): ReadonlyMap<number, Column<unknown>> {
    if (count === this.#count) return this.#found;
    const those = this.#messages.slice(0, count);
    const types = new Map<number, DataType>();
    for (const { type } of this.fields) addDictionaries(type, types);
    const found = new Map<number, Column<unknown>>();
    for (const { id, isDelta, batch, bodyAt, end } of those) {
      const type = types.get(id!);
      // Of no column.
      if (type === undefined) continue;
      const column = new BatchReader(batch!, this.file.read(bodyAt, end), found).read(type);
      const before = isDelta ? found.get(id!) : undefined;
      found.set(id!, before === undefined ? column : joined(before, column));
    }
    [this.#count, this.#found] = [count, found];
    return found;
  }
}

const joined = (a: Column<unknown>, b: Column<unknown>): Column<unknown> =>
  new (a.constructor as typeof Column)([...a.data, ...b.data], a.type);

/** The types of a column's dictionaries, and of those inside. */
function addDictionaries(type: DataType, types: Map<number, DataType>): void {
  if (type.typeId === Type.Dictionary) {
    types.set(type.id, type.dictionary);
    addDictionaries(type.dictionary, types);
  }
  const { children = [] } = type as { readonly children?: readonly Field[] };
  for (const child of children) addDictionaries(child.type, types);
}
