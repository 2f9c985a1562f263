/** @file The steps of a path in a text, with their positions, and where a path leads by the types of configs. */
import type { ClassEntry, Classes } from './classes.js';
import { type Sources, ts } from './sources.js';

/** One step of a path, and where its name stands in the text. */
export interface Step {
  readonly name: string | number;
  readonly start: number;
  readonly end: number;
}

const step = /\.?([A-Za-z_$][\w$-]*)|\[(-?\d+)\]|\[(\\?["'])(.*?)\3\]/gy;

/** The steps of a path that begins at `at` and goes as far as it can be read; undefined where none begins there. */
export function stepsAt(text: string, at = 0): { steps: Step[]; end: number } | undefined {
  const steps: Step[] = [];
  let end = at;
  for (step.lastIndex = at; ; end = step.lastIndex) {
    const match = step.exec(text);
    if (match === null || match[0].startsWith('.') !== (match[1] !== undefined && steps.length > 0)) break;
    const [whole, field, index, , key] = match;
    const name = field ?? (index === undefined ? key! : Number(index));
    const start =
      match.index + (field === undefined ? whole.indexOf(String(name)) : whole.length - field.length);
    steps.push({ name, start, end: start + String(name).length });
  }
  return steps.length === 0 ? undefined : { steps, end };
}

/** What is known of what stands at a path: the types that it may have; undefined where nothing is known. */
export type Known = readonly ts.Type[] | undefined;

/** Goes along paths by the types of fields; where a config may be of a subclass, along all of them. */
export class Walker {
  constructor(
    private readonly sources: Sources,
    private readonly classes: Classes,
  ) {}

  /** The types of the fields of an entry. */
  fieldsOf(entry: ClassEntry): ts.Type[] {
    const type = this.classes.fieldsType(entry);
    return type === undefined ? [] : [type];
  }

  /** What the methods of experiments return under a name, or the experiments' constants of that name. */
  rootsOf(experiments: readonly ClassEntry[], name: string): Known {
    const { checker } = this.sources;
    const types = experiments.flatMap((entry) => {
      const symbol = checker.getPropertyOfType(this.classes.fieldsType(entry)!, name);
      if (symbol === undefined) return [];
      const type = checker.getTypeOfSymbol(symbol);
      return type.getCallSignatures()[0]?.getReturnType() ?? type;
    });
    return types.length === 0 ? undefined : types;
  }

  /** The declarations of the fields that a step may mean, and what stands there. */
  into(known: Known, name: string | number): { declarations: ts.Declaration[]; known: Known } {
    const { checker } = this.sources;
    const declarations: ts.Declaration[] = [];
    const inner: ts.Type[] = [];
    for (const type of (known ?? []).flatMap((each) => this.owners(each))) {
      const symbol = typeof name === 'string' ? checker.getPropertyOfType(type, name) : undefined;
      declarations.push(...this.sources.declarationsOf(symbol));
      const element = checker.getIndexTypeOfType(
        type,
        typeof name === 'number' ? ts.IndexKind.Number : ts.IndexKind.String,
      );
      const found = symbol === undefined ? element : checker.getTypeOfSymbol(symbol);
      if (found !== undefined) inner.push(found);
    }
    return { declarations, known: inner.length === 0 ? undefined : inner };
  }

  /** A type's members, without null and undefined; of a config, those of its class and of every class below. */
  private owners(type: ts.Type): ts.Type[] {
    const parts = type.isUnion() ? type.types : [type];
    return parts
      .filter((part) => (part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) === 0)
      .flatMap((part) => {
        const entry = this.classes.configured(part);
        if (entry === undefined) return [part];
        return this.classes.family(entry).flatMap((each) => this.fieldsOf(each));
      });
  }
}

/** A name as a part of a regular expression. */
export function escaped(name: string): string {
  return name.replaceAll('$', '\\$');
}
