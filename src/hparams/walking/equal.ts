/** @file Equality of configs: same classes, same values with defaults filled in, same sharing. */

import { carriedBy, carrierOf, hasCarried, sameTags } from '../nodes/carriers.js';
import { isContainer, partsOf } from '../nodes/containers.js';
import { handlerOf } from '../nodes/containerTypes.js';
import { type ConfigNode, nodeOf, rawValue } from '../nodes/node.js';
import { isSameStep } from './paths.js';

/**
 * Whether two configs (or arrays and records of them) build alike: classes, values with defaults filled in, and which
 * configs are one object in several places. History does not count. Linear in the number of configs.
 *
 * Tags count only with `tags`: without it, a value that `tag.new()` made equals the value alone.
 */
export function isEqual(left: unknown, right: unknown, options: { tags?: boolean } = {}): boolean {
  const withTags = options.tags === true;
  const partner = new Map<ConfigNode, ConfigNode>();
  const partnerOfRight = new Map<ConfigNode, ConfigNode>();
  const open: Parts[] = [{ left: [left], right: [right], next: 0 }];
  for (let parts = open.at(-1); parts !== undefined; parts = open.at(-1)) {
    const at = parts.next++;
    // Before its last pair is looked into: a long chain keeps nothing open behind it.
    if (parts.next >= parts.left.length) open.pop();
    if (at === parts.left.length) continue;
    const one = withTags ? parts.left[at] : uncarried(parts.left[at]);
    const other = withTags ? parts.right[at] : uncarried(parts.right[at]);
    const a = nodeOf(one);
    const b = nodeOf(other);
    if (a === undefined || b === undefined) {
      if (a !== b || !containersMatch(one, other, open)) return false;
      continue;
    }
    const known = partner.get(a);
    if (known !== undefined || partnerOfRight.get(b) !== undefined) {
      if (known !== b || partnerOfRight.get(b) !== a) return false;
      continue;
    }
    if (a.info !== b.info || a.kind !== b.kind) return false;
    if (withTags && !sameTags(a.tags, b.tags)) return false;
    partner.set(a, b);
    partnerOfRight.set(b, a);
    openFields(a, b, open);
  }
  return true;
}

/** Values to compare pair by pair, from `next` on: a long list is gone through without a copy of all its pairs. */
interface Parts {
  readonly left: readonly unknown[];
  readonly right: readonly unknown[];
  next: number;
}

function openFields(a: ConfigNode, b: ConfigNode, open: Parts[]): void {
  const [left, right]: [unknown[], unknown[]] = [[], []];
  for (const field of a.info.allFields) {
    const { name } = field;
    // Two defaults that were never read are equal, and need not be made.
    if (!isTouched(a, name) && !isTouched(b, name)) continue;
    const [one, other] = [rawValue(a, field), rawValue(b, field)];
    if (one === other && typeof one !== 'object') continue;
    left.push(one);
    right.push(other);
  }
  open.push({ left, right, next: 0 });
}

function uncarried(value: unknown): unknown {
  let plain = value;
  for (let carrier = carrierOf(plain); carrier !== undefined; carrier = carrierOf(plain)) {
    if (!hasCarried(carrier)) break;
    plain = carriedBy(carrier);
  }
  return plain;
}

/** Whether the field has a value of its own, if only a default that was handed out, which may be elsewhere too. */
export function isTouched(node: ConfigNode, name: string): boolean {
  return name in node.values || node.defaults?.has(name) === true;
}

function containersMatch(a: unknown, b: unknown, open: Parts[]): boolean {
  if (!isContainer(a) || !isContainer(b)) return handledMatch(a, b, open);
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    open.push({ left: a, right: b, next: 0 });
    return true;
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || !keys.every((key) => Object.hasOwn(b, key))) return false;
  open.push({ left: keys.map((key) => a[key]), right: keys.map((key) => b[key]), next: 0 });
  return true;
}

/** Maps are compared key by key, whatever their order; Sets of plain values as sets; the rest part by part. */
function handledMatch(a: unknown, b: unknown, open: Parts[]): boolean {
  const handler = handlerOf(a);
  if (handler === undefined || handler !== handlerOf(b)) return leavesMatch(a, b);
  const left = partsOf(a)!;
  const right = partsOf(b)!;
  if (left.length !== right.length) return false;
  if (a instanceof Map) {
    const other = b as Map<unknown, unknown>;
    const keys = [...a.keys()];
    if (!keys.every((key) => other.has(key))) return false;
    open.push({ left: [...a.values()], right: keys.map((key) => other.get(key)), next: 0 });
    return true;
  }
  if (a instanceof Set && left.every(([, part]) => typeof part !== 'object')) return leavesMatch(a, b);
  if (!left.every(([step], i) => isSameStep(step, right[i]![0]))) return false;
  open.push({ left: left.map(([, part]) => part), right: right.map(([, part]) => part), next: 0 });
  return true;
}

/** Whether two values that are neither configs nor containers are equal; NaN equals NaN. */
export function leavesMatch(a: unknown, b: unknown): boolean {
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
