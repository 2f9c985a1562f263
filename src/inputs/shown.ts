/** @file Values of records in messages. */

/** A value in at most 40 characters. */
export function shown(value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  return (isNumber ? String(value) : (JSON.stringify(value, writable) ?? String(value))).slice(0, 40);
}

/** JSON has no bigints, and would write typed arrays as objects. */
function writable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (!ArrayBuffer.isView(value)) return value;
  return `${value.constructor.name} of ${value.byteLength} bytes`;
}
