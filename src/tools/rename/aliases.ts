/** @file Writes into the source what the renamed was called before, with the import that this needs. */
import { dirname, relative, sep } from 'node:path';
import { UsageError } from '../../registry/errors.js';
import type { Edit, Edits } from './edits.js';
import { type Sources, ts, visitNodes } from './sources.js';

type Schema = ts.PropertyAssignment | ts.ShorthandPropertyAssignment;

/** The call of `renamed` around a field's schema, if there is one. */
function renamedCall(schema: Schema): ts.CallExpression | undefined {
  let found: ts.CallExpression | undefined;
  if (!ts.isPropertyAssignment(schema)) return undefined;
  visitNodes(schema.initializer, (node) => {
    const isCall =
      ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'renamed';
    if (isCall) found ??= node as ts.CallExpression;
  });
  return found;
}

/** What a field was called before, by its schema. */
export function oldNamesOf(schema: Schema): string[] {
  const names = renamedCall(schema)?.arguments.slice(1) ?? [];
  return names.flatMap((name) => (ts.isStringLiteralLike(name) ? [name.text] : []));
}

/** Makes a schema say that its field, which gets the name `newName`, was called `name`. */
export function addOldName(
  sources: Sources,
  schema: Schema,
  name: string,
  newName: string,
  edits: Edits,
): void {
  const source = schema.getSourceFile();
  const file = sources.fileOf(source);
  const call = renamedCall(schema);
  if (call !== undefined) {
    const names = [...oldNamesOf(schema).filter((each) => each !== newName), name];
    const [first] = call.arguments;
    const text = `, ${names.map((each) => `'${each}'`).join(', ')}`;
    edits.add(file, { start: first!.getEnd(), end: call.arguments.at(-1)!.getEnd(), text });
    return;
  }
  importName(sources, source, 'renamed', edits);
  if (ts.isShorthandPropertyAssignment(schema)) {
    const text = `${newName}: renamed(${name}, '${name}')`;
    edits.add(file, { start: schema.getStart(), end: schema.getEnd(), text });
    return;
  }
  const { initializer } = schema;
  edits.add(file, { start: initializer.getStart(), end: initializer.getStart(), text: 'renamed(' });
  edits.add(file, { start: initializer.getEnd(), end: initializer.getEnd(), text: `, '${name}')` });
}

/** Adds `registerAlias('Old', New);` behind a class. */
export function addOldClassName(
  sources: Sources,
  node: ts.Node,
  name: string,
  newName: string,
  edits: Edits,
): void {
  const source = node.getSourceFile();
  importName(sources, source, 'registerAlias', edits);
  const text = `// Configs that were saved when it was called ${name}.\nregisterAlias('${name}', ${newName});`;
  const end = node.getEnd();
  const isLast = /^[ \t]*(?:\r?\n|$)/.exec(source.text.slice(end));
  // A line of its own leaves the class's last line as it is.
  const start = end + (isLast?.[0].length ?? 0);
  const whole = isLast?.[0].endsWith('\n') === true ? `\n${text}\n` : `\n\n${text}\n`;
  edits.add(sources.fileOf(source), { start, end: start, text: whole });
}

/** Has a file import one of Luthier's functions from where it imports others, or from where its neighbours do. */
function importName(sources: Sources, source: ts.SourceFile, name: string, edits: Edits): void {
  const imports = source.statements.filter(ts.isImportDeclaration);
  const isThere = imports.some((each) =>
    namedImports(each)?.elements.some((element) => element.name.text === name),
  );
  if (isThere || declares(source, name)) return;
  const file = sources.fileOf(source);
  const offering = imports.find((each) => {
    const names = namedImports(each);
    return (
      names !== undefined &&
      names.elements.length > 0 &&
      !isTypeOnly(each) &&
      offers(sources, each.moduleSpecifier, name)
    );
  });
  if (offering !== undefined) {
    edits.add(file, namedImportOf(source, namedImports(offering)!, name));
    return;
  }
  const text = `import { ${name} } from '${specifierOf(sources, source, name)}';\n`;
  const last = imports.at(-1);
  const start = last === undefined ? source.getStart() : source.text.indexOf('\n', last.getEnd()) + 1;
  edits.add(file, { start, end: start, text });
}

