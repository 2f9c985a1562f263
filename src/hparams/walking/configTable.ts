/** @file A table with configs as its keys, made for as many as there may be. */
import { ConfigNode } from '../nodes/node.js';

// Few enough that configs which were made far apart take little room each.
const pageBits = 6;
const pageSize = 1 << pageBits;

/**
 * What Map is, for the nodes of configs: in pages by their serial numbers. Configs that are met one after the other were
 * mostly made one after the other, so that the next one's place is at hand, where a Map's would be anywhere in memory;
 * and no place moves when the table grows. Other objects may be keys too. To set undefined is to delete.
 */
export class ConfigTable<V> {
  private readonly pages = new Map<number, (V | undefined)[]>();
  private readonly others = new Map<unknown, V>();
  /** The page that was used last, and its number. */
  private page: (V | undefined)[] | undefined;
  private pageNumber = -1;

  get(key: unknown): V | undefined {
    if (!(key instanceof ConfigNode)) return this.others.get(key);
    return this.pageOf(key)?.[key.serial & (pageSize - 1)];
  }

  set(key: unknown, value: V | undefined): void {
    if (!(key instanceof ConfigNode)) {
      if (value === undefined) this.others.delete(key);
      else this.others.set(key, value);
      return;
    }
    let page = this.pageOf(key);
    if (page === undefined) {
      this.page = page = new Array<V | undefined>(pageSize).fill(undefined);
      this.pages.set(this.pageNumber, page);
    }
    page[key.serial & (pageSize - 1)] = value;
  }

  private pageOf({ serial }: ConfigNode): (V | undefined)[] | undefined {
    const number = serial >>> pageBits;
    if (number !== this.pageNumber) {
      this.pageNumber = number;
      this.page = this.pages.get(number);
    }
    return this.page;
  }
}
