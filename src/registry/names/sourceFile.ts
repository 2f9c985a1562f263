/** @file Static view of a source file: classes, imports and exports, parsed without running it. */
import { createRequire } from 'node:module';
import type ts from 'typescript';

/** Loaded by the first file that is parsed: that takes as long as all else before an experiment is found. */
let compiler: typeof ts;

/** A constant that a class declares by `with` or sets. */
export interface OwnConstant {
  readonly name: string;
  readonly kind: 'declared' | 'set';
  /** Source text of its schema without the description, or of its value. */
  readonly text: string;
  /** Text of `.describe`, for a declared constant. */
  readonly description?: string;
  readonly line: number;
}

/** A record of constants or fields, as `with` takes it. */
export interface RecordEntry {
  readonly constants: readonly OwnConstant[];
  /** Names of the records that are part of it, as in `{ ...splitFields }`. */
  readonly spreads: readonly string[];
}

/** A declared class. */
export interface ClassEntry extends RecordEntry {
  readonly name: string;
  /** Names of the extends clause: LmExperiment in `extends LmExperiment.with({…})`; empty without one. */
  readonly base: readonly string[];
  readonly abstract: boolean;
  /** First paragraph of its doc comment, or ''. */
  readonly description: string;
  readonly line: number;
  readonly lastLine: number;
}

/** A name in another file: '*' for all, 'default' for the default export. */
export interface Link {
  readonly from: string;
  readonly name: string;
}

/** A syntax error, or why a file cannot be read. */
export interface SourceProblem {
  readonly file: string;
  /** Of a syntax error. */
  readonly line?: number;
  readonly message: string;
}

/** Declarations, imports and exports of a file. */
export interface FileEntry {
  readonly classes: ReadonlyMap<string, ClassEntry>;
  /** Records in constants of the file. */
  readonly records: ReadonlyMap<string, RecordEntry>;
  /** Local names by export name. */
  readonly exports: ReadonlyMap<string, string>;
  /** Imported names by local name. */
  readonly imports: ReadonlyMap<string, Link>;
  /** Re-exports by name. */
  readonly reexports: ReadonlyMap<string, Link>;
  /** Files re-exported as a whole. */
  readonly stars: readonly string[];
  /** The first syntax error, or why it cannot be read. */
  readonly problem: SourceProblem | undefined;
}

/** A parsed extends clause: `Base.with({…}).preset({…})` has a base and two records. */
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
      // with() and preset() return a class of the family that they are called on.
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

/** Collects the declarations of one file. */
class Reader {
  readonly classes = new Map<string, ClassEntry>();
  readonly records = new Map<string, RecordEntry>();
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
      else if (compiler.isVariableStatement(statement)) this.readRecords(statement);
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

  private readRecords(statement: ts.VariableStatement): void {
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (!compiler.isIdentifier(name) || !initializer || !compiler.isObjectLiteralExpression(initializer))
        continue;
      this.records.set(name.text, this.inRecord({ method: 'with', record: initializer }));
      if (has(statement, compiler.SyntaxKind.ExportKeyword)) this.exports.set(name.text, name.text);
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
    const parts = records.map((each) => this.inRecord(each));
    this.classes.set(name, {
      name,
      base,
      abstract: has(node, compiler.SyntaxKind.AbstractKeyword),
      description: docOf(node),
      line: this.lineOf(node.name ?? node),
      lastLine: this.lineAt(node.end),
      constants: [...parts.flatMap(({ constants }) => constants), ...this.set(node)],
      spreads: parts.flatMap(({ spreads }) => spreads),
    });
  }

  /** Constants that a record declares for `with`, or sets for `preset`; those of other records by their names. */
  private inRecord({ method, record }: Heritage['records'][number]): RecordEntry {
    // Other calls make classes too: ParameterizedExperiment.of({ task, … }).
    if (method !== 'with' && method !== 'preset') return { constants: [], spreads: [] };
    if (compiler.isIdentifier(record)) return { constants: [], spreads: [record.text] };
    if (!compiler.isObjectLiteralExpression(record)) return { constants: [], spreads: [] };
    const spreads = record.properties.flatMap((property) =>
      compiler.isSpreadAssignment(property) && compiler.isIdentifier(property.expression)
        ? [property.expression.text]
        : [],
    );
    const kind = method === 'preset' ? 'set' : 'declared';
    const constants = record.properties.flatMap((property): OwnConstant[] => {
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
    return { constants, spreads };
  }

  /** Splits `positive.default(4).describe('Blocks.')` into schema and description. */
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

  /** Constants set by class fields: every field of an experiment class is one. */
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

/** Parses a file; skips syntax errors and reports the first one. @throws RangeError where the text is nested too deeply. */
export function parseSource(path: string, text: string): FileEntry {
  // Required, not imported: for named imports from a package of this size, Node would scan all of it.
  compiler ??= createRequire(import.meta.url)('typescript') as typeof ts;
  const source = compiler.createSourceFile(path, text, compiler.ScriptTarget.Latest, true);
  const reader = new Reader(source);
  reader.read();
  const { classes, records, exports, imports, reexports, stars } = reader;
  return { classes, records, exports, imports, reexports, stars, problem: problemOf(path, source) };
}

function problemOf(file: string, source: ts.SourceFile): SourceProblem | undefined {
  // The parser's diagnostics are not part of the public type.
  const [first] = (source as unknown as { parseDiagnostics: readonly ts.DiagnosticWithLocation[] })
    .parseDiagnostics;
  if (first === undefined) return undefined;
  const line = source.getLineAndCharacterOfPosition(first.start).line + 1;
  return { file, line, message: compiler.flattenDiagnosticMessageText(first.messageText, ' ') };
}
