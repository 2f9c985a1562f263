/** @file Traversals steered by a visitor, value by value. */
import type { FieldInfo } from '../fields/fields.js';
import { getOrMake, partsOf, rebuild } from '../nodes/containers.js';
import { type ContainerHandler, type Handlers, type Part, prototypeOf } from '../nodes/containerTypes.js';
import { copyAlone } from '../nodes/fieldValues.js';
import { hasValue, isExplicit, nodeOf, writeField } from '../nodes/node.js';
import { readField } from '../nodes/reading.js';
import { origin } from '../nodes/record.js';
import { isSameStep, type PathLink, type Segment, segmentsOf } from './paths.js';
import { cycleError, depthFirst } from './walk.js';

/** Called by `traverse` for a value; what it returns is the value's result. */
export type Visitor<R> = (value: unknown, state: State<R>) => R;

/** A part of the value at hand. */
export interface Child {
  readonly segment: Segment;
  readonly value: unknown;
  /** The steps from the root. */
  readonly path: readonly Segment[];
}

/** Where a traversal is, and the ways on from there. */
export interface State<R> {
  /** The value that the state was made for. */
  readonly original: unknown;
  /** The steps from the root; of several paths to a shared object, the one it was first met by. */
  readonly path: readonly Segment[];
  /** Whether the value has parts: configs, arrays, records, and registered containers have. */
  readonly isTraversable: boolean;
  /** The parts of the value, without going on to them. */
  children(): Child[];
  /**
   * Goes on to every part, and gives a value of the same kind that holds the results: an array, a record, a config of
   * the same class. Where every result is the part itself, so is the whole; a value without parts is given as it is.
   *
   * @throws ConfigError where a result does not fit its field.
   */
  mapChildren(): unknown;
  /** Goes on to every part, and gives the results in order. */
  flattenedMapChildren(): R[];
  /** Goes on to `value`, a part or something that is to stand for it; `path` are the steps to it from here. */
  call(value: unknown, ...path: Segment[]): R;
  /** Every path from the root, made one by one: there may be more of them than anyone could store. */
  allPaths(): IterableIterator<readonly Segment[]>;
  /** The states around this one, the nearest first, the root's last. */
  ancestors(): IterableIterator<State<R>>;
}

/** How `traverse` goes about it. */
export interface TraverseOptions {
  /** Calls the visitor once for each object, the default, or once for each path. Numbers, strings and the like are no objects. */
  readonly memoized?: boolean;
  /** Takes in fields that were not set and have a default. */
  readonly defaults?: boolean;
  /** How to look into instances of further classes, in this traversal alone: `[[Grid, { flatten, unflatten }]]`. */
  readonly containers?: readonly (readonly [
    cls: abstract new (...values: any[]) => object,
    handler: ContainerHandler<any>,
  ])[];
}

/**
 * Calls `visit` for `root`, and for whatever the visitor goes on to by its state; the result is that for the root.
 *
 *     const count = traverse<number>(config, (_, state) =>
 *       state.flattenedMapChildren().reduce((sum, each) => sum + each, 1));
 *
 * However deep the graph is, the stack does not overflow: from 100 nested calls on, what lies below a value is visited
 * before it. A visitor should therefore depend on nothing but the value and the state; where it merely looks at each
 * config, `iterate` is simpler.
 *
 * @throws ConfigError where a value contains itself.
 */
export function traverse<R>(root: unknown, visit: Visitor<R>, options: TraverseOptions = {}): R {
  const run = new Run(root, visit, options);
  return run.resultOf(run.root);
}

// Some five frames a call, of which the visitor's may be large.
const deepestCalls = 100;

type Outcome<R> = { readonly result: R } | { readonly error: unknown };

/** A way to an object: the state that it is reached from, and the step. */
interface Arrival {
  readonly from: unknown;
  readonly segment: Segment;
}

class Run<R> {
  readonly root: Place<R>;
  readonly handlers: Handlers | undefined;
  private readonly memoized: boolean;
  private readonly memo = new Map<unknown, Outcome<R>>();
  private readonly inside = new Map<unknown, Place<R>>();
  private calls = 0;
  private knownArrivals: Map<unknown, Arrival[]> | undefined;

  constructor(
    root: unknown,
    private readonly visitor: Visitor<R>,
    readonly options: TraverseOptions,
  ) {
    this.memoized = options.memoized !== false;
    const handlers = options.containers?.map(
      ([cls, handler]) => [prototypeOf(cls, 'traverse'), handler] as const,
    );
    this.handlers = handlers && new Map(handlers);
    this.root = new Place(this, root, undefined, undefined);
  }

  resultOf(place: Place<R>): R {
    const outcome = this.outcomeOf(place) ?? this.evaluate(place);
    if ('error' in outcome) throw outcome.error;
    return outcome.result;
  }

  private outcomeOf(place: Place<R>): Outcome<R> | undefined {
    return (this.memoized && this.memo.get(place.original)) || place.outcome;
  }

  private evaluate(place: Place<R>): Outcome<R> {
    const outer = this.inside.get(place.original);
    if (outer !== undefined) throw cycleError(place.original, place.link, outer.link);
    if (this.calls >= deepestCalls && place.isTraversable) this.prepare(place);
    return this.keep(place, { result: this.visit(place) });
  }

  private keep(place: Place<R>, outcome: Outcome<R>): Outcome<R> {
    if (this.memoized && isObject(place.original)) this.memo.set(place.original, outcome);
    else place.outcome = outcome;
    return outcome;
  }

