/** @file Static view of a source file: classes, imports and exports, parsed without running it. */
import { createRequire } from 'node:module';
import type ts from 'typescript';
import { type Heritage, heritageOf, type Value, valueIn } from './classExpressions.js';
import type {
  ClassEntry,
  FileEntry,
  Link,
  OwnConstant,
  RecordEntry,
  SourceProblem,
  Star,
} from './fileEntry.js';
import { loadsOf } from './moduleLoads.js';
import { changesOthers } from './sharedState.js';

/** Loaded by the first file that is parsed: that takes as long as all else before an experiment is found. */
let compiler: typeof ts;

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

/** Most characters of an extends clause or value that are kept. */
const longestText = 200;

const joined = (parts: readonly RecordEntry[]): RecordEntry => ({
  constants: parts.flatMap(({ constants }) => constants),
  spreads: parts.flatMap(({ spreads }) => spreads),
});

/** The names that a declaration binds. */
function namesIn(name: ts.BindingName): ts.Identifier[] {
  if (compiler.isIdentifier(name)) return [name];
  return name.elements.flatMap((each) => (compiler.isOmittedExpression(each) ? [] : namesIn(each.name)));
}

/** Collects the declarations of one file. */
class Reader {
  readonly classes = new Map<string, ClassEntry>();
  readonly records = new Map<string, RecordEntry>();
  readonly exports = new Map<string, string>();
  readonly imports = new Map<string, Link>();
  readonly reexports = new Map<string, Link>();
  readonly stars: Star[] = [];
  readonly others: string[] = [];
  readonly lines = new Map<string, number>();

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
      else if (compiler.isExportAssignment(statement)) this.readDefault(statement);
      else if (compiler.isClassDeclaration(statement)) this.readClass(statement);
      else if (compiler.isVariableStatement(statement)) this.readConstants(statement);
      else if (compiler.isFunctionDeclaration(statement) || compiler.isEnumDeclaration(statement))
        this.readOther(statement);
      else if (compiler.isExpressionStatement(statement)) this.readCommonJs(statement);
    }
  }

  private export(name: string, local: string, node: ts.Node): void {
    this.exports.set(name, local);
    this.lines.set(name, this.lineOf(node));
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

  private readExports(statement: ts.ExportDeclaration): void {
    const { exportClause, moduleSpecifier } = statement;
    if (statement.isTypeOnly) return;
    const from =
      moduleSpecifier && compiler.isStringLiteral(moduleSpecifier) ? moduleSpecifier.text : undefined;
    if (!exportClause) {
      if (from) this.stars.push({ from, line: this.lineOf(statement) });
      return;
    }
    if (!compiler.isNamedExports(exportClause)) return;
    for (const element of exportClause.elements) {
      const { name, propertyName, isTypeOnly } = element;
      if (isTypeOnly) continue;
      const local = (propertyName ?? name).text;
      if (!from) this.export(name.text, local, element);
      else {
        this.reexports.set(name.text, { from, name: local });
        this.lines.set(name.text, this.lineOf(element));
      }
    }
  }

  /** `export default …`, and `export = …` of CommonJS. */
  private readDefault(statement: ts.ExportAssignment): void {
    const { expression, isExportEquals } = statement;
    if (isExportEquals) this.stars.push({ from: undefined, line: this.lineOf(statement) });
    else if (compiler.isIdentifier(expression)) this.export('default', expression.text, statement);
    else {
      this.readValue('default', valueIn(compiler, expression), {
        place: statement,
        statement,
        text: expression,
      });
      this.export('default', 'default', statement);
    }
  }

  private readOther(node: ts.FunctionDeclaration | ts.EnumDeclaration): void {
    const name = node.name?.text ?? 'default';
    this.others.push(name);
    if (!has(node, compiler.SyntaxKind.ExportKeyword)) return;
    this.export(has(node, compiler.SyntaxKind.DefaultKeyword) ? 'default' : name, name, node);
  }

  /** `module.exports = …` and `exports.Small = …`. */
  private readCommonJs({ expression }: ts.ExpressionStatement): void {
    if (!compiler.isBinaryExpression(expression)) return;
    if (/^(module\.)?exports\b/.test(this.textOf(expression.left)))
      this.stars.push({ from: undefined, line: this.lineOf(expression) });
  }

  private readConstants(statement: ts.VariableStatement): void {
    const isExported = has(statement, compiler.SyntaxKind.ExportKeyword);
    for (const declaration of statement.declarationList.declarations) {
      const { name, initializer, type } = declaration;
      const names = namesIn(name);
      // A part of a value, or one that a later statement gives.
      const isRead = compiler.isIdentifier(name) && initializer !== undefined;
      const value: Value = isRead ? valueIn(compiler, initializer, type) : { kind: 'unknown' };
      for (const each of names) {
        this.readValue(each.text, value, { place: each, statement, text: initializer ?? each });
        if (isExported) this.export(each.text, each.text, each);
      }
    }
  }

  private readValue(
    name: string,
    value: Value,
    { place, statement, text }: { place: ts.Node; statement: ts.Statement; text: ts.Node },
  ): void {
    if (value.kind === 'plain') this.others.push(name);
    else if (value.kind === 'record')
      this.records.set(name, this.inRecord({ method: 'with', record: value.node }));
    else if (value.kind === 'class')
      this.classes.set(name, { ...this.classOf(value.node, name), ...this.standsAt(place, statement) });
    else {
      const heritage = value.kind === 'made' ? value.heritage : { base: [], records: [], calls: [''] };
      const parts = heritage.records.map((each) => this.inRecord(each));
      this.classes.set(name, {
        ...{
          name,
          base: heritage.base,
          calls: heritage.calls,
          isValue: true,
          hasTask: false,
          abstract: false,
        },
        text: this.textOf(text).replace(/\s+/g, ' ').slice(0, longestText),
        ...this.standsAt(place, statement),
        ...joined(parts),
      });
    }
  }

  private standsAt(place: ts.Node, statement: ts.Statement) {
    return { description: docOf(statement), line: this.lineOf(place), lastLine: this.lineAt(statement.end) };
  }

  private readClass(node: ts.ClassDeclaration): void {
    const isDefault = has(node, compiler.SyntaxKind.DefaultKeyword);
    const name = node.name?.text ?? 'default';
    if (has(node, compiler.SyntaxKind.ExportKeyword)) this.export(isDefault ? 'default' : name, name, node);
    this.classes.set(name, this.classOf(node, name));
  }

  private classOf(node: ts.ClassLikeDeclaration, name: string): ClassEntry {
    const clause = node.heritageClauses?.find(({ token }) => token === compiler.SyntaxKind.ExtendsKeyword);
    const extended = clause?.types[0]?.expression;
    const none: Heritage = { base: [], records: [], calls: [] };
    const { base, records, calls } = extended ? heritageOf(compiler, extended) : none;
    const { constants, spreads } = joined(records.map((each) => this.inRecord(each)));
    return {
      ...{ name, base, calls, isValue: false },
      text: extended ? this.textOf(extended).replace(/\s+/g, ' ').slice(0, longestText) : '',
      hasTask: node.members.some(
        (member) =>
          member.name !== undefined &&
          this.textOf(member.name) === 'task' &&
          !(compiler.canHaveModifiers(member) && has(member, compiler.SyntaxKind.AbstractKeyword)),
      ),
      abstract: compiler.isClassDeclaration(node) && has(node, compiler.SyntaxKind.AbstractKeyword),
      description: docOf(node),
      line: this.lineOf(node.name ?? node),
      lastLine: this.lineAt(node.end),
      constants: [...constants, ...this.set(node)],
      spreads,
    };
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
  private set(node: ts.ClassLikeDeclaration): OwnConstant[] {
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
  const { classes, records, exports, imports, reexports, stars, others, lines } = reader;
  const problem = problemOf(path, source);
  const loads = loadsOf(source, compiler);
  return {
    ...{ classes, records, exports, imports, reexports, stars, others, lines, loads, problem },
    changesOthers: changesOthers(source, compiler),
  };
}

function problemOf(file: string, source: ts.SourceFile): SourceProblem | undefined {
  // The parser's diagnostics are not part of the public type.
  const [first] = (source as unknown as { parseDiagnostics: readonly ts.DiagnosticWithLocation[] })
    .parseDiagnostics;
  if (first === undefined) return undefined;
  const line = source.getLineAndCharacterOfPosition(first.start).line + 1;
  return { file, line, message: compiler.flattenDiagnosticMessageText(first.messageText, ' ') };
}
