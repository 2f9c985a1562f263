/** @file Members of objects, and items of lists, of which some may be left out: those that are there part by commas. */

import { COMMA, item, member, nameBesides } from './jsonTexts.js';
import { choice, type Expression, literal, optional, repeat, sequence } from './textExpressions.js';

/** Members in their order. */
export interface Members {
  readonly wanted: readonly {
    /** Absent in lists. */
    readonly name?: string;
    readonly value: Expression;
    readonly isRequired: boolean;
  }[];
  /** Values of further ones; undefined where there are none. */
  readonly others?: Expression | undefined;
  /** Whether a member may stand only behind all before it, as in lists. */
  readonly inOrder?: boolean;
  /** Makes a rule of an expression. */
  readonly add: (body: Expression) => Expression;
}

/**
 * The members. For each there is a rule of what may come from it on with others before it, and one without, so that the number
 * of rules is linear.
 */
export function members({ wanted, others, inOrder = false, add }: Members): Expression {
  const names = wanted.flatMap(({ name }) => (name === undefined ? [] : [name]));
  const more = others && item(inOrder ? others : member(nameBesides(names), others));
  let behind: Expression = more ? add(repeat(sequence(COMMA, more), 0)) : sequence();
  let alone: Expression = more ? optional(sequence(more, behind)) : sequence();
  for (const { name, value, isRequired } of [...wanted].reverse()) {
    const own = add(item(name === undefined ? value : member(literal(JSON.stringify(name)), value)));
    const first = sequence(own, behind);
    const next = sequence(COMMA, own, behind);
    const [withoutIt, withoutAny] = inOrder ? [sequence(), sequence()] : [behind, alone];
    alone = add(isRequired ? first : choice(first, withoutAny));
    behind = add(isRequired ? next : choice(next, withoutIt));
  }
  return alone;
}