  private visit(place: Place<R>): R {
    const { original } = place;
    if (isObject(original)) this.inside.set(original, place);
    this.calls += 1;
    try {
      return this.visitor(original, place);
    } finally {
      this.calls -= 1;
      this.inside.delete(original);
    }
  }

  /** Visits what lies below `top`, inner values first, so that visiting `top` nests no further. */
  private prepare(top: Place<R>): void {
    depthFirst<Place<R>>(top, {
      target: (place) => place.original,
      path: (place) => place.link,
      children: (place) =>
        place.places.filter(
          (part) =>
            part.isTraversable && this.outcomeOf(part) === undefined && !this.inside.has(part.original),
        ),
      leave: (place) => {
        if (place === top) return;
        try {
          this.keep(place, { result: this.visit(place) });
        } catch (error) {
          // The value above may not go on to this one at all: the error is thrown when it does.
          this.keep(place, { error });
        }
      },
      memoized: this.memoized,
    });
  }

  /** How each object in the graph is reached, ways met first coming first. */
  arrivals(): Map<unknown, Arrival[]> {
    if (this.knownArrivals !== undefined) return this.knownArrivals;
    const arrivals = new Map<unknown, Arrival[]>();
    const note = (place: Place<R>): void => {
      const { parent, link } = place;
      if (parent === undefined) return;
      const arrival = { from: parent.original, segment: link!.segment };
      getOrMake(arrivals, place.original, () => []).push(arrival);
    };
    depthFirst<Place<R>>(new Place(this, this.root.original, undefined, undefined), {
      target: (place) => place.original,
      path: (place) => place.link,
      children: (place) => place.places.filter((part) => isObject(part.original)),
      enter: note,
      again: note,
    });
    return (this.knownArrivals = arrivals);
  }
}

function isObject(value: unknown): boolean {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** A state: a value and one way to it. */
class Place<R> implements State<R> {
  outcome: Outcome<R> | undefined;
  private knownPlaces: readonly Place<R>[] | undefined;

  constructor(
    private readonly run: Run<R>,
    readonly original: unknown,
    readonly link: PathLink | undefined,
    readonly parent: Place<R> | undefined,
  ) {}

  get path(): readonly Segment[] {
    return segmentsOf(this.link);
  }

  get isTraversable(): boolean {
    const { original, run } = this;
    return nodeOf(original) !== undefined || partsOf(original, run.handlers) !== undefined;
  }

  /** The states of the parts: one each, so that a result is found again. */
  get places(): readonly Place<R>[] {
    this.knownPlaces ??= this.parts.map(([segment, part]) => {
      return new Place(this.run, part, { parent: this.link, segment }, this);
    });
    return this.knownPlaces;
  }

  private get parts(): readonly Part[] {
    const node = nodeOf(this.original);
    if (node === undefined) return partsOf(this.original, this.run.handlers) ?? [];
    const { defaults } = this.run.options;
    const isShown = (field: FieldInfo): boolean =>
      defaults === true ? hasValue(node, field) : isExplicit(node, field.name);
    return node.info.allFields.filter(isShown).map((field) => [field.name, readField(node, field)]);
  }

  children(): Child[] {
    return this.places.map((place) => ({
      segment: place.link!.segment,
      value: place.original,
      get path() {
        return place.path;
      },
    }));
  }

  flattenedMapChildren(): R[] {
    return this.places.map((place) => this.run.resultOf(place));
  }

  mapChildren(): unknown {
    const results = this.flattenedMapChildren();
    const { original, places } = this;
    if (places.every((place, i) => Object.is(place.original, results[i]))) return original;
    const node = nodeOf(original);
    if (node === undefined) return rebuild(original as object, results, this.run.handlers);
    const made = copyAlone(node);
    const writer = origin();
    for (const [i, place] of places.entries()) {
      if (Object.is(place.original, results[i])) continue;
      writeField(made, String(place.link!.segment), results[i], writer);
    }
    return made.proxy;
  }

  call(value: unknown, ...path: Segment[]): R {
    const own =
      path.length === 1 &&
      this.places.find(
        (place) => isSameStep(place.link!.segment, path[0]!) && Object.is(place.original, value),
      );
    if (own) return this.run.resultOf(own);
    let { link } = this;
    for (const segment of path) link = { parent: link, segment };
    return this.run.resultOf(new Place(this.run, value, link, this));
  }

  *allPaths(): IterableIterator<readonly Segment[]> {
    const { original, parent, link } = this;
    const arrivals = this.run.arrivals();
    if (parent !== undefined && !arrivals.has(original)) {
      // Not shared, being no object, or put in by the visitor: as many paths as there are to where it stands.
      const steps = segmentsOf(link).slice(segmentsOf(parent.link).length);
      for (const path of parent.allPaths()) yield [...path, ...steps];
      return;
    }
    // Backwards to the root, which every way leads to: no path is begun in vain.
    const back: Segment[] = [];
    const open = [{ ways: arrivals.get(original) ?? [], next: 0 }];
    if (parent === undefined) yield [];
    for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
      const way = level.ways[level.next++];
      if (way === undefined) {
        open.pop();
        back.pop();
        continue;
      }
      back.push(way.segment);
      if (way.from === this.run.root.original) {
        yield back.toReversed();
        back.pop();
      } else open.push({ ways: arrivals.get(way.from)!, next: 0 });
    }
  }

  *ancestors(): IterableIterator<State<R>> {
    for (let place = this.parent; place !== undefined; place = place.parent) yield place;
  }
}
