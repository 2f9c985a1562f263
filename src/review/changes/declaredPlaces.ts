/** @file Places of declarations: constants of experiments, defaults of fields. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type RecordEntry, SourceFiles } from '../../registry/names/index.js';
import type { ConstantChange, ExperimentReport, FieldChange, Side } from '../reports/diffReport.js';
import { type ExperimentDocument, made } from '../versions/protocol.js';
import { type Tree, tidyPlace } from '../versions/versionTree.js';

/** A file of one tree as it is called in another; files outside stay where they are. */
function moved(file: string, from: Tree, to: Tree): string {
  const inside = relative(from.root, file);
  return inside.startsWith('..') ? file : join(to.root, inside);
}

/** The places at which one version declares constants and fields. */
export class DeclaredPlaces {
  private readonly files = new SourceFiles();

  /** Documents have files as they are in `home`; they are read from `tree`. */
  constructor(
    private readonly tree: Tree,
    private readonly home: Tree,
  ) {}

  /** `file:line` of where a class of this file declares the field or sets the constant. */
  private placeIn(file: string, cls: string, name: string): string | undefined {
    const path = moved(file, this.home, this.tree);
    const entry = existsSync(path) ? this.files.entry(path).classes.get(cls) : undefined;
    return entry && this.placeOf(path, entry, name, new Set());
  }

  /** The place in a record of this file, or in one that is part of it. */
  private placeOf(
    path: string,
    { constants, spreads }: RecordEntry,
    name: string,
    seen: Set<RecordEntry>,
  ): string | undefined {
    const own = constants.findLast((constant) => constant.name === name);
    if (own) return tidyPlace(`${moved(path, this.tree, this.home)}:${own.line}`, this.home);
    for (const spread of spreads.toReversed()) {
      const found = this.files.find(path, [spread]);
      if (typeof found !== 'object') continue;
      const part = this.files.entry(found.path).records.get(found.name);
      if (part === undefined || seen.has(part)) continue;
      const place = this.placeOf(found.path, part, name, seen.add(part));
      if (place !== undefined) return place;
    }
    return undefined;
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

/** A report with the places of its classes' declarations. */
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
