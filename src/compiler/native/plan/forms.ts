/** @file Forms of placed operations: those of the records, and of operations that plans add. */
import { CHEAP, type DeviceForm, MAP } from '../../rules/deviceForm.js';
import { ruleOf } from '../../rules/index.js';

/** Operations that plans add: copies, the words of a folded key, the index of an extremum, and the ends of loops. */
const OWN: Readonly<Record<string, DeviceForm>> = {
  Copy: CHEAP,
  Overwrite: MAP,
  FoldInFirst: MAP,
  FoldInSecond: MAP,
  FirstIndex: { kind: 'first' },
  Begin: { kind: 'move' },
  End: { kind: 'move' },
};

/** The form in which an operation is run as a whole; undefined for one that is expanded. */
export const formOf = (op: string): DeviceForm | undefined => OWN[op] ?? ruleOf(op).device;

/** The operations that plans add, and their forms. */
export const ownForms = (): Readonly<Record<string, DeviceForm>> => OWN;
