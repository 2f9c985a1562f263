/** @file Automata of grammars over bytes: nodes with edges of byte ranges, and calls of rules. */
import { type CodePoints, utf8Ranges } from './codePoints.js';
import { constraintError, LIMITS } from './limits.js';
import type { Expression, Grammar } from './textExpressions.js';

/** An edge that takes one byte. */
interface ByteEdge {
  readonly low: number;
  readonly high: number;
  readonly to: number;
}

/** A call of a rule. */
interface Call {
  /** Where the rule begins. */
  readonly rule: number;
  /** Where it goes on behind the rule. */
  readonly behind: number;
}

/** A place of the automaton. */
interface Node {
  readonly bytes: ByteEdge[];
  /** Nodes that are reached without a byte. */
  readonly empty: number[];
  readonly calls: Call[];
  /** Where the rule begins that it is part of. */
  readonly rule: number;
  /** Whether that rule ends here. */
  isEnd: boolean;
  /** Whether nothing comes behind it but the end of its rule, which need not be returned to. */
  onlyEnds: boolean;
}

/** A compiled grammar. */
export interface Automaton {
  readonly nodes: readonly Node[];
  /** Where whole texts begin. */
  readonly start: number;
  /** The class of each byte: those of a class are on the same edges. */
  readonly classOf: Uint8Array;
  /** A byte of each class. */
  readonly byteOf: readonly number[];
}

class Builder {
  readonly nodes: Node[] = [];
  /** Where each rule begins. */
  readonly #rules = new Map<string, number>();
  /** Bodies that several repetitions share, and sets of characters of several bytes, as rules. */
  readonly #shared = new Map<Expression | string, number>();
  readonly #utf8 = new Map<CodePoints, ReturnType<typeof utf8Ranges>>();
  /** Rules without nodes yet. */
  readonly #pending: [start: number, Expression][] = [];
  /** Where the rule begins whose nodes are made. */
  #rule = 0;

  constructor(private readonly grammar: Grammar) {}

  /** Names of rules by their beginnings. */
  get names(): ReadonlyMap<number, string> {
    return new Map(Array.from(this.#rules, ([name, start]) => [start, name]));
  }

  #node(): number {
    if (this.nodes.length >= LIMITS.states)
      throw constraintError(
        `it has more than ${LIMITS.states} states; repetitions with high counts are costly.`,
      );
    const at = { rule: this.#rule, isEnd: false, onlyEnds: false };
    return this.nodes.push({ bytes: [], empty: [], calls: [], ...at }) - 1;
  }

  /** Where a new rule begins. */
  #start(): number {
    this.#rule = this.nodes.length;
    return this.#node();
  }

  /** Where the present rule ends. */
  #end(): number {
    const end = this.#node();
    this.nodes[end]!.isEnd = true;
    return end;
  }

  /** The beginning of a rule. */
  rule(name: string): number {
    const found = this.#rules.get(name);
    if (found !== undefined) return found;
    const around = this.#rule;
    const start = this.#start();
    this.#rule = around;
    this.#rules.set(name, start);
    this.#pending.push([start, this.grammar.rules.get(name)!]);
    return start;
  }

