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
