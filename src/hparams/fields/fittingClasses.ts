/** @file Classes whose configs a field takes, and the names that they are called by. */

import type { AbstractClass } from '../types.js';
import { classesNamed, concreteClasses, nameOf } from './classNames.js';
import type { Holder } from './schema.js';

/** The classes whose configs a holder takes. */
export function fitting(holder: Holder): AbstractClass[] {
  return concreteClasses().filter(holder.takes);
}

/** The classes that `name` may mean among `classes`: unambiguous short names suffice. */
export function namedAmong(classes: readonly AbstractClass[], name: string): AbstractClass[] {
  const short = classes.filter((cls) => cls.name === name);
  if (short.length === 1) return short;
  const meant = classesNamed(name);
  return classes.filter((cls) => meant.includes(cls));
}

/** The names of the classes whose configs a holder takes. */
export function namesFitting(holder: Holder): string[] {
  return fitting(holder).map(nameOf).sort();
}
