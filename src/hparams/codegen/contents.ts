/** @file Changes inside lists and records as statements. */

import type { z } from 'zod';
import type { ValueEdits } from '../diff/edits.js';
import type { DiffValue } from '../diff/types.js';
import { definitionOf } from '../fields/schema.js';
import { getOrMake } from '../nodes/containers.js';
import { action, type Code, call, statement, text } from './code.js';
import type { Names } from './names.js';
import type { Body } from './plan.js';
import { memberText } from './values.js';

/** Where statements go, and how values are written. */
export interface ContentsContext {
  readonly body: Body;
  readonly names: Names;
  value(value: DiffValue): Code;
}

/** Writes the changes inside the container that `place` is the expression of; `schema` says what its type is. */
export function writeContents(
  place: string,
  name: string,
  edits: ValueEdits,
  schema: z.ZodType | undefined,
  context: ContentsContext,
): void {
  const keys = [...edits.parts.values()];
  const isList = edits.inserts.length > 0 || keys.some(({ key }) => typeof key === 'number');
  const isTyped = schema !== undefined && isPlain(schema, isList);
  const typed = isTyped ? place : `(${place} as ${isList ? 'unknown[]' : 'Record<string, unknown>'})`;
  for (const { key, edits: inner } of keys) {
    if (inner.whole.length > 0 || inner.parts.size + inner.inserts.length === 0) continue;
    writeContents(typed + keyed(key), name, inner, undefined, context);
  }
  const steps = isList ? listSteps(edits, context) : recordSteps(edits, context);
  const isTuple = isTyped && definitionOf(schema).type === 'tuple';
  if (steps.length === 1 || isTuple) for (const step of steps) step(typed);
  else if (steps.length > 1) {
    // Written one by one, the steps would each have to leave a value that the field accepts.
    const copy = context.names.take([name]);
    const spread = text(isList ? `[...${typed}]` : `{ ...${typed} }`);
    context.body.statements.push(statement(`const ${copy} =`, spread, context.body.indent));
    for (const step of steps) step(copy);
    const result = isTyped ? copy : `${copy} as typeof ${place}`;
    context.body.statements.push(statement(`${place} =`, text(result), context.body.indent));
  }
}

/** Whether the type of the schema's values can be indexed as it stands. */
function isPlain(schema: z.ZodType, isList: boolean): boolean {
  const { type, keyType } = definitionOf(schema);
  if (isList) return type === 'array' || type === 'tuple';
  return type === 'record' && keyType !== undefined && definitionOf(keyType).type === 'string';
}

function keyed(key: string | number): string {
  return typeof key === 'number' ? `[${key}]` : memberText(key);
}

type Step = (container: string) => void;

function recordSteps(edits: ValueEdits, { body, value }: ContentsContext): Step[] {
  return [...edits.parts.values()].flatMap(({ key, edits: { whole } }) =>
    whole.map(
      (change): Step =>
        (record) => {
          const member = record + keyed(key);
          body.statements.push(
            change.kind === 'delete'
              ? action(text(`delete ${member}`), body.indent)
              : statement(`${member} =`, value(change.value), body.indent),
          );
        },
    ),
  );
}

/** What comes before the old item `at`: something new, or an item that moves. */
interface Coming {
  readonly order: number;
  code(): Code;
}

function listSteps(edits: ValueEdits, context: ContentsContext): Step[] {
  const { body, names, value } = context;
  const steps: Step[] = [];
  const gaps = new Map<number | 'end', Coming[]>();
  const leaving = new Set<number>();
  const put = (before: number | 'end', coming: Coming): void => {
    getOrMake(gaps, before, () => []).push(coming);
  };
  for (const [order, { before, value: inserted }] of edits.inserts)
    put(before, { order, code: () => value(inserted) });
  for (const { key, edits: inner } of edits.parts.values()) {
    const member = `[${key}]`;
    for (const change of inner.whole) {
      if (change.kind === 'delete') continue;
      steps.push((list) =>
        body.statements.push(statement(`${list}${member} =`, value(change.value), body.indent)),
      );
    }
    for (const [order, change] of inner.item) {
      leaving.add(Number(key));
      if (change.kind === 'remove') continue;
      const moved = names.take(['moved']);
      steps.push((list) =>
        body.statements.push(statement(`const ${moved} =`, text(`${list}${member}!`), body.indent)),
      );
      put(change.before, { order, code: () => text(moved, 'name') });
    }
  }
  return [...steps, ...splices(gaps, leaving, body)];
}

/** From the end on, so that the old indices in front stay what they are. */
function splices(
  gaps: ReadonlyMap<number | 'end', Coming[]>,
  leaving: ReadonlySet<number>,
  body: Body,
): Step[] {
  const codes = (at: number | 'end'): Code[] =>
    [...(gaps.get(at) ?? [])].sort((a, b) => a.order - b.order).map((coming) => coming.code());
  const run = (code: Code): number => body.statements.push(action(code, body.indent));
  const steps: Step[] = [];
  if (gaps.has('end')) steps.push((list) => run(call(`${list}.push`, codes('end'))));
  const indices = new Set([...gaps.keys()].filter((at) => at !== 'end').concat([...leaving]) as number[]);
  let removed = 0;
  for (const at of [...indices].sort((a, b) => b - a)) {
    if (leaving.has(at)) removed += 1;
    // Neighbours leave together.
    if (!gaps.has(at) && leaving.has(at - 1)) continue;
    const count = removed;
    removed = 0;
    steps.push((list) =>
      run(call(`${list}.splice`, [text(String(at), 'number'), text(String(count), 'number'), ...codes(at)])),
    );
  }
  return steps;
}
