/**
 * @file Slices of a version's code: the declarations in changed files that running a class may reach. Modules are read as text
 * and as their imports say; whatever a declaration names, it may run.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { relative } from 'node:path';
import type ts from 'typescript';
import { isFile } from '../../registry/names/index.js';
import type { Sources } from '../versions/sources.js';

/** A class and the file that declares it, by its path in the user's tree. */
export interface Root {
  readonly name: string;
  readonly file: string;
}

/** A statement of a module, with the names that it uses. */
interface Statement {
  /** Without comments and types; only of changed files. */
  readonly text: string;
  readonly uses: ReadonlySet<string>;
}

/** A name of another module; '*' is all of it. */
interface Link {
  readonly from: string;
  readonly name: string;
}

interface ModuleView {
  readonly statements: ReadonlyMap<string, Statement>;
  /** Statements that run when the module is loaded, and declare nothing. */
  readonly effects: readonly Statement[];
  readonly imports: ReadonlyMap<string, Link>;
  readonly exports: ReadonlyMap<string, string | Link>;
  /** Modules of which all is exported. */
  readonly stars: readonly string[];
}

let compiler: typeof ts | undefined;

/** TypeScript, which is loaded where code changed that no trace covers. */
function typescript(): typeof ts {
  compiler ??= createRequire(import.meta.url)('typescript') as typeof ts;
  return compiler;
}

const everything = '*';

/** Slices of one version's code. */
export class CodeSlices {
  private readonly views = new Map<string, ModuleView>();

  /**
   * @param changed files, from the repository's root
   * @param home the root of the user's tree, by which roots name their files
   */
  constructor(
    private readonly sources: Sources,
    private readonly changed: ReadonlySet<string>,
    private readonly home: string,
  ) {}

  /** The reached declarations of changed files, in an order that their places do not change. */
  textOf(roots: readonly Root[]): string {
    const { root } = this.sources.tree;
    const seen = new Set<string>();
    const texts = new Set<string>();
    const open: (readonly [file: string, name: string])[] = roots.map(({ name, file }) => [
      file.startsWith(`${this.home}/`) ? root + file.slice(this.home.length) : file,
      name,
    ]);
    const first = new Set(open.map(([file, name]) => `${file}\0${name}`));
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [file, name] = next;
      const key = `${file}\0${name}`;
      if (seen.has(key) || !this.isOwn(file)) continue;
      seen.add(key);
      const view = this.viewOf(file);
      const isFirst = !seen.has(file);
      seen.add(file);
      const take = ({ text, uses }: Statement): void => {
        if (text !== '') texts.add(text);
        for (const used of uses) open.push([file, used]);
      };
      if (isFirst) view.effects.forEach(take);
      for (const target of this.linked(file, view, name)) open.push(target);
      if (name === everything) view.statements.forEach(take);
      else if (view.statements.has(name)) take(view.statements.get(name)!);
      // A class that an expression makes, such as a mixin's, may be anywhere in its file.
      else if (first.has(key)) view.statements.forEach(take);
    }
    return [...texts].sort().join('\n');
  }

  /** The names of other modules that a name of a module stands for. */
  private *linked(file: string, view: ModuleView, name: string): Generator<readonly [string, string]> {
    const follow = (link: Link): (readonly [string, string])[] =>
      this.sources
        .importedBy(file, link.from)
        .filter((target) => isFile(target))
        .map((target) => [target, link.name]);
    const imported = view.imports.get(name);
    if (imported !== undefined) yield* follow(imported);
    if (name === everything) {
      for (const target of view.exports.values()) if (typeof target !== 'string') yield* follow(target);
      for (const from of view.stars) yield* follow({ from, name: everything });
      return;
    }
    const exported = view.exports.get(name);
    if (exported !== undefined) {
      if (typeof exported !== 'string') yield* follow(exported);
      else if (exported !== name) yield [file, exported];
    } else if (!view.statements.has(name) && imported === undefined)
      for (const from of view.stars) yield* follow({ from, name });
  }

  /** Packages are the same for both versions. */
  private isOwn(file: string): boolean {
    return file.startsWith(`${this.sources.tree.root}/`) && !file.includes('/node_modules/');
  }

  private viewOf(file: string): ModuleView {
    let view = this.views.get(file);
    if (view === undefined) {
      const isChanged = this.changed.has(relative(this.sources.tree.root, file));
      this.views.set(file, (view = viewOfText(file, readFileSync(file, 'utf8'), isChanged)));
    }
    return view;
  }
}

