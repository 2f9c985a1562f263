/** @file A source file's classes, imports and exports, parsed without running it. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type ts from 'typescript';

// By require: to import a package of this size has Node read all of it for the names that it exports.
const compiler: typeof ts = createRequire(import.meta.url)('typescript');

/** A constant that a class declares with `with`, or to which it gives a value of its own. */
export interface OwnConstant {
  readonly name: string;
  readonly kind: 'declared' | 'set';
  /** Source of its schema without the description, or of its value. */
  readonly text: string;
  /** What `.describe` says of a declared one. */
  readonly description?: string;
  readonly line: number;
}

/** A class as it is declared. */
export interface ClassEntry {
  readonly name: string;
  /** The names at the head of the extends clause: LmExperiment in `extends LmExperiment.with({…})`; none without one. */
  readonly base: readonly string[];
  readonly abstract: boolean;
  /** First paragraph of its doc comment, '' without one. */
  readonly description: string;
  readonly line: number;
  readonly lastLine: number;
  readonly constants: readonly OwnConstant[];
}

/** A name in another file: '*' for all of them, 'default' for the default export. */
export interface Link {
  readonly from: string;
  readonly name: string;
}

/** Something that TypeScript cannot read. */
export interface SourceProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** What a file declares, imports and exports. */
export interface FileEntry {
  readonly classes: ReadonlyMap<string, ClassEntry>;
  /** Export name to local name. */
  readonly exports: ReadonlyMap<string, string>;
  /** Local name to where it is imported from. */
  readonly imports: ReadonlyMap<string, Link>;
  /** Exports handed on from other files. */
  readonly reexports: ReadonlyMap<string, Link>;
  /** Files all of whose exports are handed on. */
  readonly stars: readonly string[];
  /** The first thing in it that is no TypeScript. */
  readonly problem: SourceProblem | undefined;
}

/** The extends clause taken apart: `Base.with({…}).preset({…})` has a base and two records. */
interface Heritage {
  readonly base: readonly string[];
  readonly records: readonly { readonly method: string; readonly record: ts.Expression }[];
}

function heritageOf(expression: ts.Expression): Heritage {
  const base: string[] = [];
  const records: Heritage['records'][number][] = [];
  let node = expression;
  for (;;) {
    if (compiler.isIdentifier(node)) return { base: [node.text, ...base], records };
    if (compiler.isParenthesizedExpression(node) || compiler.isAsExpression(node)) node = node.expression;
    else if (compiler.isPropertyAccessExpression(node)) {
      base.unshift(node.name.text);
      node = node.expression;
    } else if (compiler.isCallExpression(node)) {
      const called: ts.Expression = node.expression;
      const isMethod = compiler.isPropertyAccessExpression(called);
      const method = isMethod ? called.name.text : '';
      records.unshift(...node.arguments.map((record) => ({ method, record })));
      // The call of a method is what it is called on: with() and preset() make a class of the same family.
      node = isMethod ? called.expression : called;
      base.length = 0;
    } else return { base: [], records };
  }
}

function docOf(node: ts.Node): string {
  for (const doc of compiler.getJSDocCommentsAndTags(node)) {
    if (!compiler.isJSDoc(doc)) continue;
    const text = compiler.getTextOfJSDocComment(doc.comment) ?? '';
    return (text.split(/\n\s*\n/)[0] ?? '').replace(/\s+/g, ' ').trim();
  }
  return '';
}

function has(node: ts.HasModifiers, kind: ts.SyntaxKind): boolean {
  return compiler.getModifiers(node)?.some((modifier) => modifier.kind === kind) ?? false;
}

/** Collects what the statements of one file say. */
class Reader {
  readonly classes = new Map<string, ClassEntry>();
  readonly exports = new Map<string, string>();
  readonly imports = new Map<string, Link>();
  readonly reexports = new Map<string, Link>();
  readonly stars: string[] = [];

  constructor(private readonly source: ts.SourceFile) {}

  private lineOf(node: ts.Node): number {
    return this.lineAt(node.getStart(this.source));
  }

  private lineAt(position: number): number {
    return this.source.getLineAndCharacterOfPosition(position).line + 1;
  }

  private textOf(node: ts.Node): string {
    return node.getText(this.source);
  }

  read(): void {
    for (const statement of this.source.statements) {
      if (compiler.isImportDeclaration(statement)) this.readImports(statement);
      else if (compiler.isExportDeclaration(statement)) this.readExports(statement);
      else if (compiler.isExportAssignment(statement) && compiler.isIdentifier(statement.expression)) {
        this.exports.set('default', statement.expression.text);
      } else if (compiler.isClassDeclaration(statement)) this.readClass(statement);
    }
  }