  /** Makes the nodes of the rules that are named so far, and of those that they name. */
  finish(): void {
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      this.#rule = next[0];
      this.#add(next[1], next[0], this.#end());
    }
  }

  /** The beginning of a rule without a name, whose nodes are made once. */
  #shareRule(key: Expression | string, add: (start: number, end: number) => void): number {
    const found = this.#shared.get(key);
    if (found !== undefined) return found;
    const around = this.#rule;
    const start = this.#start();
    this.#shared.set(key, start);
    add(start, this.#end());
    this.#rule = around;
    return start;
  }

  #call(rule: number, from: number, to: number): void {
    this.nodes[from]!.calls.push({ rule, behind: to });
  }

  #add(expression: Expression, from: number, to: number): void {
    switch (expression.kind) {
      case 'character':
        this.#addCharacter(expression, from, to);
        return;
      case 'rule':
        this.#call(this.rule(expression.name), from, to);
        return;
      case 'choice':
        for (const option of expression.options) this.#add(option, from, to);
        return;
      case 'sequence': {
        const { parts } = expression;
        if (parts.length === 0) this.nodes[from]!.empty.push(to);
        let at = from;
        for (const [i, part] of parts.entries()) {
          const next = i === parts.length - 1 ? to : this.#node();
          this.#add(part, at, next);
          at = next;
        }
        return;
      }
      case 'repeat':
        this.#addRepeat(expression, from, to);
    }
  }

  #addCharacter({ set }: Expression & { kind: 'character' }, from: number, to: number): void {
    const sequences = this.#utf8.get(set) ?? utf8Ranges(set);
    this.#utf8.set(set, sequences);
    if (sequences.every(({ length }) => length === 1)) {
      for (const [[low, high]] of sequences as [[number, number]][])
        this.nodes[from]!.bytes.push({ low, high, to });
      return;
    }
    const start = this.#shareRule(JSON.stringify(set), (begin, end) => {
      for (const ranges of sequences) {
        let at = begin;
        for (const [i, [low, high]] of ranges.entries()) {
          const next = i === ranges.length - 1 ? end : this.#node();
          this.nodes[at]!.bytes.push({ low, high, to: next });
          at = next;
        }
      }
    });
    this.#call(start, from, to);
  }

  #addRepeat({ body, least, most }: Expression & { kind: 'repeat' }, from: number, to: number): void {
    const count = Number.isFinite(most) ? most : least;
    // A body that stands many times is a rule, so that its nodes are made once.
    const isShared = count > 2 && body.kind !== 'character' && body.kind !== 'rule';
    const add = (begin: number, end: number): void => {
      if (!isShared) this.#add(body, begin, end);
      else
        this.#call(
          this.#shareRule(body, (first, last) => this.#add(body, first, last)),
          begin,
          end,
        );
    };
    let at = from;
    for (let i = 0; i < count; i++) {
      if (i >= least) this.nodes[at]!.empty.push(to);
      const next = this.#node();
      add(at, next);
      at = next;
    }
    this.nodes[at]!.empty.push(to);
    if (Number.isFinite(most)) return;
    // A node of its own: the loop must not be entered from elsewhere behind the repetition.
    const [loop, end] = [this.#node(), this.#node()];
    this.nodes[at]!.empty.push(loop);
    add(loop, end);
    this.nodes[end]!.empty.push(loop, to);
  }
}

/** Leaves out what no text can be completed from. @throws ConfigError where there is no text at all */
function prune(nodes: readonly Node[], start: number): void {
  const before: number[][] = nodes.map(() => []);
  for (const [i, { bytes, empty, calls }] of nodes.entries()) {
    for (const { to } of bytes) before[to]!.push(i);
    for (const to of empty) before[to]!.push(i);
    for (const { rule, behind } of calls) {
      before[rule]!.push(i);
      before[behind]!.push(i);
    }
  }
  const isLive = new Uint8Array(nodes.length);
  const lives = ({ rule, behind }: Call): boolean => isLive[rule] === 1 && isLive[behind] === 1;
  const pending = nodes.flatMap(({ isEnd }, i) => (isEnd ? [i] : []));
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    const { isEnd, bytes, empty, calls } = nodes[at]!;
    if (isLive[at] === 1) continue;
    const goesOn = bytes.some(({ to }) => isLive[to]) || empty.some((to) => isLive[to]) || calls.some(lives);
    if (!isEnd && !goesOn) continue;
    isLive[at] = 1;
    for (const one of before[at]!) pending.push(one);
  }
  if (isLive[start] === 0) throw constraintError('no text fits it.');
  for (const { bytes, empty, calls } of nodes) {
    keep(bytes, ({ to }) => isLive[to] === 1);
    keep(empty, (to) => isLive[to] === 1);
    keep(calls, lives);
  }
}

/** Keeps the elements of an array that a condition holds for. */
function keep<T>(array: T[], holds: (element: T) => boolean): void {
  let size = 0;
  for (const element of array) if (holds(element)) array[size++] = element;
  array.length = size;
}

