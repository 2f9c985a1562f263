/** @file Names of classes in one text: short, but qualified where two classes of one name stand in the same text. */
import { hasNamesake, qualifiedName } from '../fields/classNames.js';
import type { ClassInfo } from '../fields/fields.js';
import { getOrMake } from '../nodes/containers.js';
import type { AbstractClass } from '../types.js';
import { walk } from '../walking/walk.js';

/** What a text calls its classes. It depends on nothing but what the text shows: no other class of the program counts. */
export class ClassLabels {
  private known: Map<string, Set<AbstractClass>> | undefined;

  /** `classes` gives those in the text; they are asked for where one of them has a namesake in the program. */
  constructor(private readonly classes: () => Iterable<ClassInfo>) {}

  /** The labels of the configs in `roots`. */
  static in(...roots: readonly unknown[]): ClassLabels {
    return new ClassLabels(() => {
      const infos = new Set<ClassInfo>();
      for (const root of roots) walk(root, { enter: ({ info }) => infos.add(info) });
      return infos;
    });
  }

  of(info: ClassInfo): string {
    const { name, cls } = info;
    // A trimmed config has a name of its own.
    if (name !== cls.name || !hasNamesake(cls)) return name;
    if (this.known === undefined) {
      this.known = new Map();
      for (const each of this.classes()) this.note(each);
    }
    return this.note(info).size > 1 ? qualifiedName(cls) : name;
  }

  private note({ name, cls }: ClassInfo): Set<AbstractClass> {
    return getOrMake(this.known!, name, () => new Set<AbstractClass>()).add(cls);
  }
}
