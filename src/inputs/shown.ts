/** @file Values of records in messages. */

const MOST_LISTED = 20;

/** A value in at most 40 characters. */
export function shown(value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  return (isNumber ? String(value) : (JSON.stringify(value, writable) ?? String(value))).slice(0, 40);
}

/** Names with commas; the first 20 of them, and how many more there are. */
export function listed(names: readonly string[]): string {
  const more = names.length - MOST_LISTED;
  return `${names.slice(0, MOST_LISTED).join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

/** JSON has no bigints, and would write typed arrays as objects. */
function writable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (!ArrayBuffer.isView(value)) return value;
  return `${value.constructor.name} of ${value.byteLength} bytes`;
}