  private readImports({ importClause, moduleSpecifier }: ts.ImportDeclaration): void {
    if (!compiler.isStringLiteral(moduleSpecifier)) return;
    const from = moduleSpecifier.text;
    if (importClause?.name) this.imports.set(importClause.name.text, { from, name: 'default' });
    const bindings = importClause?.namedBindings;
    if (!bindings) return;
    if (compiler.isNamespaceImport(bindings)) this.imports.set(bindings.name.text, { from, name: '*' });
    else {
      for (const { name, propertyName } of bindings.elements) {
        this.imports.set(name.text, { from, name: (propertyName ?? name).text });
      }
    }
  }

  private readExports({ exportClause, moduleSpecifier }: ts.ExportDeclaration): void {
    const from =
      moduleSpecifier && compiler.isStringLiteral(moduleSpecifier) ? moduleSpecifier.text : undefined;
    if (!exportClause) {
      if (from) this.stars.push(from);
      return;
    }
    if (!compiler.isNamedExports(exportClause)) return;
    for (const { name, propertyName } of exportClause.elements) {
      const local = (propertyName ?? name).text;
      if (from) this.reexports.set(name.text, { from, name: local });
      else this.exports.set(name.text, local);
    }
  }

  private readClass(node: ts.ClassDeclaration): void {
    const isDefault = has(node, compiler.SyntaxKind.DefaultKeyword);
    const name = node.name?.text ?? 'default';
    if (has(node, compiler.SyntaxKind.ExportKeyword)) this.exports.set(isDefault ? 'default' : name, name);
    const clause = node.heritageClauses?.find(({ token }) => token === compiler.SyntaxKind.ExtendsKeyword);
    const { base, records } = clause?.types[0]
      ? heritageOf(clause.types[0].expression)
      : { base: [], records: [] };
    this.classes.set(name, {
      name,
      base,
      abstract: has(node, compiler.SyntaxKind.AbstractKeyword),
      description: docOf(node),
      line: this.lineOf(node.name ?? node),
      lastLine: this.lineAt(node.end),
      constants: [...records.flatMap((each) => this.inRecord(each)), ...this.set(node)],
    });
  }

  /** What a record given to `with` declares, or one given to `preset` sets. Records that stand elsewhere are not looked up. */
  private inRecord({ method, record }: Heritage['records'][number]): OwnConstant[] {
    if (!compiler.isObjectLiteralExpression(record)) return [];
    const kind = method === 'preset' ? 'set' : 'declared';
    return record.properties.flatMap((property): OwnConstant[] => {
      if (compiler.isShorthandPropertyAssignment(property)) {
        const name = property.name.text;
        return [{ name, kind, text: name, line: this.lineOf(property) }];
      }
      if (!compiler.isPropertyAssignment(property) || compiler.isComputedPropertyName(property.name))
        return [];
      const { initializer, name } = property;
      const said = kind === 'set' ? { text: this.textOf(initializer) } : this.described(initializer);
      return [{ name: name.text, kind, ...said, line: this.lineOf(name) }];
    });
  }

  /** `positive.default(4).describe('Blocks.')`: the schema, and what it says of itself. */
  private described(schema: ts.Expression): { text: string; description?: string } {
    const called = compiler.isCallExpression(schema) ? schema.expression : undefined;
    if (called && compiler.isPropertyAccessExpression(called) && called.name.text === 'describe') {
      const [words] = (schema as ts.CallExpression).arguments;
      if (words && compiler.isStringLiteralLike(words)) {
        return { text: this.textOf(called.expression), description: words.text };
      }
    }
    return { text: this.textOf(schema) };
  }

  /** Fields of a class: whatever an experiment's class sets is a constant. */
  private set(node: ts.ClassDeclaration): OwnConstant[] {
    return node.members.flatMap((member): OwnConstant[] => {
      if (!compiler.isPropertyDeclaration(member) || !member.initializer) return [];
      if (has(member, compiler.SyntaxKind.StaticKeyword)) return [];
      if (!compiler.isIdentifier(member.name) && !compiler.isStringLiteral(member.name)) return [];
      const { name, initializer } = member;
      return [
        { name: name.text, kind: 'set', text: this.textOf(initializer), line: this.lineOf(member.name) },
      ];
    });
  }
}

/** Reads a file. What is broken in it is passed over, and told as its problem. */
export function readSourceFile(path: string): FileEntry {
  const source = compiler.createSourceFile(
    path,
    readFileSync(path, 'utf8'),
    compiler.ScriptTarget.Latest,
    true,
  );
  const reader = new Reader(source);
  reader.read();
  const { classes, exports, imports, reexports, stars } = reader;
  return { classes, exports, imports, reexports, stars, problem: problemOf(path, source) };
}

function problemOf(file: string, source: ts.SourceFile): SourceProblem | undefined {
  // The parser notes what it met with; the type of source files keeps that to itself.
  const [first] = (source as unknown as { parseDiagnostics: readonly ts.DiagnosticWithLocation[] })
    .parseDiagnostics;
  if (first === undefined) return undefined;
  const line = source.getLineAndCharacterOfPosition(first.start).line + 1;
  return { file, line, message: compiler.flattenDiagnosticMessageText(first.messageText, ' ') };
}
