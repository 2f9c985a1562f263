/** @file Containers that are neither arrays nor records: Map, Set, and the classes that users register. */
import { ConfigError } from '../errors.js';
import { captureTrace, fileOfTrace, placeText, type Trace } from '../source.js';
import type { Segment } from '../walking/paths.js';

/** A part of a container and the step that leads to it. */
export type Part = readonly [segment: Segment, part: unknown];

/** How tools look into a class of containers, and make another like one. */
export interface ContainerHandler<T extends object> {
  /** The parts, in order. */
  flatten(container: T): readonly unknown[];
  /** A container like `original` that holds `parts`, in the order of `flatten`. */
  unflatten(parts: readonly unknown[], original: T): T;
  /** Makes a container from its parts alone. Documents hold instances of classes that have it, by the class's name. */
  fromParts?(parts: readonly unknown[]): T;
  /** The step that leads to each part; the default counts them: `[0]`, `[1]`. */
  pathElements?(container: T): readonly Segment[];
}

type AnyHandler = ContainerHandler<any>;

/** Handlers by the prototype of their class: an object is looked into where its class is exactly this one. */
export type Handlers = ReadonlyMap<object, AnyHandler>;

const registered = new Map<object, AnyHandler>([
  [
    Map.prototype,
    {
      flatten: (map: Map<unknown, unknown>) => [...map.values()],
      unflatten: (parts, map: Map<unknown, unknown>) =>
        new Map([...map.keys()].map((key, i) => [key, parts[i]])),
      pathElements: (map: Map<unknown, unknown>) => [...map.keys()].map(keySegment),
    },
  ],
  [Set.prototype, { flatten: (set: Set<unknown>) => [...set], unflatten: (parts) => new Set(parts) }],
]);

const registrations = new Map<object, Trace>();

function keySegment(key: unknown): Segment {
  return typeof key === 'number' && Number.isSafeInteger(key) ? key : { key: String(key) };
}

/**
 * Lets every tool look into instances of `cls` (exactly, not of subclasses), as it looks into arrays: they are
 * traversed, copied, built and compared part by part. Such a container is taken as a value that does not change:
 * to edit it, write another one. Map and Set are known already.
 *
 * @throws ConfigError where `cls` is no class, or is registered already.
 */
export function registerContainer<T extends object>(
  cls: abstract new (...values: any[]) => T,
  handler: ContainerHandler<T>,
): void {
  const prototype = prototypeOf(cls, 'registerContainer');
  if (registered.has(prototype)) {
    throw new ConfigError(
      `The container ${cls.name} is registered already. To traverse it differently once, use the option 'containers' of traverse().`,
      { place: placeText(captureTrace()) },
    );
  }
  registered.set(prototype, handler);
  registrations.set(prototype, captureTrace());
}

/** The file that registers the class of a container; undefined for those that are known already. */
export function fileOfContainer(container: object): string | undefined {
  const trace = registrations.get(Object.getPrototypeOf(container));
  return trace && fileOfTrace(trace);
}

/** The prototype that represents `cls` among handlers. */
export function prototypeOf(cls: unknown, operation: string): object {
  const prototype: unknown = typeof cls === 'function' ? cls.prototype : undefined;
  const isOrdinary = prototype === Array.prototype || prototype === Object.prototype;
  if (typeof prototype === 'object' && prototype !== null && !isOrdinary) return prototype;
  throw new ConfigError(
    isOrdinary
      ? `${operation}: arrays and plain objects are containers already.`
      : `${operation} takes a class, got ${cls === null ? 'null' : `a value of type ${typeof cls}`}.`,
    { place: placeText(captureTrace()) },
  );
}

/** How to look into `value`, if it is a registered container: neither a config nor an array nor a record. */
export function handlerOf(value: unknown, local?: Handlers): AnyHandler | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (typeof prototype !== 'object' || prototype === null) return undefined;
  return local?.get(prototype) ?? registered.get(prototype);
}

/** How to make containers of the registered class `name`, if they can be made from parts alone. */
export function containerNamed(name: string): ((parts: readonly unknown[]) => object) | undefined {
  for (const [prototype, handler] of registered) {
    if (prototype.constructor.name === name)
      return handler.fromParts && ((parts) => handler.fromParts!(parts));
  }
  return undefined;
}

/** The parts of a registered container, with the steps to them. */
export function handledParts(value: object, handler: AnyHandler): Part[] {
  const parts = handler.flatten(value);
  const segments = handler.pathElements?.(value);
  if (segments !== undefined && segments.length !== parts.length) {
    throw new ConfigError(
      `The container ${value.constructor.name} has ${parts.length} parts, but pathElements names ${segments.length}.`,
    );
  }
  return parts.map((part, i) => [segments?.[i] ?? i, part]);
}

const shownCopies = new WeakMap<object, object>();

/**
 * A copy of a registered container in a config, with its configs handed out as if read alone. A Map or Set refuses
 * edits, as they would be neither checked nor recorded.
 */
export function shownContainer(value: object, handOut: (part: unknown) => unknown): object {
  const known = shownCopies.get(value);
  if (known !== undefined) return known;
  const handler = handlerOf(value)!;
  const copy: object = handler.unflatten(handler.flatten(value).map(handOut), value);
  const shown = copy instanceof Map || copy instanceof Set ? refusingEdits(copy) : Object.freeze(copy);
  shownCopies.set(value, shown);
  return shown;
}

const edits: ReadonlySet<PropertyKey> = new Set(['set', 'add', 'delete', 'clear']);

function refusingEdits(target: Map<unknown, unknown> | Set<unknown>): object {
  return new Proxy(target, {
    get(_, key) {
      if (edits.has(key)) return () => refuseEdit(target);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function refuseEdit(target: object): never {
  const name = target.constructor.name;
  throw new ConfigError(
    `A ${name} in a config cannot be edited in place: write a new ${name} to the field.`,
    {
      place: placeText(captureTrace()),
    },
  );
}
