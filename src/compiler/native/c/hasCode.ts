/** @file Operations that have C code. */
import type { DeviceForm } from '../../rules/deviceForm.js';
import { formOf } from '../plan/forms.js';
import { CALLS } from './emitCalls.js';
import { EXPRESSIONS, expressionOf, REDUCERS } from './expressions.js';

/** Code of Luthier's operations by the kind of a form. Other kinds have no code of their own: gathers, products, and the moves of layout. */
export const CODE: Partial<Record<DeviceForm['kind'], Readonly<Record<string, unknown>>>> = {
  map: EXPRESSIONS,
  reduction: REDUCERS,
  call: CALLS,
};

/** Whether programs can have an operation, by its form. */
export function hasCode(op: string): boolean {
  const form = formOf(op);
  if (form === undefined) return false;
  if (form.kind === 'map') return expressionOf(op) !== undefined;
  const code = CODE[form.kind];
  return code === undefined || op in code;
}
