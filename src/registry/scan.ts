/** @file Finds experiments by reading source text: which exported classes descend from Experiment. Runs none of their code. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ts } from 'ts-morph';

/** An experiment that a file exports. */
export interface FoundExperiment {
  /** Canonical name: `lm.Small` for export Small of experiments/lm.ts. */
  readonly name: string;
  readonly file: string;
  readonly exportName: string;
  /** First paragraph of the class's doc comment, '' without one. */
  readonly description: string;
}

/** Extensions of files that may hold experiments, in the order in which they are tried. */
const extensions = ['.ts', '.mts', '.js', '.mjs'] as const;

interface ClassEntry {
  readonly name: string;
  /** The identifier at the head of the extends clause: `LmExperiment` in `extends LmExperiment.with({…})`. */
  readonly base: string | undefined;
  readonly abstract: boolean;
  readonly description: string;
}

interface FileEntry {
  readonly classes: Map<string, ClassEntry>;
  /** Export name to local name. */
  readonly exports: Map<string, string>;
  /** Local name to where it is imported from. */
  readonly imports: Map<string, { from: string; name: string }>;
  /** Exports handed on from other files. */
  readonly reexports: Map<string, { from: string; name: string }>;
}

function headOf(expression: ts.Expression): string | undefined {
  let node = expression;
  for (;;) {
    if (ts.isIdentifier(node)) return node.text;
    if (ts.isCallExpression(node) || ts.isPropertyAccessExpression(node)) node = node.expression;
    else if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) node = node.expression;
    else return undefined;
  }
}

function docOf(node: ts.Node): string {
  for (const doc of ts.getJSDocCommentsAndTags(node)) {
    if (!ts.isJSDoc(doc)) continue;
    const text = ts.getTextOfJSDocComment(doc.comment) ?? '';
    return (text.split(/\n\s*\n/)[0] ?? '').replace(/\s+/g, ' ').trim();
  }
  return '';
}

function hasModifier(node: ts.ClassDeclaration, kind: ts.SyntaxKind): boolean {
  return ts.getModifiers(node)?.some((m) => m.kind === kind) ?? false;
}

function readImports(statement: ts.ImportDeclaration, file: FileEntry): void {
  const bindings = statement.importClause?.namedBindings;
  if (!bindings || !ts.isNamedImports(bindings) || !ts.isStringLiteral(statement.moduleSpecifier)) return;
  for (const element of bindings.elements) {
    const name = (element.propertyName ?? element.name).text;
    file.imports.set(element.name.text, { from: statement.moduleSpecifier.text, name });
  }
}

function readExports(statement: ts.ExportDeclaration, file: FileEntry): void {
  if (!statement.exportClause || !ts.isNamedExports(statement.exportClause)) return;
  const from =
    statement.moduleSpecifier && ts.isStringLiteral(statement.moduleSpecifier)
      ? statement.moduleSpecifier.text
      : undefined;
  for (const element of statement.exportClause.elements) {
    const local = (element.propertyName ?? element.name).text;
    if (from) file.reexports.set(element.name.text, { from, name: local });
    else file.exports.set(element.name.text, local);
  }
}

function readFile(path: string): FileEntry {
  const file: FileEntry = {
    classes: new Map(),
    exports: new Map(),
    imports: new Map(),
    reexports: new Map(),
  };
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) readImports(statement, file);
    else if (ts.isExportDeclaration(statement)) readExports(statement, file);
    else if (ts.isClassDeclaration(statement) && statement.name) {
      const name = statement.name.text;
      const clause = statement.heritageClauses?.find((h) => h.token === ts.SyntaxKind.ExtendsKeyword);
      const base = clause?.types[0] ? headOf(clause.types[0].expression) : undefined;
      const abstract = hasModifier(statement, ts.SyntaxKind.AbstractKeyword);
      file.classes.set(name, { name, base, abstract, description: docOf(statement) });
      if (hasModifier(statement, ts.SyntaxKind.ExportKeyword)) file.exports.set(name, name);
    }
  }
  return file;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** The source file that a relative import names: './lm.js' is lm.ts where that is what stands there. */
function fileOfImport(importer: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const target = resolve(dirname(importer), specifier);
  const stem = target.replace(/\.[cm]?js$/, '');
  return [target, ...extensions.map((e) => stem + e)].find(isFile);
}

class Scanner {
  private readonly files = new Map<string, FileEntry>();

  entry(path: string): FileEntry {
    let entry = this.files.get(path);
    if (!entry) this.files.set(path, (entry = readFile(path)));
    return entry;
  }

  /** The class behind a local name of a file, following imports; 'root' for Experiment itself. */
  private find(path: string, local: string): { path: string; cls: ClassEntry } | 'root' | undefined {
    const file = this.entry(path);
    const cls = file.classes.get(local);
    if (cls) return cls.name === 'Experiment' && !cls.base ? 'root' : { path, cls };
    const imported = file.imports.get(local);
    return imported ? this.follow(path, imported) : undefined;
  }

  private follow(path: string, link: { from: string; name: string }): ReturnType<Scanner['find']> {
    // Experiment comes from the package or from a path into it: its name is enough.
    if (link.name === 'Experiment') return 'root';
    const target = fileOfImport(path, link.from);
    return target ? this.exported(target, link.name, new Set()) : undefined;
  }

  private exported(path: string, name: string, seen: Set<string>): ReturnType<Scanner['find']> {
    if (seen.has(path)) return undefined;
    seen.add(path);
    const file = this.entry(path);
    const local = file.exports.get(name);
    if (local !== undefined) return this.find(path, local);
    const link = file.reexports.get(name);
    const target = link ? fileOfImport(path, link.from) : undefined;
    return link && target ? this.exported(target, link.name, seen) : undefined;
  }

  private descends(path: string, cls: ClassEntry): boolean {
    const seen = new Set<ClassEntry>();
    let at: { path: string; cls: ClassEntry } = { path, cls };
    while (at.cls.base !== undefined && !seen.has(at.cls)) {
      seen.add(at.cls);
      const base = this.find(at.path, at.cls.base);
      if (base === 'root') return true;
      if (!base) return false;
      at = base;
    }
    return false;
  }

  experimentsOf(path: string, prefix: string): FoundExperiment[] {
    const file = this.entry(path);
    const names = [...file.exports.keys(), ...file.reexports.keys()];
    return names.flatMap((exportName) => {
      const found = this.exported(path, exportName, new Set());
      if (!found || found === 'root' || found.cls.abstract || !this.descends(found.path, found.cls))
        return [];
      const { description } = found.cls;
      return [{ name: `${prefix}.${exportName}`, file: path, exportName, description }];
    });
  }
}

function sourceFiles(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return names
    .filter((n) => extensions.some((e) => n.endsWith(e)) && !/\.d\.[cm]?ts$|\.test\.|node_modules/.test(n))
    .sort();
}

/** Every experiment under the directories, sorted by name; of two with one name the earlier directory's counts. */
export function scanExperiments(directories: readonly string[]): FoundExperiment[] {
  const scanner = new Scanner();
  const byName = new Map<string, FoundExperiment>();
  for (const directory of directories) {
    for (const name of sourceFiles(directory)) {
      const prefix = name.replace(/\.[cm]?[jt]s$/, '').replace(/[/\\]/g, '.');
      for (const found of scanner.experimentsOf(join(directory, name), prefix)) {
        if (!byName.has(found.name)) byName.set(found.name, found);
      }
    }
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
