/** @file States of texts that are read by an automaton: all places that a text may be at, byte by byte. */
import type { Automaton } from './automaton.js';
import { constraintError, LIMITS } from './limits.js';

/** Nodes to return to behind the rules that are entered, innermost first. Equal stacks are one object. */
class Stack {
  readonly #entered = new Map<number, Stack>();

  constructor(
    /** A number of its own. */
    readonly number: number,
    readonly behind: number,
    /** Undefined where no rule is entered. */
    readonly outer: Stack | undefined,
  ) {}

  /** The stack within a rule behind which `behind` comes. */
  entered(behind: number, newNumber: () => number): Stack {
    const found = this.#entered.get(behind);
    if (found) return found;
    const inner = new Stack(newNumber(), behind, this);
    this.#entered.set(behind, inner);
    return inner;
  }
}

/** A place of a text within the automaton. */
interface Place {
  readonly node: number;
  readonly stack: Stack;
}

/** The places of a text, as far as it is read. Equal ones are one object, so that their successors are found once. */
export class TextState {
  /** States behind a byte of each class, as far as they were asked for. */
  readonly next: (TextState | undefined)[] = [];
  /** Bits of the tokens that may come next, once they were asked for. */
  tokens: Uint32Array | undefined;

  constructor(
    readonly places: readonly Place[],
    /** Whether the text may end here. */
    readonly mayEnd: boolean,
  ) {}

  /** Whether no text goes on like this. */
  get isDead(): boolean {
    return this.places.length === 0 && !this.mayEnd;
  }
}

/** States, and places of all, that are kept at most; then all are forgotten but those that texts are at. */
const MOST_KEPT = { states: 1 << 13, places: 1 << 19 };

/** Reads texts by an automaton. */
export class TextReader {
  #stacks = 0;
  #states = new Map<string, TextState>();
  #places = 0;
  #start: TextState | undefined;
  /** Places that were visited. */
  visits = 0;

  constructor(private readonly automaton: Automaton) {}

  /** Before the first byte. */
  get start(): TextState {
    const stack = new Stack(this.#stacks++, -1, undefined);
    this.#start ??= this.#stateOf([{ node: this.automaton.start, stack }]);
    return this.#start;
  }

  /** Forgets all states. Those that texts are at go on. */
  forget(): void {
    this.#start = undefined;
    this.#states = new Map();
    this.#places = 0;
  }

  /** The state behind a byte. @throws ConfigError where a text may be at too many places at once */
  after(state: TextState, byte: number): TextState {
    const { classOf, byteOf, nodes } = this.automaton;
    const byteClass = classOf[byte]!;
    const found = state.next[byteClass];
    if (found !== undefined) return found;
    const one = byteOf[byteClass]!;
    const reached: Place[] = [];
    for (const { node, stack } of state.places)
      for (const { low, high, to } of nodes[node]!.bytes)
        if (low <= one && one <= high) reached.push({ node: to, stack });
    this.visits += state.places.length;
    const next = this.#stateOf(reached);
    state.next[byteClass] = next;
    return next;
  }

  /** The state of some places and of all that are reached from them without a byte. */
  #stateOf(reached: readonly Place[]): TextState {
    const { nodes } = this.automaton;
    const size = nodes.length;
    const pending = [...reached];
    const seen = new Set<number>();
    const kept = new Map<number, Place>();
    let mayEnd = false;
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const { node, stack } = place;
      const key = stack.number * size + node;
      if (seen.has(key)) continue;
      seen.add(key);
      if (seen.size > 8 * LIMITS.places) throw ambiguous();
      const { bytes, empty, calls, isEnd } = nodes[node]!;
      if (bytes.length > 0) kept.set(key, place);
      for (const to of empty) pending.push({ node: to, stack });
      for (const { rule, behind } of calls) {
        // Where only the end of a rule comes behind a call, its own caller is returned to: stacks of lists stay flat.
        const inner = nodes[behind]!.onlyEnds ? stack : stack.entered(behind, () => this.#stacks++);
        pending.push({ node: rule, stack: inner });
      }
      if (!isEnd) continue;
      if (stack.outer === undefined) mayEnd = true;
      else pending.push({ node: stack.behind, stack: stack.outer });
    }
    this.visits += seen.size;
    if (kept.size > LIMITS.places) throw ambiguous();
    return this.#interned(kept, mayEnd);
  }

  #interned(kept: ReadonlyMap<number, Place>, mayEnd: boolean): TextState {
    const keys = Float64Array.from(kept.keys()).sort();
    const name = `${keys.join()}${mayEnd ? '.' : ''}`;
    const found = this.#states.get(name);
    if (found) return found;
    this.#places += kept.size;
    if (this.#states.size >= MOST_KEPT.states || this.#places >= MOST_KEPT.places) this.forget();
    const state = new TextState([...kept.values()], mayEnd);
    this.#states.set(name, state);
    return state;
  }
}

const ambiguous = (): Error =>
  constraintError(`a text may be at more than ${LIMITS.places} places of it at once: it is too ambiguous.`);
