/** @file Places of declarations: constants of experiments, defaults of fields. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type FileEntry, readSourceFile } from '../../registry/sourceFile.js';
import type { ConstantChange, ExperimentReport, FieldChange, Side } from './diffReport.js';
import { type ExperimentDocument, made } from './protocol.js';
import { type Tree, tidyPlace } from './versionTree.js';

/** The places at which one version declares constants and fields. */
export class DeclaredPlaces {
  private readonly files = new Map<string, FileEntry | undefined>();

  /** Documents tell files as they are in `home`; they are read from `tree`. */
  constructor(
    private readonly tree: Tree,
    private readonly home: Tree,
  ) {}

  /** `file:line` of where a class of this file declares the field or sets the constant. */
  private placeIn(file: string, cls: string, name: string): string | undefined {
    const own = this.read(file)
      ?.classes.get(cls)
      ?.constants.findLast((constant) => constant.name === name);
    return own && tidyPlace(`${file}:${own.line}`, this.home);
  }

  private read(file: string): FileEntry | undefined {
    const inside = relative(this.home.root, file);
    const path = inside.startsWith('..') ? file : join(this.tree.root, inside);
    if (!this.files.has(path)) this.files.set(path, existsSync(path) ? readSourceFile(path) : undefined);
    return this.files.get(path);
  }

  /** The place of a constant's value. */
  ofConstant(document: ExperimentDocument | undefined, name: string): string | undefined {
    const constant = made(document)?.constants.find((each) => each.name === name);
    return constant?.file && this.placeIn(constant.file, constant.setBy, name);
  }

  /** The place of a field of `cls`: in that class, or in the nearest one that it extends. */
  ofField(document: ExperimentDocument | undefined, cls: string, name: string): string | undefined {
    const classes = made(document)?.config.classes ?? {};
    const lineage = Object.hasOwn(classes, cls) ? classes[cls]!.lineage : [];
    for (const { file, name: declaring } of lineage) {
      const place = this.placeIn(file, declaring, name);
      if (place !== undefined) return place;
    }
    return undefined;
  }
}

/** One version of the experiment that a report is about. */
export interface Placed {
  readonly places: DeclaredPlaces;
  readonly document: ExperimentDocument | undefined;
}

/** A report with the places of what its classes declare. */
export function withDeclaredPlaces(report: ExperimentReport, old: Placed, now: Placed): ExperimentReport {
  const both = <C extends ConstantChange | FieldChange>(
    change: C,
    placeOf: (side: Side, version: Placed) => string | undefined,
  ): C => {
    const placed = (side: Side | undefined, version: Placed) => {
      const place = side && (side.place ?? placeOf(side, version));
      return place === undefined ? side : { ...side, place };
    };
    return {
      ...change,
      ...(change.old && { old: placed(change.old, old) }),
      ...(change.new && { new: placed(change.new, now) }),
    };
  };
  return {
    ...report,
    constants: report.constants.map((change) =>
      both(change, (_, { places, document }) => places.ofConstant(document, change.name)),
    ),
    fields: report.fields.map((change) => {
      const name = /[\w$]+$/.exec(change.path)?.[0] ?? '';
      return both(change, ({ declaredBy }, { places, document }) =>
        declaredBy === undefined ? undefined : places.ofField(document, declaredBy, name),
      );
    }),
  };
}
