/** @file Recorded parts of inputs: the state of tokenizers, features and the like that read a file or learn from the data. */
import { Configurable, formatPath, type Segment } from '../hparams/index.js';
import type { JsonValue } from './jsonValue.js';

/** State that a part has beyond its config. */
export interface RecordedState {
  /** Equal for equal results: size and digest of a file that was read, of a vocabulary that was learned. */
  readonly identity: string;
  /** Config fields that, if set, give the same results without the file or the data; none where these are needed. */
  readonly learned: { readonly [field: string]: JsonValue };
}

/** A part's state, with the name of its class. */
export interface PartState extends RecordedState {
  readonly class: string;
}

/** States by the path of the part in its input's config. */
export type PartStates = Readonly<Record<string, PartState>>;

/** The state of a part; null for one that follows from its config alone, or has not learned yet. */
function stateOf(part: Configurable): PartState | null {
  const { recorded } = part as { recorded?: () => RecordedState | null };
  const state = recorded?.call(part) ?? null;
  return state && { class: part.constructor.name, ...state };
}

/**
 * The states of all parts below a built configurable, itself included: of those whose classes have a method `recorded()`.
 *
 * @param path of the configurable in the config that the paths are of.
 */
export function recordedParts(root: Configurable, path: readonly Segment[] = []): PartStates {
  const states: Record<string, PartState> = {};
  const seen = new Set<unknown>();
  const visit = (value: unknown, at: readonly Segment[]): void => {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) return;
    seen.add(value);
    if (value instanceof Configurable) {
      const state = stateOf(value);
      if (state !== null) states[formatPath(at)] = state;
      visit(value.hp, at);
    } else if (Array.isArray(value)) for (const [i, item] of value.entries()) visit(item, [...at, i]);
    else if ([Object.prototype, null].includes(Object.getPrototypeOf(value)))
      for (const [key, item] of Object.entries(value)) visit(item, [...at, key]);
  };
  visit(root, path);
  return states;
}

/** States with the path of their input before their own. */
export function partsBelow(parts: PartStates, path: readonly Segment[]): PartStates {
  const before = formatPath(path);
  const join = (own: string) => (own === '' || own.startsWith('[') ? before + own : `${before}.${own}`);
  return Object.fromEntries(Object.entries(parts).map(([own, state]) => [join(own), state]));
}

/**
 * The recorded state of a part that now has this path and class: that of the same path, else the only one of the class;
 * undefined without one.
 */
export function partAt(parts: PartStates, path: string, cls: string): PartState | undefined {
  const own = Object.hasOwn(parts, path) ? parts[path] : undefined;
  if (own?.class === cls) return own;
  const ofClass = Object.values(parts).filter((state) => state.class === cls);
  return new Set(ofClass.map(({ identity }) => identity)).size === 1 ? ofClass[0] : undefined;
}
