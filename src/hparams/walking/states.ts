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

/** Returns the result for a value. */
type Visitor<R> = (value: unknown, state: State<R>) => R;

/** A part of a value. */
export interface Child {
  readonly segment: Segment;
  readonly value: unknown;
  /** The steps from the root. */
  readonly path: readonly Segment[];
}

/** Position of a traversal, with the operations that continue it. */
export interface State<R> {
  /** The value at this position. */
  readonly original: unknown;
  /** The steps from the root; for a shared object, by its first path. */
  readonly path: readonly Segment[];
  /** Whether the value can have parts: a config, array, record or registered container. */
  readonly isTraversable: boolean;
  /** The parts of the value, without visiting them. */
  children(): Child[];
  /**
   * Visits every part, and returns the value with its parts replaced by their results: an array, a record, a config of
   * the same class. Returns the value itself if all results equal the parts, or if it has no parts.
   *
   * @throws ConfigError where a result does not fit its field.
   */
  mapChildren(): unknown;
  /** Visits every part; returns the results in order. */
  flattenedMapChildren(): R[];
  /** Visits `value`, a part or its replacement; `path` are the steps to it from here. */
  call(value: unknown, ...path: Segment[]): R;
  /** All paths from the root, generated lazily, since there may be exponentially many. */
  allPaths(): IterableIterator<readonly Segment[]>;
  /** The enclosing states, from the nearest to the root's. */
  ancestors(): IterableIterator<State<R>>;
}

/** Options of `traverse`. */
interface TraverseOptions {
  /** Visits each object once, the default, or once per path. Primitive values are always visited per path. */
  readonly memoized?: boolean;
  /** Includes unset fields that have a default. */
  readonly defaults?: boolean;
  /** Handlers for containers of further classes, in this traversal only: `[[Grid, { flatten, unflatten }]]`. */
  readonly containers?: readonly (readonly [
    cls: abstract new (...values: any[]) => object,
    handler: ContainerHandler<any>,
  ])[];
}

/**
 * Calls `visit` for `root`, which continues to other values through its state; returns the result for the root.
 *
 *     const count = traverse<number>(config, (_, state) =>
 *       state.flattenedMapChildren().reduce((sum, each) => sum + each, 1));
 *
 * The stack never overflows: from 100 nested calls on, the values below one are visited before it. A visitor should
 * therefore depend only on value and state. To look at each config, `iterate` is simpler.
 *
 * @throws ConfigError where a value contains itself.
 */
export function traverse<R>(root: unknown, visit: Visitor<R>, options: TraverseOptions = {}): R {
  const run = new Run(root, visit, options);
  return run.resultOf(run.root);
}

// About five frames per call; the visitor's may be large.
const deepestCalls = 100;

type Outcome<R> = { readonly result: R } | { readonly error: unknown };

/** An edge to an object: its source, and the step. */
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
    const { containers } = options;
    this.handlers =
      containers && new Map(containers.map(([cls, handler]) => [prototypeOf(cls, 'traverse'), handler]));
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

  /** Visits the values below `top`, inner ones first, so that visiting `top` nests no deeper. */
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
          // The visitor of the outer value may skip this one: throw only if it reads the result.
          this.keep(place, { error });
        }
      },
      memoized: this.memoized,
    });
  }

  /** All edges to each object of the graph, in the order of discovery. */
  arrivals(): Map<unknown, Arrival[]> {
    if (this.knownArrivals !== undefined) return this.knownArrivals;
    const arrivals = new Map<unknown, Arrival[]>();
    const note = ({ original, parent, link }: Place<R>): void => {
      if (parent === undefined) return;
      getOrMake(arrivals, original, () => []).push({ from: parent.original, segment: link!.segment });
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

/** A value and one path to it. */
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

  /** The parts' states, cached with their results. */
  get places(): readonly Place<R>[] {
    this.knownPlaces ??= this.parts.map(([segment, part]) => {
      return new Place(this.run, part, { parent: this.link, segment }, this);
    });
    return this.knownPlaces;
  }

  private get parts(): readonly Part[] {
    const node = nodeOf(this.original);
    if (node === undefined) return partsOf(this.original, this.run.handlers) ?? [];
    const isShown = (field: FieldInfo): boolean =>
      this.run.options.defaults === true ? hasValue(node, field) : isExplicit(node, field.name);
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
    const isOwn = ({ link, original }: Place<R>): boolean =>
      isSameStep(link!.segment, path[0]!) && Object.is(original, value);
    const own = path.length === 1 ? this.places.find(isOwn) : undefined;
    if (own !== undefined) return this.run.resultOf(own);
    let { link } = this;
    for (const segment of path) link = { parent: link, segment };
    return this.run.resultOf(new Place(this.run, value, link, this));
  }

  *allPaths(): IterableIterator<readonly Segment[]> {
    const { original, parent, link } = this;
    const arrivals = this.run.arrivals();
    if (parent !== undefined && !arrivals.has(original)) {
      // A primitive or a replacement is not shared: it has one path per path to its parent.
      const steps = segmentsOf(link).slice(segmentsOf(parent.link).length);
      for (const path of parent.allPaths()) yield [...path, ...steps];
      return;
    }
    // Searches backwards to the root, which every path leads to: there are no dead ends.
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
