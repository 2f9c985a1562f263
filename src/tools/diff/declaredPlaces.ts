/** @file Places of declarations: constants of experiments, defaults of fields. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { type ClassEntry, readSourceFile } from '../../registry/sourceFile.js';
import type { ConstantChange, ExperimentReport, FieldChange, Side } from './diffReport.js';

/** The classes that the files of a version declare. */
export class DeclaredPlaces {
  private files: Map<string, string> | undefined;

  /** `all` gives the files; they are read when a place is asked for. Places are told from the folder `project`. */
  constructor(
    private readonly project: string,
    private readonly all: () => Iterable<string>,
  ) {}

  /** `file:line` of where the class, or one that it extends, declares the field or sets the constant. */
  of(cls: string, name: string): string | undefined {
    const seen = new Set<string>();
    for (let at: string | undefined = cls; at !== undefined && !seen.has(at); ) {
      seen.add(at);
      const file = this.fileOf(at);
      if (file === undefined) return undefined;
      const entry: ClassEntry | undefined = readSourceFile(file).classes.get(at);
      const own = entry?.constants.findLast((constant) => constant.name === name);
      if (own !== undefined) return `${relative(this.project, file)}:${own.line}`;
      at = entry?.base.at(-1);
    }
    return undefined;
  }

  private fileOf(cls: string): string | undefined {
    if (this.files === undefined) {
      this.files = new Map();
      for (const file of this.all()) {
        if (!/\.[cm]?[jt]s$/.test(file)) continue;
        for (const [, name] of readFileSync(file, 'utf8').matchAll(
          /^(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+(\w+)/gm,
        ))
          if (!this.files.has(name!)) this.files.set(name!, file);
      }
    }
    return this.files.get(cls);
  }
}

/** A report with the places of what its classes declare. */
export function withDeclaredPlaces(
  report: ExperimentReport,
  old: DeclaredPlaces,
  now: DeclaredPlaces,
): ExperimentReport {
  const side = <S extends Side & { setBy?: string }>(
    name: string,
    given: S | undefined,
    places: DeclaredPlaces,
  ) => {
    const cls = given?.setBy ?? given?.declaredBy;
    const place =
      given === undefined || given.place !== undefined || cls === undefined
        ? undefined
        : places.of(cls, name);
    return given !== undefined && place !== undefined ? { ...given, place } : given;
  };
  const both = <C extends ConstantChange | FieldChange>(change: C, name: string): C => {
    const sides = {
      ...(change.old && { old: side(name, change.old, old) }),
      ...(change.new && { new: side(name, change.new, now) }),
    };
    return { ...change, ...sides };
  };
  return {
    ...report,
    constants: report.constants.map((change) => both(change, change.name)),
    fields: report.fields.map((change) => both(change, /[\w$]+$/.exec(change.path)?.[0] ?? '')),
  };
}
