/** @file The made sentences as a finite automaton of letters, and what it knows of hidden letters. */
import { adjectives, adverbs, nouns, verbs } from '../experiments/sequences.js';

/** Probabilities of the states, [states]. */
type Belief = Float64Array;

interface Arc {
  readonly letter: string;
  readonly probability: number;
  readonly to: number;
}

/** A finite automaton, each arc of which writes a letter. */
class Automaton {
  readonly #arcs: Arc[][] = [];

  get numStates(): number {
    return this.#arcs.length;
  }

  addState(): number {
    return this.#arcs.push([]) - 1;
  }

  /** Adds a text between two states. @param probability that of the text, given the first state */
  addText(from: number, text: string, probability: number, to: number): void {
    let at = from;
    for (const [i, letter] of [...text].entries()) {
      const next = i === text.length - 1 ? to : this.addState();
      this.#arcs[at]!.push({ letter, probability: i === 0 ? probability : 1, to: next });
      at = next;
    }
  }

  /** The belief after a letter, of the same sum where the letter is unknown. */
  after(belief: Belief, letter?: string): Belief {
    const next = new Float64Array(this.numStates);
    for (const [from, arcs] of this.#arcs.entries())
      if (belief[from]! > 0)
        for (const arc of arcs)
          if (letter === undefined || arc.letter === letter) next[arc.to]! += belief[from]! * arc.probability;
    return next;
  }

  /** The likelihood of a letter and what follows, of each state, from that of what follows. */
  before(likelihood: Belief, letter?: string): Belief {
    return Float64Array.from(this.#arcs, (arcs) =>
      arcs.reduce(
        (sum, arc) =>
          letter === undefined || arc.letter === letter ? sum + arc.probability * likelihood[arc.to]! : sum,
        0,
      ),
    );
  }

  /** The letters that may come next. */
  lettersAfter(belief: Belief): Set<string> {
    return new Set(this.#arcs.flatMap((arcs, i) => (belief[i]! > 0 ? arcs.map(({ letter }) => letter) : [])));
  }
}

const texts = Object.keys;

/** A noun phrase from a state to that of its number. */
function addNounPhrase(
  automaton: Automaton,
  from: number,
  to: readonly [one: number, several: number],
): void {
  for (const [number, end] of to.entries()) {
    const noun = automaton.addState();
    for (const article of ['the ', number === 0 ? 'a ' : 'some ']) {
      automaton.addText(from, article, 1 / 8, noun);
      for (const adjective of texts(adjectives))
        automaton.addText(from, `${article}${adjective} `, 1 / 8 / texts(adjectives).length, noun);
    }
    for (const text of texts(nouns))
      automaton.addText(
        noun,
        number === 0 || text === 'fish' ? text : `${text}s`,
        1 / texts(nouns).length,
        end,
      );
  }
}

/** Texts of sentences, and the state at the start of one. */
function sentenceTexts(): { readonly automaton: Automaton; readonly start: number } {
  const automaton = new Automaton();
  const [start, one, several, verb, object] = Array.from({ length: 5 }, () => automaton.addState()) as [
    ...[number, number, number, number, number],
  ];
  addNounPhrase(automaton, start, [one, several]);
  for (const text of texts(verbs)) {
    automaton.addText(one, ` ${text}s `, 1 / texts(verbs).length, verb);
    automaton.addText(several, ` ${text} `, 1 / texts(verbs).length, verb);
  }
  addNounPhrase(automaton, verb, [object, object]);
  automaton.addText(object, '. ', 1 / 2, start);
  for (const text of texts(adverbs))
    automaton.addText(object, ` ${text}. `, 1 / 2 / texts(adverbs).length, start);
  return { automaton, start };
}

/** Text with hidden spans: each of them stands behind the visible letters of its number. */
export interface CorruptedText {
  readonly visible: readonly string[];
  readonly hidden: readonly string[];
}

/**
 * The best guess of each hidden span: the likeliest text, given all visible letters, the number of hidden ones, and the
 * sentences' grammar. No filler has more spans right, on average.
 */
export function bayesFiller(): (text: CorruptedText) => string[] {
  const { automaton, start } = sentenceTexts();
  /** Pieces of a text begin at multiples of their length: four pieces of eight sentences. */
  const startOf = (length: number): Belief => {
    const mean = new Float64Array(automaton.numStates);
    let belief: Belief = new Float64Array(automaton.numStates);
    belief[start] = 1;
    for (let i = 0; i < 4 * length; i++) {
      if (i % length === 0) for (const [state, p] of belief.entries()) mean[state]! += p / 4;
      belief = automaton.after(belief);
    }
    return mean;
  };
  const starts = new Map<number, Belief>();

  return ({ visible, hidden }) => {
    const numHidden = hidden.join('').length;
    const length = visible.join('').length + numHidden;
    if (!starts.has(length)) starts.set(length, startOf(length));
    const spans = hidden.length;
    // By number of letters hidden in earlier spans: all divisions of the hidden letters among the spans are as likely.
    const before: (Belief | undefined)[][] = [];
    let at: (Belief | undefined)[] = [starts.get(length)];
    for (const text of visible) {
      before.push(
        at.map((belief) => belief && [...text].reduce((b, letter) => automaton.after(b, letter), belief)),
      );
      at = sumsOfShifts(before.at(-1)!, numHidden, (belief) => automaton.after(belief));
    }
    const behind: (Belief | undefined)[][] = [];
    let follow: (Belief | undefined)[] = Array.from({ length: numHidden + 1 }, (_, h) =>
      h === numHidden ? new Float64Array(automaton.numStates).fill(1) : undefined,
    );
    for (let k = spans - 1; k >= 0; k--) {
      behind[k] = follow;
      const here = sumsOfShifts(follow.toReversed(), numHidden, (b) => automaton.before(b)).toReversed();
      follow = here.map(
        (b) =>
          b && [...visible[k]!].reduceRight((likelihood, letter) => automaton.before(likelihood, letter), b),
      );
    }
    return hidden.map((_, k) => likeliest(automaton, before[k]!, behind[k]!));
  };
}

/** From beliefs by a number of letters, those after one letter more or several: sum over shifts by 1, 2, …, up to `most`. */
function sumsOfShifts(
  beliefs: readonly (Belief | undefined)[],
  most: number,
  step: (belief: Belief) => Belief,
): (Belief | undefined)[] {
  const sums: (Belief | undefined)[] = [undefined];
  for (let h = 1; h <= most; h++) {
    const [earlier, own] = [sums[h - 1], beliefs[h - 1]];
    const both = earlier && own ? earlier.map((p, i) => p + own[i]!) : (earlier ?? own);
    sums.push(both && step(both));
  }
  return sums;
}

/** The likeliest text between beliefs and likelihoods by number of letters. */
function likeliest(
  automaton: Automaton,
  before: readonly (Belief | undefined)[],
  behind: readonly (Belief | undefined)[],
): string {
  const scores = new Map<string, number>();
  const extend = (belief: Belief, text: string, count: number): void => {
    const likelihood = text === '' ? undefined : behind[count];
    const score = likelihood?.reduce((sum, p, i) => sum + p * belief[i]!, 0) ?? 0;
    if (score > 0) scores.set(text, (scores.get(text) ?? 0) + score);
    if (!behind.some((b, h) => h > count && b)) return;
    for (const letter of automaton.lettersAfter(belief))
      extend(automaton.after(belief, letter), text + letter, count + 1);
  };
  for (const [count, belief] of before.entries()) if (belief?.some((p) => p > 0)) extend(belief, '', count);
  if (scores.size === 0) throw new Error('The automaton cannot write the visible letters.');
  return [...scores].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
}
