/** @file Every operation has a form on the native engine, and every form has its code: of nothing else is there any. */
import { expect, test } from 'vitest';
import { CODE } from '../../../../src/compiler/native/c/hasCode.js';
import { EXPANSIONS } from '../../../../src/compiler/native/plan/expansions.js';
import { formOf, ownForms } from '../../../../src/compiler/native/plan/forms.js';
import { MOVED } from '../../../../src/compiler/native/plan/layout.js';
import { VIEWS } from '../../../../src/compiler/native/plan/viewOps.js';
import { CONSTRAINT, collectiveRules } from '../../../../src/compiler/rules/collectiveRules.js';
import { controlRules } from '../../../../src/compiler/rules/controlRules.js';
import { compositeOf, opNames } from '../../../../src/compiler/rules/index.js';
import '../../../../src/compiler/ops/operations.js';

const ops = [
  ...opNames(),
  ...Object.keys({ ...controlRules, ...collectiveRules }),
  ...Object.keys(ownForms()),
];

test('every operation has a form, an expansion or a meaning', () => {
  // Partitions of programs leave no constraint.
  const compiled = ops.filter((op) => op !== CONSTRAINT);
  const without = compiled.filter((op) => !formOf(op) && !(op in EXPANSIONS) && !compositeOf(op));
  expect(without).toEqual([]);
});

test.each([
  ...Object.entries(CODE).map(([kind, code]) => [kind, Object.keys(code)] as const),
  ['view', Object.keys(VIEWS)] as const,
  ['move', [...MOVED, 'Begin', 'End']] as const,
])('each %s has code, and nothing else', (kind, code) => {
  const ofKind = ops.filter((op) => formOf(op)?.kind === kind);
  expect(ofKind.toSorted()).toEqual(code.toSorted());
});
