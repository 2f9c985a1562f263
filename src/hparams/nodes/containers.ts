/** @file Arrays and records inside configs, owned by one field and viewed through proxies that check every edit. */
import { ConfigError } from '../errors.js';
import { type Handlers, handledParts, handlerOf, type Part, shownContainer } from './containerTypes.js';

/** Keys that would reach an object's prototype. */
export const refusedKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** That a record must not have the key. */
export function keyProblem(key: PropertyKey): string {
  return `${typeof key === 'symbol' ? String(key) : `'${String(key)}'`} is not allowed as a key.`;
}

/** Whether `value` is an array or a plain object, the two kinds of container that configs look into. */
export function isContainer(value: unknown): value is Record<string, unknown> | unknown[] {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

// Deeper than anyone writes, shallow enough for the recursion here and in zod; also ends cycles.
const deepest = 200;

/** Counts one more level of containers. @throws ConfigError where they are too deep, or contain themselves. */
export function deeper(depth: number): number {
  if (depth <= deepest) return depth + 1;
  throw new ConfigError(`A value is nested more than ${deepest} levels deep, or contains itself.`);
}

/** The parts of an array, a record or a registered container, in order; undefined for anything else. */
export function partsOf(value: unknown, local?: Handlers): Part[] | undefined {
  const handler = local && handlerOf(value, local);
  if (handler !== undefined) return handledParts(value as object, handler);
  if (Array.isArray(value)) {
    // A loop: long lists spend most of their time here, and it takes a third of the time of Array.from.
    const parts: Part[] = [];
    for (let i = 0; i < value.length; i++) parts.push([i, value[i]]);
    return parts;
  }
  if (isContainer(value)) return Object.entries(value).map(([key, part]) => [{ key }, part]);
  const registered = handlerOf(value);
  return registered && handledParts(value as object, registered);
}

/** A container like `value` that holds `items`, in the order of `partsOf`. */
export function rebuild(value: object, items: readonly unknown[], local?: Handlers): object {
  const handler = handlerOf(value, local);
  if (handler !== undefined) return handler.unflatten(items, value);
  if (Array.isArray(value)) return [...items];
  return Object.fromEntries(Object.keys(value).map((key, i) => [key, items[i]]));
}

/** A copy of the containers in `value`; leaves go through `leaf`, whose results are taken as they are. */
export function mapContainers(value: unknown, leaf: (value: unknown) => unknown, depth = 0): unknown {
  if (!isContainer(value)) return mapHandled(value, leaf, depth);
  deeper(depth);
  const view = viewed.get(value);
  if (view !== undefined) return mapContainers(view.container, leaf, depth);
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (let i = 0; i < value.length; i++) items.push(mapContainers(value[i], leaf, depth + 1));
    return items;
  }
  const copy: Record<string, unknown> = {};
  const [symbol] = Object.getOwnPropertySymbols(value);
  if (symbol !== undefined) throw new ConfigError(keyProblem(symbol));
  for (const key of Object.keys(value)) {
    if (refusedKeys.has(key)) throw new ConfigError(keyProblem(key));
    copy[key] = mapContainers(value[key], leaf, depth + 1);
  }
  return copy;
}

function mapHandled(value: unknown, leaf: (value: unknown) => unknown, depth: number): unknown {
  const handler = handlerOf(value);
  if (handler === undefined) return leaf(value);
  const next = deeper(depth);
  const parts = handler.flatten(value).map((part) => mapContainers(part, leaf, next));
  return handler.unflatten(parts, value);
}

/** Operations of the field that owns a container. */
export interface Owner {
  /** Converts a leaf that is read or removed. */
  handOut(value: unknown, isRemoved: boolean): unknown;
  /** Converts a written `value` to its stored form; `before` is the old one. */
  takeIn(value: unknown, before?: unknown): unknown;
  /** Ends the write of a key that records must not have. */
  refuseKey(key: PropertyKey): never;
  /** Checks and records an edit of `container`; throws where the value is now wrong, and the edit is undone. */
  edited(container: object): void;
}

interface Viewed {
  readonly container: object;
  readonly owner: Owner;
}

const views = new WeakMap<object, object>();
const viewed = new WeakMap<object, Viewed>();

/** The one view of `container`: it reads and writes like the container, and reports each edit to its owner. */
export function viewOf(container: object, makeOwner: () => Owner): object {
  let view = views.get(container);
  if (view === undefined) {
    const owner = makeOwner();
    views.set(container, (view = makeView(container, owner)));
    viewed.set(view, { container, owner });
  }
  return view;
}

/** Reads the registered container `value`; `owner` hands out its parts. */
export function shownPart(value: object, owner: Owner): object {
  return shownContainer(value, (part) => shownInside(part, owner));
}

