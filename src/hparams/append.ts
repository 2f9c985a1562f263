/** @file Adding to lists. */

/** Adds `items` to `list`. Given to `push` as arguments, some hundred thousand of them overflow the stack. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
