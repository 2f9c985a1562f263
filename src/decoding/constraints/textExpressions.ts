/** @file Expressions of texts: what regular expressions, grammars and JSON schemas are translated to. */
import { type CodePoints, charactersOf } from './codePoints.js';

/** A set of texts. */
export type Expression =
  /** One character of a set. */
  | { readonly kind: 'character'; readonly set: CodePoints }
  | { readonly kind: 'sequence'; readonly parts: readonly Expression[] }
  | { readonly kind: 'choice'; readonly options: readonly Expression[] }
  /** The body, from `least` to `most` times; Infinity without a limit. */
  | { readonly kind: 'repeat'; readonly body: Expression; readonly least: number; readonly most: number }
  /** The texts of a rule. */
  | { readonly kind: 'rule'; readonly name: string };

/** A context-free grammar: expressions by name, and the one of whole texts. */
export interface Grammar {
  readonly rules: ReadonlyMap<string, Expression>;
  readonly root: string;
}

export const character = (set: CodePoints): Expression => ({ kind: 'character', set });
export const sequence = (...parts: readonly Expression[]): Expression => ({ kind: 'sequence', parts });
export const choice = (...options: readonly Expression[]): Expression => ({ kind: 'choice', options });
export const repeat = (body: Expression, least: number, most = Number.POSITIVE_INFINITY): Expression => ({
  ...{ kind: 'repeat', body, least, most },
});
export const optional = (body: Expression): Expression => repeat(body, 0, 1);
export const rule = (name: string): Expression => ({ kind: 'rule', name });

/** One text. */
export const literal = (text: string): Expression =>
  sequence(...Array.from(text, (each) => character(charactersOf(each))));

/** Any of some texts: those with the same beginning part where they differ, so that a reader is at one place of all. */
export function anyOf(texts: readonly string[]): Expression {
  const points = [...new Set(texts)].map((text) => [...text]);
  return choice(...differing(points, 0));
}

/** What comes from a place on in texts that are equal before it. */
function differing(texts: readonly (readonly string[])[], from: number): Expression[] {
  const byNext = new Map<string | undefined, (readonly string[])[]>();
  for (const text of texts) {
    const next = text[from];
    if (!byNext.has(next)) byNext.set(next, []);
    byNext.get(next)!.push(text);
  }
  return Array.from(byNext, ([next, group]) => {
    if (next === undefined) return sequence();
    const [first] = group as [readonly string[]];
    if (group.length === 1) return literal(first.slice(from).join(''));
    let to = from + 1;
    while (to < first.length && group.every((text) => text[to] === first[to])) to++;
    return sequence(literal(first.slice(from, to).join('')), choice(...differing(group, to)));
  });
}