/** Marks the nodes behind which nothing comes but an end. */
function markEnds(nodes: readonly Node[]): void {
  const before: number[][] = nodes.map(() => []);
  for (const [i, { empty }] of nodes.entries()) for (const to of empty) before[to]!.push(i);
  const pending = nodes.flatMap(({ isEnd }, i) => (isEnd ? [i] : []));
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    const node = nodes[at]!;
    if (node.onlyEnds || node.bytes.length > 0 || node.calls.length > 0) continue;
    if (!node.isEnd && !node.empty.every((to) => nodes[to]!.onlyEnds)) continue;
    node.onlyEnds = true;
    for (const one of before[at]!) pending.push(one);
  }
}

/** Nodes that are reached from the beginnings of their rules without a byte, through rules that may be empty. */
function firstNodes(nodes: readonly Node[]): ReadonlySet<number> {
  const first = new Set(nodes.map(({ rule }) => rule));
  const isEmpty = new Set<number>();
  /** Nodes behind rules that are not known to be empty. */
  const waiting = new Map<number, number[]>();
  for (const at of first) {
    const { empty, calls, isEnd, rule } = nodes[at]!;
    for (const to of empty) first.add(to);
    for (const { rule: called, behind } of calls) {
      if (isEmpty.has(called)) first.add(behind);
      else if (waiting.has(called)) waiting.get(called)!.push(behind);
      else waiting.set(called, [behind]);
    }
    if (!isEnd || isEmpty.has(rule)) continue;
    isEmpty.add(rule);
    for (const behind of waiting.get(rule) ?? []) first.add(behind);
  }
  return first;
}

/** @throws ConfigError where a rule begins with itself, which would be entered without end */
function checkLeftRecursion(nodes: readonly Node[], names: ReadonlyMap<number, string>): void {
  const begun = new Map<number, number[]>();
  for (const at of firstNodes(nodes)) {
    const { rule, calls } = nodes[at]!;
    if (!begun.has(rule)) begun.set(rule, []);
    for (const call of calls) begun.get(rule)!.push(call.rule);
  }
  const open = new Set<number>();
  const path: number[] = [];
  const enter = (rule: number): void => {
    if (open.has(rule)) {
      const name = names.get(rule) ?? names.get(path.find((one) => names.has(one)) ?? -1) ?? 'root';
      throw constraintError(`the rule '${name}' begins with itself: write the repetition as (…)*.`);
    }
    if (!begun.has(rule)) return;
    open.add(rule);
    path.push(rule);
  };
  for (const root of [...begun.keys()]) {
    enter(root);
    while (path.length > 0) {
      const rule = path.at(-1)!;
      const next = begun.get(rule)!.pop();
      if (next !== undefined) enter(next);
      else {
        begun.delete(rule);
        open.delete(rule);
        path.pop();
      }
    }
  }
}

/** Classes of bytes that no edge tells apart. */
function byteClasses(nodes: readonly Node[]): Pick<Automaton, 'classOf' | 'byteOf'> {
  const begins = new Uint8Array(257);
  begins[0] = 1;
  for (const { bytes } of nodes)
    for (const { low, high } of bytes) {
      begins[low] = 1;
      begins[high + 1] = 1;
    }
  const classOf = new Uint8Array(256);
  const byteOf: number[] = [];
  for (let byte = 0; byte < 256; byte++) {
    if (begins[byte] === 1) byteOf.push(byte);
    classOf[byte] = byteOf.length - 1;
  }
  return { classOf, byteOf };
}

/**
 * The automaton of a grammar.
 *
 * @throws ConfigError for one of too many states, of no text, or with a rule that begins with itself.
 */
export function automatonOf(grammar: Grammar): Automaton {
  const builder = new Builder(grammar);
  const start = builder.rule(grammar.root);
  builder.finish();
  const { nodes } = builder;
  prune(nodes, start);
  markEnds(nodes);
  checkLeftRecursion(nodes, builder.names);
  return { nodes, start, ...byteClasses(nodes) };
}
