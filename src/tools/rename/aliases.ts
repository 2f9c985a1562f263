/** @file Aliases in source text: `renamed(schema, 'old')` for fields, `registerAlias('Old', New)` for classes. */
import { type CallExpression, Node, type PropertyAssignment, type SourceFile, SyntaxKind } from 'ts-morph';
import { UsageError } from '../../system/text/index.js';
import type { ClassEntry, Schema } from './classes.js';
import type { Edit } from './textEdits.js';

/** The call of `renamed` around a field's schema, if there is one. */
function renamedCall(schema: Schema): CallExpression | undefined {
  if (!Node.isPropertyAssignment(schema)) return undefined;
  const made = schema.getInitializerOrThrow();
  const calls = [
    ...(Node.isCallExpression(made) ? [made] : []),
    ...made.getDescendantsOfKind(SyntaxKind.CallExpression),
  ];
  return calls.find((call) => call.getExpression().getText() === 'renamed');
}

/** Former names of a field, by its schema. */
export function oldNamesOf(schema: Schema): string[] {
  const [, ...names] = renamedCall(schema)?.getArguments() ?? [];
  return names.flatMap((name) => (Node.isStringLiteral(name) ? [name.getLiteralText()] : []));
}

/** Edits that add the old name `name` to the schema of a field, from now on `newName`. */
export function oldNameEdits(schema: PropertyAssignment, name: string, newName: string): Edit[] {
  const call = renamedCall(schema);
  if (call === undefined) {
    const made = schema.getInitializerOrThrow();
    return [
      { start: made.getStart(), end: made.getStart(), text: 'renamed(' },
      { start: made.getEnd(), end: made.getEnd(), text: `, '${name}')` },
    ];
  }
  const [first, ...others] = call.getArguments();
  const names = [...oldNamesOf(schema).filter((each) => each !== newName), name];
  const text = names.map((each) => `, '${each}'`).join('');
  return [{ start: first!.getEnd(), end: (others.at(-1) ?? first!).getEnd(), text }];
}

/** The edit that puts `registerAlias('Old', New)` behind a class. */
export function oldClassNameEdit({ node, name }: ClassEntry, newName: string): Edit {
  const at = node.getEnd();
  const comment = `// Configs that were saved when it was called ${name}.`;
  return { start: at, end: at, text: `\n\n${comment}\nregisterAlias('${name}', ${newName});` };
}

/**
 * Has a file import one of Luthier's functions from a module that it imports already.
 *
 * @throws UsageError where it imports nothing that exports the function.
 */
export function importName(file: SourceFile, name: string, shown: string): void {
  const imports = file.getImportDeclarations();
  if (file.getFunction(name) !== undefined) return;
  if (imports.some((each) => each.getNamedImports().some((named) => named.getName() === name))) return;
  const offering = imports.find(
    (each) =>
      !each.isTypeOnly() &&
      each.getNamedImports().length > 0 &&
      each.getModuleSpecifierSourceFile()?.getExportedDeclarations().has(name) === true,
  );
  const offered = imports.findIndex((each) => each.getModuleSpecifierValue().startsWith('luthier/'));
  if (offering === undefined && offered !== -1) {
    const quote = imports[offered]!.getModuleSpecifier().getQuoteKind();
    const added = file.insertImportDeclaration(offered, { namedImports: [name], moduleSpecifier: 'luthier' });
    added.getModuleSpecifier().replaceWithText(`${quote}luthier${quote}`);
    return;
  }
  if (offering === undefined) {
    const advice = 'import it there, or use --no_alias.';
    throw new UsageError(`${shown} imports from no module that exports ${name}(): ${advice}`);
  }
  const names = offering.getNamedImports().map((named) => named.getName().toLowerCase());
  const next = names.findIndex((each) => each > name.toLowerCase());
  offering.insertNamedImport(next === -1 ? names.length : next, name);
}
