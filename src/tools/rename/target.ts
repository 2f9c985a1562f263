/** @file Target of a rename: the class or field named on the command line, and checks of the new name. */
import { Node, type PropertySignature } from 'ts-morph';
import { didYouMean, isFieldName } from '../../hparams/index.js';
import { UsageError } from '../../system/text/index.js';
import { oldNamesOf } from './aliases.js';
import {
  type ClassEntry,
  type Classes,
  experimentName,
  ownFields,
  type Schema,
  schemasOf,
} from './classes.js';
import type { RenameProject } from './renameProject.js';

/** A schema in a source file. */
type OwnSchema = Exclude<Schema, PropertySignature>;

/** A field, with all classes that have it. */
export interface FieldTarget {
  readonly name: string;
  readonly owner: ClassEntry;
  /** The owner and its subclasses. */
  readonly family: readonly ClassEntry[];
  /** Where the owner declares it, and subclasses declare it again. */
  readonly schemas: readonly OwnSchema[];
}

const classForm = /^(?:(.+\.[cm]?[jt]s):)?([A-Za-z_$][\w$]*)$/;

/** The classes that a text means: `Linear`, `src/layers/linears.ts:Linear`, or the experiment `lm.Small`. */
function findClasses(project: RenameProject, classes: Classes, text: string): ClassEntry[] {
  const own = classes.all.filter(({ node }) => project.isOwn(node.getSourceFile()));
  const experiments = own.filter((entry) => experimentName(entry) === text);
  if (experiments.length > 0) return experiments;
  const [, file, name] = classForm.exec(text) ?? [];
  if (name === undefined) {
    const names = own.flatMap((entry) => experimentName(entry) ?? []);
    const hint = didYouMean(text, names) || ' Write NAME, file.ts:NAME, or the name of an experiment.';
    throw new UsageError(`'${text}' names no class.${hint}`);
  }
  const there = own.filter(({ node }) => {
    const shown = project.show(node.getSourceFile().getFilePath());
    return file === undefined || shown === file || shown.endsWith(`/${file}`);
  });
  const found = there.filter((entry) => entry.name === name);
  if (found.length > 0) return found;
  const foreign = file === undefined ? classes.extended(name) : undefined;
  if (foreign !== undefined) {
    const place = project.place(foreign.node);
    throw new UsageError(`${name} is declared at ${place}, which is not a file of this project.`);
  }
  const where = file === undefined ? '' : ` in ${file}`;
  const hint = didYouMean(
    name,
    there.map((entry) => entry.name),
  );
  throw new UsageError(
    `No configurable class or experiment of the project is called '${name}'${where}.${hint}`,
  );
}

function oneOf(project: RenameProject, found: readonly ClassEntry[], suffix = ''): ClassEntry {
  if (found.length === 1) return found[0]!;
  const list = found.map((entry) => {
    const file = project.show(entry.node.getSourceFile().getFilePath());
    return `\n  ${file}:${entry.name}${suffix}  (${project.place(entry.node)})`;
  });
  const title = `There are ${found.length} classes called ${found[0]!.name}: say which.`;
  throw new UsageError(title + list.join(''));
}

/** The class that `text` means. @throws UsageError if there is none, or more than one. */
export function findClass(project: RenameProject, classes: Classes, text: string): ClassEntry {
  return oneOf(project, findClasses(project, classes, text));
}

/**
 * The field that `CLASS.field` means.
 *
 * @throws UsageError for an unknown class or field, for a class that is not the only one, and for an inherited field.
 */
export function findField(project: RenameProject, classes: Classes, text: string): FieldTarget {
  const dot = text.lastIndexOf('.');
  const [classText, name] = [text.slice(0, dot), text.slice(dot + 1)];
  if (dot <= 0 || name === '') throw new UsageError(`'${text}' names no field: write CLASS.field.`);
  const named = findClasses(project, classes, classText);
  const line = (entry: ClassEntry) => [entry, ...classes.ancestors(entry)];
  const declaring = (entry: ClassEntry) => line(entry).filter((each) => schemasOf(each, name).length > 0);
  const having = named.filter((entry) => declaring(entry).length > 0);
  if (having.length === 0) throw unknownField(named[0]!, line(named[0]!).flatMap(ownFields), name);
  const owner = oneOf(project, having, `.${name}`);
  const top = declaring(owner).at(-1)!;
  if (top !== owner) {
    const advice = project.isOwn(top.node.getSourceFile())
      ? `rename ${top.name}.${name}, and it changes here, too.`
      : 'which is not a class of this project.';
    const place = project.place(top.node);
    throw new UsageError(`${owner.name} has '${name}' from ${top.name} (${place}): ${advice}`);
  }
  const family = classes.family(owner);
  const schemas = [...new Set(family.flatMap((entry) => schemasOf(entry, name)))];
  const isSource = (schema: Schema): schema is OwnSchema =>
    project.isOwn(schema.getSourceFile()) && !Node.isPropertySignature(schema);
  if (schemas.every(isSource)) return { name, owner, family, schemas };
  const foreign = schemas.find((schema) => !isSource(schema))!;
  throw new UsageError(
    `${owner.name}.${name} is declared at ${project.place(foreign)}, which is not a file of this project.`,
  );
}

function unknownField({ name, kind }: ClassEntry, fields: readonly string[], field: string): UsageError {
  const what = kind === 'experiment' ? 'constant' : 'hyperparameter';
  const names = [...new Set(fields)].sort();
  return new UsageError(
    `${name} has no ${what} '${field}'.${didYouMean(field, names)} It has ${names.join(', ') || 'none'}.`,
  );
}

/** @throws UsageError for an invalid new name of the field, or one that a class uses already. */
export function checkFieldName(
  project: RenameProject,
  classes: Classes,
  { name, owner, family }: FieldTarget,
  newName: string,
): void {
  const what = `${owner.name}.${name} cannot be called '${newName}'`;
  if (!isFieldName(newName)) throw new UsageError(`${what}: it is not a valid identifier for a field.`);
  if (newName === name) throw new UsageError(`${owner.name}.${name} has that name already.`);
  for (const entry of family.flatMap((each) => [each, ...classes.ancestors(each)])) {
    const [field] = schemasOf(entry, newName);
    const member = entry.kind === 'experiment' ? entry.node.getInstanceMember(newName) : undefined;
    const taken = field ?? member;
    if (taken !== undefined) {
      const kind = field === undefined ? 'member' : 'field';
      throw new UsageError(`${what}: ${entry.name} has a ${kind} of that name (${project.place(taken)}).`);
    }
    for (const other of ownFields(entry)) {
      const old = schemasOf(entry, other).find((schema) => oldNamesOf(schema).includes(newName));
      if (old === undefined || other === name) continue;
      throw new UsageError(
        `${what}: ${entry.name}.${other} had that name before (${project.place(old)}), ` +
          'and values saved under it would load into the wrong field.',
      );
    }
  }
}

/** @throws UsageError where the class can't have the new name. */
export function checkClassName(project: RenameProject, entry: ClassEntry, newName: string): void {
  const what = `${entry.name} cannot be called '${newName}'`;
  if (!isFieldName(newName)) throw new UsageError(`${what}: it is not a valid identifier.`);
  if (newName === entry.name) throw new UsageError(`${entry.name} has that name already.`);
  const file = entry.node.getSourceFile();
  if (!file.getExportedDeclarations().has(newName)) return;
  const isExperiment = experimentName(entry) !== undefined;
  const shown = isExperiment ? `experiment file ${project.show(file.getFilePath())}` : 'its file';
  throw new UsageError(`${what}: ${shown} exports something of that name.`);
}