/** A module by its text. */
function viewOfText(file: string, text: string, isChanged: boolean): ModuleView {
  const tsc = typescript();
  if (!/\.[cm]?[jt]sx?$/.test(file)) {
    const whole = { text: isChanged ? text : '', uses: new Set<string>() };
    return { statements: new Map(), effects: [whole], imports: new Map(), exports: new Map(), stars: [] };
  }
  const { ESNext } = tsc.ScriptTarget;
  const options = { target: ESNext, module: tsc.ModuleKind.ESNext, removeComments: true };
  // Only translated code is without types and comments; parsing alone is faster.
  const given = isChanged
    ? tsc.transpileModule(text, { compilerOptions: options, fileName: file }).outputText
    : text;
  const source = tsc.createSourceFile(`${file}${isChanged ? '.js' : ''}`, given, ESNext, false);
  const printer = tsc.createPrinter({ removeComments: true });
  const statements = new Map<string, Statement>();
  const effects: Statement[] = [];
  const imports = new Map<string, Link>();
  const exports = new Map<string, string | Link>();
  const stars: string[] = [];
  const textOf = (node: ts.Node): string =>
    isChanged ? printer.printNode(tsc.EmitHint.Unspecified, node, source) : '';
  const viewOf = (node: ts.Node): Statement => ({ text: textOf(node), uses: namesIn(node, tsc) });
  for (const node of source.statements) {
    if (tsc.isImportDeclaration(node)) addImports(node, imports, effects, tsc);
    else if (tsc.isExportDeclaration(node)) addExports(node, exports, stars, tsc);
    else if (tsc.isVariableStatement(node)) {
      const view = viewOf(node);
      for (const { name } of node.declarationList.declarations)
        for (const each of boundNames(name, tsc)) statements.set(each, view);
    } else if ((tsc.isClassDeclaration(node) || tsc.isFunctionDeclaration(node)) && node.name !== undefined) {
      statements.set(node.name.text, viewOf(node));
      if (node.modifiers?.some(({ kind }) => kind === tsc.SyntaxKind.DefaultKeyword))
        exports.set('default', node.name.text);
    } else if (tsc.isInterfaceDeclaration(node) || tsc.isTypeAliasDeclaration(node)) continue;
    else if (tsc.isEnumDeclaration(node)) statements.set(node.name.text, viewOf(node));
    else effects.push(viewOf(node));
  }
  return { statements, effects, imports, exports, stars };
}

function addImports(
  node: ts.ImportDeclaration,
  imports: Map<string, Link>,
  effects: Statement[],
  tsc: typeof ts,
): void {
  const from = (node.moduleSpecifier as ts.StringLiteral).text;
  const clause = node.importClause;
  if (clause?.phaseModifier === tsc.SyntaxKind.TypeKeyword) return;
  if (clause === undefined) {
    // Loaded for what it does.
    const name = `import ${from}`;
    imports.set(name, { from, name: everything });
    effects.push({ text: '', uses: new Set([name]) });
    return;
  }
  if (clause.name) imports.set(clause.name.text, { from, name: 'default' });
  const { namedBindings: bindings } = clause;
  if (bindings === undefined) return;
  if (tsc.isNamespaceImport(bindings)) imports.set(bindings.name.text, { from, name: everything });
  else
    for (const { name, propertyName, isTypeOnly } of bindings.elements)
      if (!isTypeOnly) imports.set(name.text, { from, name: (propertyName ?? name).text });
}

function addExports(
  { moduleSpecifier, exportClause, isTypeOnly }: ts.ExportDeclaration,
  exports: Map<string, string | Link>,
  stars: string[],
  tsc: typeof ts,
): void {
  if (isTypeOnly) return;
  const from = (moduleSpecifier as ts.StringLiteral | undefined)?.text;
  if (exportClause === undefined) stars.push(from!);
  else if (tsc.isNamespaceExport(exportClause))
    exports.set(exportClause.name.text, { from: from!, name: everything });
  else
    for (const { name, propertyName } of exportClause.elements) {
      const own = (propertyName ?? name).text;
      exports.set(name.text, from === undefined ? own : { from, name: own });
    }
}

function boundNames(name: ts.BindingName, tsc: typeof ts): string[] {
  if (tsc.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((each) => (tsc.isBindingElement(each) ? boundNames(each.name, tsc) : []));
}

/** The names that a statement uses, but for those of properties and types. */
function namesIn(node: ts.Node, tsc: typeof ts): Set<string> {
  const names = new Set<string>();
  const visit = (at: ts.Node): void => {
    if (tsc.isExpressionWithTypeArguments(at)) visit(at.expression);
    else if (tsc.isTypeNode(at)) return;
    else if (tsc.isIdentifier(at)) names.add(at.text);
    else if (tsc.isPropertyAccessExpression(at)) visit(at.expression);
    else if (tsc.isPropertyAssignment(at) && tsc.isIdentifier(at.name)) visit(at.initializer);
    else tsc.forEachChild(at, visit);
  };
  visit(node);
  return names;
}