/** Puts a name among those of an import, where the alphabet has it. */
function namedImportOf(source: ts.SourceFile, { elements }: ts.NamedImports, name: string): Edit {
  const nameOf = ({ propertyName, name: local }: ts.ImportSpecifier) =>
    (propertyName ?? local).text.toLowerCase();
  const next = elements.find((element) => nameOf(element) > name.toLowerCase());
  const beside = next ?? elements.at(-1)!;
  const start = beside.getStart();
  const lineStart = source.text.lastIndexOf('\n', start) + 1;
  const indent = source.text.slice(lineStart, start);
  const isOwnLine = indent.trim() === '';
  if (next !== undefined) {
    return isOwnLine
      ? { start: lineStart, end: lineStart, text: `${indent}${name},\n` }
      : { start, end: start, text: `${name}, ` };
  }
  const end = beside.getEnd();
  return { start: end, end, text: isOwnLine ? `,\n${indent}${name}` : `, ${name}` };
}

function namedImports(declaration: ts.ImportDeclaration): ts.NamedImports | undefined {
  const bindings = declaration.importClause?.namedBindings;
  return bindings !== undefined && ts.isNamedImports(bindings) ? bindings : undefined;
}

function isTypeOnly(declaration: ts.ImportDeclaration): boolean {
  return declaration.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
}

function declares(source: ts.SourceFile, name: string): boolean {
  return source.statements.some((each) => ts.isFunctionDeclaration(each) && each.name?.text === name);
}

/** Whether a module exports Luthier's function of the name. */
function offers(sources: Sources, specifier: ts.Expression, name: string): boolean {
  const module = sources.checker.getSymbolAtLocation(specifier);
  const exported = module && sources.checker.getExportsOfModule(module).find((each) => each.name === name);
  return exported !== undefined && isLuthiers(sources, exported);
}

function isLuthiers(sources: Sources, exported: ts.Symbol): boolean {
  const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
  const symbol = isAlias ? sources.checker.getAliasedSymbol(exported) : exported;
  return symbol.declarations?.some((each) => /\/hparams\//.test(each.getSourceFile().fileName)) === true;
}

/** How a file names the module that exports a function of Luthier: as others of the project do, or by a relative path. */
function specifierOf(sources: Sources, source: ts.SourceFile, name: string): string {
  const indexes = new Set<string>();
  for (const other of sources.program.getSourceFiles()) {
    if (other.isDeclarationFile) continue;
    for (const statement of other.statements) {
      if (!ts.isImportDeclaration(statement) || !offers(sources, statement.moduleSpecifier, name)) continue;
      const specifier = (statement.moduleSpecifier as ts.StringLiteral).text;
      if (!specifier.startsWith('.') && sources.isOwn(other)) return specifier;
      const module = sources.checker.getSymbolAtLocation(statement.moduleSpecifier)!.valueDeclaration;
      if (module !== undefined && /\/index\.[cm]?ts$/.test(module.getSourceFile().fileName)) {
        indexes.add(module.getSourceFile().fileName);
      }
    }
  }
  // Inside of the library its rooms import configs from their own index, not from the whole.
  const nearest = [...indexes].sort((a, b) => b.length - a.length)[0];
  if (nearest === undefined) {
    throw new UsageError(
      `${sources.show(source.fileName)} imports nothing that exports ${name}(): import it there, or use --no_alias.`,
    );
  }
  const path = relative(dirname(source.fileName), nearest)
    .split(sep)
    .join('/')
    .replace(/\.([cm]?)ts$/, '.$1js');
  return path.startsWith('.') ? path : `./${path}`;
}