/** A part in the copy of a registered container: it refuses edits, as they would be lost. */
function shownInside(part: unknown, owner: Owner): unknown {
  if (!isContainer(part)) return showPart(part, owner);
  return Object.freeze(
    rebuild(
      part,
      partsOf(part)!.map(([, inner]) => shownInside(inner, owner)),
    ),
  );
}

/** Reads `value`, a part of a container, as a view, a copy of a registered container, or a leaf. */
export function showPart(value: unknown, owner: Owner): unknown {
  if (isContainer(value)) return viewOf(value, () => owner);
  return handlerOf(value) === undefined ? owner.handOut(value, false) : shownPart(value as object, owner);
}

function makeView(container: object, owner: Owner): object {
  const handOut = (value: unknown): unknown => showPart(value, owner);
  const write = (target: object, key: PropertyKey, value: unknown): boolean => {
    if (typeof key === 'symbol' || refusedKeys.has(String(key))) owner.refuseKey(key);
    const before = Reflect.getOwnPropertyDescriptor(target, key);
    // `push` sets a length that is right already: not an edit of its own.
    if (before !== undefined && Object.is(before.value, value)) return true;
    return edit(target, owner, () => Reflect.set(target, key, owner.takeIn(value, before?.value)));
  };
  return new Proxy(container, {
    get(target, key, view) {
      if (Array.isArray(target) && mutators.has(key)) return mutator(target, key as Mutator, owner, view);
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'object' && value !== null && Object.hasOwn(target, key)
        ? handOut(value)
        : value;
    },
    getOwnPropertyDescriptor(target, key) {
      const descriptor = Reflect.getOwnPropertyDescriptor(target, key);
      if (descriptor !== undefined && 'value' in descriptor) descriptor.value = handOut(descriptor.value);
      return descriptor;
    },
    set: write,
    deleteProperty(target, key) {
      if (!Object.hasOwn(target, key)) return true;
      return edit(target, owner, () => Reflect.deleteProperty(target, key));
    },
    defineProperty(target, key, descriptor) {
      if (!('value' in descriptor)) return false;
      return write(target, key, descriptor.value);
    },
  });
}

type Mutator = 'push' | 'pop' | 'shift' | 'unshift' | 'splice' | 'sort' | 'reverse' | 'fill' | 'copyWithin';
const mutators: ReadonlySet<PropertyKey> = new Set<Mutator>([
  'push',
  'pop',
  'shift',
  'unshift',
  'splice',
  'sort',
  'reverse',
  'fill',
  'copyWithin',
]);

/** An array's method as one edit: half-way through, `splice` leaves holes that no schema would let pass. */
function mutator(target: unknown[], name: Mutator, owner: Owner, view: unknown): unknown {
  const release = (value: unknown): unknown => mapContainers(value, (leaf) => owner.handOut(leaf, true));
  const comparing =
    (compare: (...parts: unknown[]) => unknown) =>
    (...parts: unknown[]): unknown =>
      compare(...parts.map((part) => showPart(part, owner)));
  return (...values: unknown[]): unknown => {
    const given = values.map((value) =>
      typeof value === 'function' ? comparing(value as never) : owner.takeIn(value),
    );
    const method = Array.prototype[name] as (...values: unknown[]) => unknown;
    const result = edit(target, owner, () => {
      const returned = method.apply(target, given);
      if (name === 'fill' || name === 'copyWithin') partAliases(target, owner);
      return returned;
    });
    return result === target ? view : release(result);
  };
}

/** Copies containers that are now in several places of an array: each place has its own. */
function partAliases(target: unknown[], owner: Owner): void {
  const seen = new Set<unknown>();
  for (const [i, part] of target.entries()) {
    if (typeof part !== 'object' || part === null) continue;
    if (seen.has(part)) target[i] = owner.takeIn(part);
    seen.add(part);
  }
}

/** Makes an edit, and undoes it if the owner refuses the result. */
function edit<R>(container: object, owner: Owner, action: () => R): R {
  // Shortening an array drops its tail, lengthening leaves holes, and a restored key would come last.
  const before = Array.isArray(container) ? container.slice() : { ...container };
  try {
    const result = action();
    owner.edited(container);
    return result;
  } catch (error) {
    if (Array.isArray(container)) container.length = 0;
    else for (const key of Object.keys(container)) Reflect.deleteProperty(container, key);
    Object.assign(container, before);
    throw error;
  }
}

/** The value of `key` in `map`, made and stored on the first call. */
export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

/** Adds `items` to `list`. Given to `push` as arguments, some hundred thousand of them overflow the stack. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
