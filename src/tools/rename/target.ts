/** @file What the command line names: a class, or a field of one, and whether it may have the new name. */

import { isFieldName } from '../../hparams/fields/renamed.js';
import { didYouMean } from '../../hparams/index.js';
import { UsageError } from '../../registry/errors.js';
import { oldNamesOf } from './aliases.js';
import { type ClassEntry, type Classes, isSchemaProperty } from './classes.js';
import { experimentName } from './experiments.js';
import type { FieldTarget } from './fieldUses.js';
import { type Sources, ts } from './sources.js';

const classForm = /^(?:(.+\.[cm]?[jt]s):)?([A-Za-z_$][\w$]*)$/;

/** The classes of the project that a text means: `Linear`, `src/layers/linears.ts:Linear`, or the experiment `lm.Small`. */
function classesMeant(sources: Sources, classes: Classes, text: string): ClassEntry[] {
  const own = classes.all.filter(({ node }) => {
    const source = node.getSourceFile();
    return sources.isOwn(source) && !sources.isPage(source);
  });
  const experiments = own.filter((entry) => experimentName(entry) === text);
  if (experiments.length > 0) return experiments;
  const [, file, name] = classForm.exec(text) ?? [];
  if (name === undefined) {
    const names = own.flatMap((entry) => experimentName(entry) ?? []);
    const hint = didYouMean(text, names) || ' Write NAME, file.ts:NAME, or the name of an experiment.';
    throw new UsageError(`'${text}' names no class.${hint}`);
  }
  const found = own.filter(
    (entry) => entry.name === name && (file === undefined || isIn(sources, entry, file)),
  );
  if (found.length > 0) return found;
  const foreign = classes.all.find((entry) => entry.name === name);
  if (foreign !== undefined && file === undefined) {
    throw new UsageError(
      `${name} is declared at ${sources.place(foreign.node)}, which is not a file of this project.`,
    );
  }
  const names = own.map((entry) => entry.name);
  throw new UsageError(
    `No configurable class or experiment of the project is called '${name}'${file === undefined ? '' : ` in ${file}`}.` +
      didYouMean(name, names),
  );
}

function isIn(sources: Sources, entry: ClassEntry, file: string): boolean {
  const shown = sources.show(entry.node.getSourceFile().fileName);
  return shown === file || shown.endsWith(`/${file}`);
}

function oneOf(
  sources: Sources,
  found: readonly ClassEntry[],
  text: (entry: ClassEntry) => string,
): ClassEntry {
  if (found.length === 1) return found[0]!;
  const list = found.map((entry) => `\n  ${text(entry)}  (${sources.place(entry.node)})`).join('');
  throw new UsageError(`There are ${found.length} classes called ${found[0]!.name}: say which.${list}`);
}

/** A class in the form that names no other. */
function fullName(sources: Sources, entry: ClassEntry): string {
  return `${sources.show(entry.node.getSourceFile().fileName)}:${entry.name}`;
}

/** The class that `text` means. @throws UsageError where there is none, or more than one. */
export function classMeant(sources: Sources, classes: Classes, text: string): ClassEntry {
  const found = classesMeant(sources, classes, text);
  const entry = oneOf(sources, found, (each) => fullName(sources, each));
  if (entry.kind !== 'function') return entry;
  throw new UsageError(`${entry.name} is a configurable function: rename-class takes classes.`);
}

/**
 * The field that `CLASS.field` means.
 *
 * @throws UsageError for an unknown class or field, for a class that is not the only one, and for an inherited field.
 */
export function fieldMeant(sources: Sources, classes: Classes, text: string): FieldTarget {
  const dot = text.lastIndexOf('.');
  const [classText, name] = [text.slice(0, dot), text.slice(dot + 1)];
  if (dot <= 0 || name === '') throw new UsageError(`'${text}' names no field: write CLASS.field.`);
  const named = classesMeant(sources, classes, classText);
  const having = named.filter((entry) => classes.declarations(entry, name).length > 0);
  if (having.length === 0) throw unknownField(classes, named, name);
  const owner = oneOf(sources, having, (each) => `${fullName(sources, each)}.${name}`);
  const above = classes
    .ancestors(owner)
    .filter((each) => classes.declarations(each, name).length > 0)
    .at(-1);
  if (above !== undefined) {
    const isOwn = sources.isOwn(above.node.getSourceFile());
    throw new UsageError(
      `${owner.name} has '${name}' from ${above.name} (${sources.place(above.node)}): ` +
        (isOwn
          ? `rename ${above.name}.${name}, and it changes here, too.`
          : 'which is not a class of this project.'),
    );
  }
  return targetOf(sources, classes, owner, name);
}

