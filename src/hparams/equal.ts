/** @file Equality of configs: same classes, same values with defaults filled in, same sharing. */
import { isContainer } from './containers.js';
import { type ConfigNode, nodeOf, rawValue } from './node.js';

/**
 * Whether two configs (or arrays and records of them) build alike: classes, values with defaults filled in, and which
 * configs are one object in several places. History does not count. Linear in the number of configs.
 */
export function isEqual(left: unknown, right: unknown): boolean {
  const partner = new Map<ConfigNode, ConfigNode>();
  const partnerOfRight = new Map<ConfigNode, ConfigNode>();
  const open: [unknown, unknown][] = [[left, right]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const a = nodeOf(pair[0]);
    const b = nodeOf(pair[1]);
    if (a === undefined || b === undefined) {
      if (a !== b || !containersMatch(pair[0], pair[1], open)) return false;
      continue;
    }
    const known = partner.get(a);
    if (known !== undefined || partnerOfRight.has(b)) {
      if (known !== b || partnerOfRight.get(b) !== a) return false;
      continue;
    }
    if (a.info !== b.info || a.kind !== b.kind) return false;
    partner.set(a, b);
    partnerOfRight.set(b, a);
    pushFields(a, b, open);
  }
  return true;
}

function pushFields(a: ConfigNode, b: ConfigNode, open: [unknown, unknown][]): void {
  for (const field of a.info.fields.values()) {
    const { name } = field;
    // Two defaults that nobody looked at are alike, and need not be made to be compared.
    if (isUntouched(a, name) && isUntouched(b, name)) continue;
    open.push([rawValue(a, field), rawValue(b, field)]);
  }
}

function isUntouched(node: ConfigNode, name: string): boolean {
  return !(name in node.values) && node.defaults?.has(name) !== true && node.containers?.has(name) !== true;
}

function containersMatch(a: unknown, b: unknown, open: [unknown, unknown][]): boolean {
  if (!isContainer(a) || !isContainer(b)) return leavesMatch(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(b, key)) return false;
    open.push([(a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]]);
  }
  return true;
}

/** Whether two values that are neither configs nor containers are alike; NaN is like NaN. */
function leavesMatch(a: unknown, b: unknown): boolean {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return leavesMatch(a.getTime(), (b as Date).getTime());
  if (a instanceof RegExp) return String(a) === String(b);
  if (a instanceof Set || a instanceof Map) {
    const other = b as Set<unknown> | Map<unknown, unknown>;
    if (a.size !== other.size) return false;
    for (const [key, value] of a.entries()) {
      if (!other.has(key) || (other instanceof Map && !leavesMatch(other.get(key), value))) return false;
    }
    return true;
  }
  if (ArrayBuffer.isView(a) && !(a instanceof DataView)) {
    const left = a as unknown as ArrayLike<unknown>;
    const right = b as unknown as ArrayLike<unknown>;
    return left.length === right.length && Array.from(left).every((item, i) => leavesMatch(item, right[i]));
  }
  return false;
}