function unknownField(classes: Classes, named: readonly ClassEntry[], name: string): UsageError {
  const [entry] = named;
  const names = classes.fieldNames(entry!).sort();
  const what = entry!.kind === 'experiment' ? 'constant' : 'hyperparameter';
  return new UsageError(
    `${entry!.name} has no ${what} '${name}'.${didYouMean(name, names)} It has ${names.join(', ') || 'none'}.`,
  );
}

/** The field with all classes that have it: those below its owner, and others that take the schema from one object. */
function targetOf(sources: Sources, classes: Classes, owner: ClassEntry, name: string): FieldTarget {
  const family = new Set(classes.family(owner));
  const schemas = new Set([...family].flatMap((entry) => classes.declarations(entry, name)));
  // Whoever takes fields from an object of its own, or from a function, may not be the only one.
  const others = [...schemas].every(isInWith) ? [] : classes.all;
  for (const entry of others) {
    if (!classes.declarations(entry, name).some((each) => schemas.has(each))) continue;
    for (const each of classes.family(entry)) family.add(each);
  }
  for (const entry of family) for (const each of classes.declarations(entry, name)) schemas.add(each);
  const foreign = [...schemas].find((each) => !sources.isOwn(each.getSourceFile()));
  if (foreign !== undefined) {
    throw new UsageError(
      `${owner.name}.${name} is declared at ${sources.place(foreign)}, which is not a file of this project.`,
    );
  }
  return { name, owner, family: [...family], schemas: [...schemas].filter(isSchemaProperty) };
}

/** Whether a schema stands in the fields of `with` themselves. */
function isInWith(schema: ts.Node): boolean {
  const call = schema.parent?.parent;
  if (call === undefined || !ts.isCallExpression(call)) return false;
  const { expression: called } = call;
  return ts.isPropertyAccessExpression(called) && called.name.text === 'with';
}

/** @throws UsageError where the field cannot have the new name: it is no name, or stands for something in a class. */
export function checkFieldName(
  sources: Sources,
  classes: Classes,
  target: FieldTarget,
  newName: string,
): void {
  const { name, owner, family } = target;
  const what = `${owner.name}.${name} cannot be called '${newName}'`;
  if (!isFieldName(newName)) throw new UsageError(`${what}: that is no identifier that a field may have.`);
  if (newName === name) throw new UsageError(`${owner.name}.${name} is called that already.`);
  for (const entry of family) {
    const type = classes.fieldsType(entry);
    const taken = type && sources.checker.getPropertyOfType(type, newName);
    if (taken !== undefined) {
      const [declaration] = sources.declarationsOf(taken);
      const where = declaration === undefined ? '' : ` (${sources.place(declaration)})`;
      throw new UsageError(
        `${what}: ${entry.name} has a ${isConstant(declaration) ? 'field' : 'member'} of that name${where}.`,
      );
    }
    for (const other of classes.fieldNames(entry)) {
      const schemas = classes.declarations(entry, other).filter(isSchemaProperty);
      const old = other === name ? undefined : schemas.find((each) => oldNamesOf(each).includes(newName));
      if (old === undefined) continue;
      throw new UsageError(
        `${what}: ${entry.name}.${other} was called that before (${sources.place(old)}), and what was saved then would be read into the wrong field.`,
      );
    }
  }
}

function isConstant(declaration: unknown): boolean {
  return declaration !== undefined && isSchemaProperty(declaration as never);
}

/** @throws UsageError where the class cannot have the new name. */
export function checkClassName(sources: Sources, entry: ClassEntry, newName: string): void {
  const what = `${entry.name} cannot be called '${newName}'`;
  if (!isFieldName(newName)) throw new UsageError(`${what}: that is no identifier.`);
  if (newName === entry.name) throw new UsageError(`${entry.name} is called that already.`);
  const module = sources.checker.getSymbolAtLocation(entry.node.getSourceFile());
  const exported = module && sources.checker.getExportsOfModule(module).find(({ name }) => name === newName);
  const name = experimentName(entry);
  if (exported !== undefined) {
    const shown =
      name === undefined
        ? 'its file'
        : `experiment file ${sources.show(entry.node.getSourceFile().fileName)}`;
    throw new UsageError(`${what}: ${shown} exports something of that name.`);
  }
}
